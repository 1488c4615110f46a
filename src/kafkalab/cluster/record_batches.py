"""Read record batches from a broker's segment file.

The layout is Kafka's record format 2 (https://kafka.apache.org/documentation/#recordbatch). `kafka.record` of
kafka-python reads it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import BinaryIO, Literal

from kafka.record.default_records import ControlRecord, DefaultRecordBatch

__all__ = ["CODECS", "Record", "RecordBatch", "batches_in", "next_batch", "with_records"]

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
"""Codecs in the order of their numbers in a batch's header."""

_HEADER = DefaultRecordBatch.HEADER_STRUCT
_BEFORE_LENGTH_COUNTS = DefaultRecordBatch.AFTER_LEN_OFFSET
_MAGIC = 2
_DELETE_HORIZON = 0x40  # https://cwiki.apache.org/confluence/x/sxFbB (KIP-534)


@dataclass(frozen=True, slots=True)
class Record:
    """One record.

    Attributes
    ----------
    offset
        Its offset in the partition.
    timestamp
        Milliseconds since the epoch.
    key, value
        As written, or None. A record without a value is a tombstone, unless it's a marker.
    sequence
        The producer's sequence number; -1 if the producer isn't idempotent.
    marker
        How a transaction ended, if this is a control record, else empty.
    """

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    sequence: int = -1
    marker: Literal["", "commit", "abort"] = ""

    @property
    def tombstone(self) -> bool:
        """Whether it tells the cleaner to remove its key."""
        return self.value is None and not self.marker


@dataclass(frozen=True, slots=True)
class RecordBatch:
    """A record batch.

    Attributes
    ----------
    base_offset, last_offset
        Its first and last offset. Compaction keeps both, even if it removes these records.
    position, size
        Its start in the file and its length, in bytes.
    count
        The number of records it holds now.
    checksum
        CRC-32C of the rest of the batch. It isn't verified, because that would take longer than everything else.
    codec
        One of `CODECS`.
    leader_epoch
        Epoch of the leader that appended it.
    producer_id, producer_epoch, base_sequence
        -1 each, unless the producer is idempotent.
    transactional, control
        Whether it's part of a transaction, and whether it holds the marker that ends one.
    delete_horizon
        When the cleaner may remove its tombstones and markers, in milliseconds since the epoch. None until the cleaner
        has seen them.
    records
        Its records, or None until they're unpacked.
    damage
        Why it couldn't be unpacked, or empty.
    """

    base_offset: int
    last_offset: int
    position: int
    size: int
    count: int
    checksum: int = 0
    codec: str = "none"
    leader_epoch: int = 0
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    transactional: bool = False
    control: bool = False
    delete_horizon: int | None = None
    records: tuple[Record, ...] | None = None
    damage: str = ""


def batches_in(file: BinaryIO, start: int = 0) -> Iterator[RecordBatch]:
    """Yield the batches of a segment file from a position on, without their records.

    It stops before an incomplete batch: the broker may be writing it now, or died while it wrote.
    """
    end = file.seek(0, os.SEEK_END)
    while (batch := next_batch(file, start, end)) is not None:
        yield batch
        start += batch.size


def next_batch(file: BinaryIO, position: int, end: int) -> RecordBatch | None:
    """Return the batch at a position, without its records; None if there is none, or it isn't complete before `end`."""
    file.seek(position)
    header = file.read(_HEADER.size)
    if len(header) < _HEADER.size:
        return None
    base, length, epoch, magic, crc, attributes, delta, first_timestamp, _, producer, producer_epoch, sequence, count = (
        _HEADER.unpack(header)
    )
    size = length + _BEFORE_LENGTH_COUNTS
    if magic != _MAGIC or size < _HEADER.size or position + size > end:
        return None  # zeros, for example: a file system may extend a file before it has the data
    codec = attributes & DefaultRecordBatch.CODEC_MASK
    return RecordBatch(
        base,
        base + delta,
        position,
        size,
        count,
        crc,
        CODECS[codec] if codec < len(CODECS) else f"codec {codec}",
        epoch,
        producer,
        producer_epoch,
        sequence,
        bool(attributes & DefaultRecordBatch.TRANSACTIONAL_MASK),
        bool(attributes & DefaultRecordBatch.CONTROL_MASK),
        first_timestamp if attributes & _DELETE_HORIZON else None,
    )


def with_records(file: BinaryIO, batch: RecordBatch) -> RecordBatch:
    """Return the batch with its records, or with the reason why they can't be unpacked."""
    file.seek(batch.position)
    try:
        unpacked = list(DefaultRecordBatch(file.read(batch.size)))
    except Exception as error:  # each codec's library has errors of its own
        return replace(batch, damage=str(error.args[0]) if error.args else type(error).__name__)
    return replace(
        batch,
        records=tuple(
            Record(
                r.offset,
                r.timestamp,
                r.key,
                r.value,
                -1 if batch.base_sequence < 0 else (batch.base_sequence + r.offset - batch.base_offset) & 0x7FFFFFFF,
                ("commit" if r.commit else "abort") if isinstance(r, ControlRecord) else "",
            )
            for r in unpacked
        ),
    )

"""Describe a log's records: their kind, their text, and which of them are shown in full."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from kafkalab.cluster.log_files import Segment
from kafkalab.cluster.log_reader import LogView
from kafkalab.cluster.record_batches import Record, RecordBatch

__all__ = [
    "IN_FULL",
    "Kind",
    "Lens",
    "batch_words",
    "kind_of",
    "lens",
    "outcomes",
    "record_words",
    "shown_bytes",
    "time_of_day",
]

Kind = Literal["record", "tombstone", "committed", "aborted", "open", "commit", "abort"]
"""``committed``, ``aborted`` and ``open`` records are in a transaction; the markers ``commit`` and ``abort`` end one."""

IN_FULL = 40
"""The number of records shown in full. Each other record is a square."""


@dataclass(frozen=True)
class Lens:
    """The offsets whose records are shown in full, from `first` to `last`."""

    first: int
    last: int

    def holds(self, offset: int) -> bool:
        """Return whether it contains an offset."""
        return self.first <= offset <= self.last


def lens(segments: Iterable[Segment], until: int | None = None) -> Lens:
    """Return the newest `IN_FULL` records, or those up to an offset."""
    batches = [batch for segment in segments for batch in segment.batches]
    offsets = {record.offset for batch in batches for record in batch.records or ()}
    offsets |= {batch.base_offset for batch in batches if batch.damage or batch.records == ()}
    newest = sorted(offset for offset in offsets if until is None or offset <= until)[-IN_FULL:]
    return Lens(newest[0], newest[-1]) if newest else Lens(0, -1)


def outcomes(view: LogView) -> dict[int, Kind]:
    """Return how the transaction of each transactional batch ended, by the batch's base offset.

    A transaction without a marker is open. But below the last stable offset it was committed, because the cleaner
    removes the records of an aborted transaction before its marker.
    """
    kinds: dict[int, Kind] = {}
    pending: dict[int, list[int]] = {}
    stable = view.offsets.last_stable
    for segment in view.only_remote + view.segments:
        for batch in segment.batches:
            if not batch.transactional:
                continue
            if not batch.control:
                kinds[batch.base_offset] = "committed" if stable is not None and batch.last_offset < stable else "open"
                pending.setdefault(batch.producer_id, []).append(batch.base_offset)
            elif batch.records:
                ended: Kind = "committed" if batch.records[0].marker == "commit" else "aborted"
                kinds.update(dict.fromkeys(pending.pop(batch.producer_id, ()), ended))
    return kinds


def kind_of(batch: RecordBatch, record: Record, ended: Mapping[int, Kind]) -> Kind:
    """Return the kind of a record."""
    if record.marker:
        return record.marker
    if batch.transactional:
        return ended.get(batch.base_offset, "open")
    return "tombstone" if record.tombstone else "record"


def shown_bytes(data: bytes | None) -> str:
    """Return a key or a value as text if it's text, else in hexadecimal."""
    if data is None:
        return "null"
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return f"0x{data.hex()}"
    return text if text.isprintable() else f"0x{data.hex()}"


def record_words(record: Record) -> str:
    """Return a record's key and value, or what it means."""
    if record.marker:
        return f"marker: {record.marker}"
    value = "tombstone" if record.tombstone else shown_bytes(record.value)
    return value if record.key is None else f"{shown_bytes(record.key)} → {value}"


def batch_words(batch: RecordBatch, ended: Mapping[int, Kind]) -> list[str]:
    """Describe a batch's header, in lines for a narrow space."""
    words = [f"batch {_range(batch.base_offset, batch.last_offset)}", f"{batch.size:,} B", f"leader epoch {batch.leader_epoch}"]
    if batch.codec != "none":
        words.append(batch.codec)
    lines = [" · ".join(words)]
    if batch.producer_id >= 0:
        by = [f"producer {batch.producer_id}", f"epoch {batch.producer_epoch}"]
        if batch.base_sequence >= 0:
            last = (batch.base_sequence + batch.last_offset - batch.base_offset) & 0x7FFFFFFF
            by.append(f"sequence {_range(batch.base_sequence, last)}")
        if batch.transactional:
            outcome = ended.get(batch.base_offset, "open")
            by.append("control batch" if batch.control else "open transaction" if outcome == "open" else outcome)
        lines.append(" · ".join(by))
    if batch.delete_horizon is not None:
        lines.append(f"tombstones and markers may go after {time_of_day(batch.delete_horizon)}")
    if batch.damage:
        lines.append(f"can't be unpacked: {batch.damage}")
    elif batch.records == ():
        lines.append("no records left: kept for its producer's sequence")
    return lines


def time_of_day(milliseconds: int) -> str:
    """Return a timestamp as the time of day in this machine's time zone."""
    at = datetime.fromtimestamp(milliseconds / 1000)
    return f"{at:%H:%M:%S}.{at.microsecond // 1000:03d}"


def _range(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}–{last}"

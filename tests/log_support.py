"""Partition folders as a broker would write them, without a broker."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from pathlib import Path

from kafka.record.default_records import DefaultRecordBatchBuilder

CONTROL, TRANSACTIONAL, HORIZON = 0x20, 0x10, 0x40
AT = 1_700_000_000_000


def batch(
    base: int,
    records: Iterable[tuple[int, bytes | None, bytes | None]],
    *,
    last: int | None = None,
    epoch: int = 0,
    producer: int = -1,
    sequence: int = -1,
    codec: int = 0,
    attributes: int = 0,
) -> bytes:
    """A batch of (offset, key, value); `last` where compaction took the last ones out."""
    builder = DefaultRecordBatchBuilder(
        2, codec, bool(attributes & TRANSACTIONAL), producer, 0 if producer >= 0 else -1, sequence, 1 << 20
    )
    deltas = [0]
    for offset, key, value in records:
        builder.append(offset - base, AT + offset, key, value, [])
        deltas.append(offset - base)
    data = bytearray(builder.build())
    struct.pack_into(">q", data, 0, base)
    struct.pack_into(">i", data, 12, epoch)
    (flags,) = struct.unpack_from(">h", data, 21)
    struct.pack_into(">hi", data, 21, flags | attributes, (last - base) if last is not None else deltas[-1])
    return bytes(data)


def marker(offset: int, producer: int, kind: str) -> bytes:
    """The control batch that ends a producer's transaction."""
    key = struct.pack(">hh", 0, {"abort": 0, "commit": 1}[kind])
    return batch(offset, [(offset, key, struct.pack(">hi", 0, 0))], producer=producer, attributes=CONTROL | TRANSACTIONAL)


def pairs(base: int, count: int) -> list[tuple[int, bytes, bytes]]:
    """Records K0 → V0, K1 → V1 … from an offset on."""
    return [(base + i, b"K%d" % ((base + i) % 10), b"V%d" % (base + i)) for i in range(count)]


def write_segment(
    folder: Path,
    base: int,
    batches: Sequence[bytes] = (),
    *,
    suffix: str = "",
    offsets: Sequence[tuple[int, int]] = (),
    times: Sequence[tuple[int, int]] = (),
    room: int = 0,
) -> Path:
    """The files of a segment; index entries are given as a broker writes them, and followed by `room` bytes not used yet."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{base:020d}.log{suffix}"
    path.write_bytes(b"".join(batches))
    for kind, form, entries in (("index", ">ii", offsets), ("timeindex", ">qi", times)):
        data = b"".join(struct.pack(form, *entry) for entry in entries) + bytes(room)
        (folder / f"{base:020d}.{kind}{suffix}").write_bytes(data)
    return path

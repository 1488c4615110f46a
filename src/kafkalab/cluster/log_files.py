"""The files of one partition, as a broker keeps them in its data folder. They are read, never touched.

What the files are, `org.apache.kafka.storage.internals.log` says (``LogFileUtils``, ``OffsetIndex``, ``TimeIndex``) and
`org.apache.kafka.storage.internals.checkpoint`; what is in a segment, `record_batches`.
"""

from __future__ import annotations

import contextlib
import os
import re
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO, Literal

from kafkalab.cluster.record_batches import RecordBatch, next_batch, with_records
from kafkalab.errors import NoReplica

__all__ = ["CHECKPOINTS", "UNPACKED_RECORDS", "LogFiles", "LogFolder", "Segment", "SegmentState", "TierFolder"]

SegmentState = Literal["active", "closed", "cleaned", "swap", "deleted", "remote", "fetched"]
"""``active`` is written to, ``cleaned`` is what the cleaner writes, ``swap`` is about to take the place of what it was made of,
``deleted`` goes after ``file.delete.delay.ms``. What is ``remote`` is in the remote tier. What is ``fetched`` is no file: a
leader sent it."""

UNPACKED_RECORDS = 10_000
"""Of so many records, the newest, key and value are read; of older ones the header of their batch."""

CHECKPOINTS = ("cleaner-offset-checkpoint", "log-start-offset-checkpoint", "replication-offset-checkpoint")
"""Files beside the partitions' folders that tell something of each partition; a broker replaces them whole."""

_SEGMENT = re.compile(r"(\d{20})\.log(?:\.(cleaned|swap|deleted))?")
_REMOTE_SEGMENT = re.compile(r"(\d{20})-[A-Za-z0-9_-]{22}\.log")
_OFFSET_ENTRY = struct.Struct(">ii")
_TIME_ENTRY = struct.Struct(">qi")
_CHUNK = 4096
_ATTEMPTS = 5  # to find all files that were listed: a broker renames and removes them meanwhile


@dataclass(frozen=True)
class Segment:
    """One segment: a file of record batches, and its indexes.

    Attributes
    ----------
    base_offset
        The offset after which its files are named.
    state
        See `SegmentState`.
    size
        Of the ``.log`` file, in bytes.
    batches
        In the order of the file. Of the newest `UNPACKED_RECORDS` records of the partition, batches hold their records.
    torn
        Bytes at the end that are not a whole batch.
    offset_index
        Pairs of an offset and the position in the file at which its batch begins.
    time_index
        Pairs of a timestamp (milliseconds since the epoch) and an offset: up to there, no record is newer.
    """

    base_offset: int
    state: SegmentState
    size: int
    batches: tuple[RecordBatch, ...] = ()
    torn: int = 0
    offset_index: tuple[tuple[int, int], ...] = ()
    time_index: tuple[tuple[int, int], ...] = ()

    @property
    def count(self) -> int:
        """How many records it holds."""
        return sum(batch.count for batch in self.batches)

    @property
    def next_offset(self) -> int:
        """The offset after its last batch; its base offset while it is empty."""
        return self.batches[-1].last_offset + 1 if self.batches else self.base_offset

    @property
    def live(self) -> bool:
        """Whether it is part of the log: neither being made by the cleaner nor on its way out."""
        return self.state in ("active", "closed")


@dataclass(frozen=True)
class LogFiles:
    """All files of a partition on one broker at one moment.

    Attributes
    ----------
    segments
        By base offset; those that are on their way out after those that are part of the log.
    leader_epochs
        ``leader-epoch-checkpoint``: pairs of an epoch and the offset at which it began.
    clean_until
        ``cleaner-offset-checkpoint``: where the cleaner begins next; None if it has never cleaned this partition.
    start, high_watermark
        ``log-start-offset-checkpoint`` and ``replication-offset-checkpoint``: what the broker wrote down last, which it does
        every some seconds and when it shuts down; None if it hasn't.
    """

    segments: tuple[Segment, ...] = ()
    leader_epochs: tuple[tuple[int, int], ...] = ()
    clean_until: int | None = None
    start: int | None = None
    high_watermark: int | None = None

    @property
    def live(self) -> tuple[Segment, ...]:
        """The segments that are part of the log."""
        return tuple(segment for segment in self.segments if segment.live)

    def gaps(self) -> tuple[tuple[int, int], ...]:
        """Offsets before the last record on disk that no record has any more, as first and last of each gap.

        They are counted from where the first segment begins. Of batches that are not unpacked, only what is missing between
        them is known.
        """
        found: list[tuple[int, int]] = []
        expected = self.live[0].base_offset if self.live else 0
        for first, last in self._stretches():
            if first > expected:
                found.append((expected, first - 1))
            expected = max(last + 1, expected)
        return tuple(found)

    def _stretches(self) -> Iterator[tuple[int, int]]:
        for segment in self.live:
            for batch in segment.batches:
                if batch.records is not None:
                    for record in batch.records:
                        yield record.offset, record.offset
                elif batch.count:
                    yield batch.base_offset, batch.last_offset


class _Folder:
    """Segment files that are read again and again, and each batch once."""

    def __init__(self, unpacked: int) -> None:
        self._unpacked = unpacked
        self._known: dict[int, _SegmentFile] = {}  # by inode: a file keeps it when it is renamed

    def _open(self, path: Path) -> _SegmentFile:
        with open(path, "rb") as file:
            inode = os.fstat(file.fileno()).st_ino
            known = self._known.get(inode) or _SegmentFile(inode)
            known.read(path, file)
        return known

    def _keep(self, files: Iterable[_SegmentFile]) -> None:
        """Forget all other files, and unpack the newest records of these, which come in order of importance."""
        room = self._unpacked
        self._known = {}
        for file in files:
            self._known[file.inode] = file
            room = file.unpack(room)


class TierFolder(_Folder):
    """Reads what the remote tier has of a partition.

    Parameters
    ----------
    unpacked
        Of how many records key and value are read.
    """

    def __init__(self, *, unpacked: int = UNPACKED_RECORDS) -> None:
        super().__init__(unpacked)

    def read(self, folder: Path) -> tuple[Segment, ...]:
        """Segments as they are now, by base offset, from the partition's folder in the tier; none if that folder is gone."""
        found: dict[int, _SegmentFile] = {}
        with contextlib.suppress(FileNotFoundError):  # they are being deleted
            for path in sorted(folder.iterdir()):
                if match := _REMOTE_SEGMENT.fullmatch(path.name):
                    base, file = int(match[1]), self._open(path)
                    if base not in found or file.size > found[base].size:  # a first try to copy it may have left a part
                        found[base] = file
        self._keep(reversed(found.values()))
        return tuple(file.segment(base, "remote") for base, file in found.items())


class LogFolder(_Folder):
    """Reads a partition's folder again and again, and each batch once.

    Parameters
    ----------
    data
        The broker's data folder.
    topic, partition
        Which partition.
    unpacked
        Of how many records key and value are read.
    """

    def __init__(self, data: Path, topic: str, partition: int, *, unpacked: int = UNPACKED_RECORDS) -> None:
        super().__init__(unpacked)
        self._data = data
        self._name = f"{topic}-{partition}"

    def read(self) -> LogFiles:
        """The files as they are now. What is being written is left out until it is whole.

        Raises
        ------
        NoReplica
            When there is no such folder, or none any more.
        """
        folder, data, name = self._data / self._name, self._data, self._name
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                segments = self._segments(folder)
                break
            except FileNotFoundError as error:
                if not folder.is_dir() or attempt == _ATTEMPTS:
                    raise NoReplica(
                        f"there is no folder {name} in the broker's data folder: the topic was deleted, or the replica "
                        "moved to another broker or another of its log.dirs"
                    ) from error
        epochs = tuple((int(epoch), int(start)) for epoch, start in _lines(folder / "leader-epoch-checkpoint", 2))
        return LogFiles(segments, epochs, *(_checkpoint(data / file, name) for file in CHECKPOINTS))

    def _segments(self, folder: Path) -> tuple[Segment, ...]:
        found: list[tuple[int, str, _SegmentFile]] = []
        for path in folder.iterdir():
            if match := _SEGMENT.fullmatch(path.name):
                found.append((int(match[1]), match[2] or "", self._open(path)))
        found.sort(key=lambda entry: (entry[0], entry[1]))
        last = max((base for base, suffix, _ in found if not suffix), default=-1)
        newest = found[::-1]
        self._keep([file for _, suffix, file in newest if not suffix] + [file for _, suffix, file in newest if suffix])
        return tuple(
            file.segment(base, _state(suffix) if suffix else "active" if base == last else "closed")
            for base, suffix, file in found
        )


def _state(suffix: str) -> SegmentState:
    return "cleaned" if suffix == "cleaned" else "swap" if suffix == "swap" else "deleted"


@dataclass
class _SegmentFile:
    """What is known of one file; it grows, is cut off at its end, or is replaced by another one of the same name."""

    inode: int
    path: Path = Path()
    size: int = 0
    changed: int = -1
    batches: list[RecordBatch] = field(default_factory=list)

    def read(self, path: Path, file: BinaryIO) -> None:
        status = os.fstat(file.fileno())
        self.path = path
        if (status.st_size, status.st_mtime_ns) == (self.size, self.changed):
            return
        # Also what was read may be another now: a follower cuts off what a new leader does not have, and writes on.
        # A header holds a checksum of its batch.
        end = status.st_size
        if self.batches and next_batch(file, self.batches[-1].position, end) != _packed(self.batches[-1]):
            self.batches = []
        position = self._end()
        while (batch := next_batch(file, position, end)) is not None:
            self.batches.append(batch)
            position += batch.size
        self.size, self.changed = end, status.st_mtime_ns

    def unpack(self, room: int) -> int:
        """Unpack the newest batches with together at most so many records; how many more may be unpacked elsewhere."""
        missing = []
        for i in range(len(self.batches) - 1, -1, -1):
            batch = self.batches[i]
            room -= batch.count
            if room < 0:
                self._pack(i)
                break
            if batch.records is None and not batch.damage:
                missing.append(i)
        if missing:
            with open(self.path, "rb") as file:
                for i in missing:
                    self.batches[i] = with_records(file, self.batches[i])
        return max(room, -1)

    def _pack(self, last: int) -> None:
        for i in range(last, -1, -1):
            if self.batches[i].records is None:
                break
            self.batches[i] = _packed(self.batches[i])

    def _end(self) -> int:
        return self.batches[-1].position + self.batches[-1].size if self.batches else 0

    def segment(self, base: int, state: SegmentState) -> Segment:
        stem, _, suffix = self.path.name.partition(".log")
        folder = self.path.parent
        return Segment(
            base,
            state,
            self.size,
            tuple(self.batches),
            max(0, self.size - self._end()),
            tuple(_offset_entries(folder / f"{stem}.index{suffix}", base)),
            tuple(_time_entries(folder / f"{stem}.timeindex{suffix}", base)),
        )


def _packed(batch: RecordBatch) -> RecordBatch:
    return replace(batch, records=None, damage="")


def _offset_entries(path: Path, base: int) -> Iterator[tuple[int, int]]:
    for offset, position in _entries(path, _OFFSET_ENTRY):
        yield base + offset, position


def _time_entries(path: Path, base: int) -> Iterator[tuple[int, int]]:
    for timestamp, offset in _entries(path, _TIME_ENTRY):
        yield timestamp, base + offset


def _entries(path: Path, entry: struct.Struct) -> Iterator[tuple[int, int]]:
    """Entries of an index up to the first one that is not used yet: a broker lays an index out at full size, with zeros."""
    try:
        with open(path, "rb") as file:
            while chunk := file.read(_CHUNK * entry.size):
                for first, second in entry.iter_unpack(chunk[: len(chunk) // entry.size * entry.size]):
                    if first == second == 0:
                        return
                    yield first, second
    except FileNotFoundError:  # the cleaner writes the batches before the indexes, and indexes go first
        return


def _checkpoint(path: Path, name: str) -> int | None:
    topic, _, partition = name.rpartition("-")
    return next((int(offset) for t, p, offset in _lines(path, 3) if (t, p) == (topic, partition)), None)


def _lines(path: Path, words: int) -> Iterator[list[str]]:
    """Entries of a checkpoint file, after its version and their number."""
    try:
        text = path.read_text()
    except FileNotFoundError:
        return
    for line in text.splitlines()[2:]:
        if len(entry := line.split()) == words:
            yield entry

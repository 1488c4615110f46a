"""Read the files of one partition in a broker's data folder, without changing them.

`org.apache.kafka.storage.internals.log` (``LogFileUtils``, ``OffsetIndex``, ``TimeIndex``) and
`org.apache.kafka.storage.internals.checkpoint` define the files. `record_batches` reads the content of a segment.
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
"""``active`` is being written to. ``cleaned`` is being written by the cleaner. ``swap`` is about to replace its sources.

``deleted`` goes after ``file.delete.delay.ms``. ``remote`` is in the remote tier. ``fetched`` isn't a file: a leader
sent it."""

UNPACKED_RECORDS = 10_000
"""The number of newest records whose key and value are read. Older batches only get their header read."""

CHECKPOINTS = ("cleaner-offset-checkpoint", "log-start-offset-checkpoint", "replication-offset-checkpoint")
"""Files beside the partitions' folders with a value for each partition. A broker replaces such a file as a whole."""

_SEGMENT = re.compile(r"(\d{20})\.log(?:\.(cleaned|swap|deleted))?")
_REMOTE_SEGMENT = re.compile(r"(\d{20})-[A-Za-z0-9_-]{22}\.log")
_OFFSET_ENTRY = struct.Struct(">ii")
_TIME_ENTRY = struct.Struct(">qi")
_CHUNK = 4096
_ATTEMPTS = 5  # to find all listed files, because a broker renames and removes some meanwhile


@dataclass(frozen=True)
class Segment:
    """One segment: a file of record batches, and its indexes.

    Attributes
    ----------
    base_offset
        The offset in the names of its files.
    state
        See `SegmentState`.
    size
        Size of the ``.log`` file in bytes.
    batches
        Batches in file order. The partition's newest `UNPACKED_RECORDS` records are unpacked; batches of older ones
        aren't.
    torn
        Bytes at the end that don't form a whole batch.
    offset_index
        Pairs of an offset and the file position where its batch begins.
    time_index
        Pairs of a timestamp (milliseconds since the epoch) and an offset: no record up to that offset is newer.
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
        """The offset after its last batch, or its base offset while it's empty."""
        return self.batches[-1].last_offset + 1 if self.batches else self.base_offset

    @property
    def live(self) -> bool:
        """Whether it's part of the log: the cleaner isn't still writing it, and it isn't being deleted."""
        return self.state in ("active", "closed")


@dataclass(frozen=True)
class LogFiles:
    """All files of a partition on one broker at one moment.

    Attributes
    ----------
    segments
        By base offset. Segments that are being deleted come after those that are part of the log.
    leader_epochs
        ``leader-epoch-checkpoint``: pairs of an epoch and its first offset.
    clean_until
        ``cleaner-offset-checkpoint``: where the cleaner starts next; None if it has never cleaned this partition.
    start, high_watermark
        ``log-start-offset-checkpoint`` and ``replication-offset-checkpoint``: the values that the broker wrote last. It
        writes them every few seconds and when it shuts down. None if it hasn't yet.
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
        """Ranges of offsets before the last record on disk that no record has any more: first and last of each gap.

        They count from the start of the first segment. For batches that aren't unpacked, only the gaps between them are
        known.
        """
        gaps: list[tuple[int, int]] = []
        expected = self.live[0].base_offset if self.live else 0
        for first, last in self._stretches():
            if first > expected:
                gaps.append((expected, first - 1))
            expected = max(last + 1, expected)
        return tuple(gaps)

    def _stretches(self) -> Iterator[tuple[int, int]]:
        for segment in self.live:
            for batch in segment.batches:
                if batch.records is not None:
                    for record in batch.records:
                        yield record.offset, record.offset
                elif batch.count:
                    yield batch.base_offset, batch.last_offset


class _Folder:
    """Segment files that are read repeatedly, but each batch only once."""

    def __init__(self, unpacked: int) -> None:
        self._unpacked = unpacked
        self._known: dict[int, _SegmentFile] = {}  # by inode, which a file keeps when it's renamed

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
    """Read a partition's files in the remote tier.

    Parameters
    ----------
    unpacked
        The number of records whose key and value are read.
    """

    def __init__(self, *, unpacked: int = UNPACKED_RECORDS) -> None:
        super().__init__(unpacked)

    def read(self, folder: Path) -> tuple[Segment, ...]:
        """Return the current segments by base offset, from the partition's folder in the tier; none if the folder is gone."""
        files: dict[int, _SegmentFile] = {}
        with contextlib.suppress(FileNotFoundError):  # it's being deleted
            for path in sorted(folder.iterdir()):
                if match := _REMOTE_SEGMENT.fullmatch(path.name):
                    base, file = int(match[1]), self._open(path)
                    if base not in files or file.size > files[base].size:  # an earlier failed copy can leave a part
                        files[base] = file
        self._keep(reversed(files.values()))
        return tuple(file.segment(base, "remote") for base, file in files.items())


class LogFolder(_Folder):
    """Read a partition's folder repeatedly, but each batch only once.

    Parameters
    ----------
    data
        The broker's data folder.
    topic, partition
        Which partition.
    unpacked
        The number of records whose key and value are read.
    """

    def __init__(self, data: Path, topic: str, partition: int, *, unpacked: int = UNPACKED_RECORDS) -> None:
        super().__init__(unpacked)
        self._data = data
        self._name = f"{topic}-{partition}"

    def read(self) -> LogFiles:
        """Return the current files. A batch that is still being written is left out until it's complete.

        Raises
        ------
        NoReplica
            If the folder doesn't exist, or no longer exists.
        """
        folder, data, name = self._data / self._name, self._data, self._name
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                segments = self._segments(folder)
                break
            except FileNotFoundError as error:
                if not folder.is_dir() or attempt == _ATTEMPTS:
                    raise NoReplica(
                        f"there is no folder {name} in the broker's data folder: the broker hasn't made it yet, the topic was "
                        "deleted, or the replica moved to another broker or another of its log.dirs"
                    ) from error
        epochs = tuple((int(epoch), int(start)) for epoch, start in _lines(folder / "leader-epoch-checkpoint", 2))
        return LogFiles(segments, epochs, *(_checkpoint(data / file, name) for file in CHECKPOINTS))

    def _segments(self, folder: Path) -> tuple[Segment, ...]:
        segments: list[tuple[int, str, _SegmentFile]] = []
        for path in folder.iterdir():
            if match := _SEGMENT.fullmatch(path.name):
                segments.append((int(match[1]), match[2] or "", self._open(path)))
        # A broker that begins a segment while the active one is empty deletes that: nothing ever was in it. It happens to
        # the first segment if its index has room for one entry only.
        segments = [(base, suffix, file) for base, suffix, file in segments if file.size or suffix != "deleted"]
        segments.sort(key=lambda entry: (entry[0], entry[1]))
        last = max((base for base, suffix, _ in segments if not suffix), default=-1)
        newest = segments[::-1]
        self._keep([file for _, suffix, file in newest if not suffix] + [file for _, suffix, file in newest if suffix])
        return tuple(
            file.segment(base, _state(suffix) if suffix else "active" if base == last else "closed")
            for base, suffix, file in segments
        )


def _state(suffix: str) -> SegmentState:
    return "cleaned" if suffix == "cleaned" else "swap" if suffix == "swap" else "deleted"


@dataclass
class _SegmentFile:
    """What is known about one file, which can grow, be truncated, or be replaced by a file of the same name."""

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
        # Bytes that were already read can change, too: a follower truncates what a new leader doesn't have, and
        # continues from there. Comparing a batch's header, with its checksum, shows that.
        end = status.st_size
        if self.batches and next_batch(file, self.batches[-1].position, end) != _packed(self.batches[-1]):
            self.batches = []
        position = self._end()
        while (batch := next_batch(file, position, end)) is not None:
            self.batches.append(batch)
            position += batch.size
        self.size, self.changed = end, status.st_mtime_ns

    def unpack(self, room: int) -> int:
        """Unpack the newest batches with at most this many records in total, and return how many may still be unpacked."""
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
    """Yield an index's entries up to the first unused one: a broker allocates an index at full size, filled with zeros."""
    try:
        with open(path, "rb") as file:
            while chunk := file.read(_CHUNK * entry.size):
                for first, second in entry.iter_unpack(chunk[: len(chunk) // entry.size * entry.size]):
                    if first == second == 0:
                        return
                    yield first, second
    except FileNotFoundError:  # the cleaner writes batches before indexes, and indexes are deleted first
        return


def _checkpoint(path: Path, name: str) -> int | None:
    topic, _, partition = name.rpartition("-")
    return next((int(offset) for t, p, offset in _lines(path, 3) if (t, p) == (topic, partition)), None)


def _lines(path: Path, words: int) -> Iterator[list[str]]:
    """Yield the entries of a checkpoint file, which follow its version and their count."""
    try:
        text = path.read_text()
    except FileNotFoundError:
        return
    for line in text.splitlines()[2:]:
        if len(entry := line.split()) == words:
            yield entry

"""What is read from a partition's folder."""

from __future__ import annotations

import io
import os
import struct
import tarfile
import time
from pathlib import Path

import pyarrow
import pytest

from kafkalab.cluster import log_files
from kafkalab.cluster.log_files import LogFolder, TierFolder
from kafkalab.cluster.record_batches import RecordBatch, batches_in, with_records
from kafkalab.errors import NoReplica
from kafkalab.tar import mirror
from log_support import AT, HORIZON, TRANSACTIONAL, batch, marker, pairs, write_segment


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "t-0"
    made.mkdir()
    return made


@pytest.fixture
def log(folder: Path) -> LogFolder:
    return LogFolder(folder.parent, "t", 0)


def unpacked(data: bytes) -> list[RecordBatch]:
    file = io.BytesIO(data)
    return [with_records(file, found) for found in list(batches_in(file))]


def offsets(segment: log_files.Segment) -> list[int]:
    return [record.offset for found in segment.batches for record in found.records or ()]


# -- batches


def test_a_batch_tells_all_that_its_header_has() -> None:
    data = batch(5, pairs(5, 3), epoch=2, producer=4000, sequence=7, attributes=TRANSACTIONAL)
    (found,) = unpacked(data)
    assert (found.base_offset, found.last_offset, found.position, found.size, found.count) == (5, 7, 0, len(data), 3)
    assert (found.producer_id, found.producer_epoch, found.base_sequence, found.leader_epoch) == (4000, 0, 7, 2)
    assert found.transactional and not found.control and found.delete_horizon is None
    assert [(r.offset, r.key, r.value, r.timestamp, r.sequence) for r in found.records] == [
        (5, b"K5", b"V5", AT + 5, 7),
        (6, b"K6", b"V6", AT + 6, 8),
        (7, b"K7", b"V7", AT + 7, 9),
    ]


def test_tombstones_markers_and_records_without_a_key() -> None:
    plain, commit, abort = unpacked(
        batch(0, [(0, b"K", None), (1, None, b"V")]) + marker(2, 9, "commit") + marker(3, 9, "abort")
    )
    assert [r.tombstone for r in plain.records] == [True, False] and plain.records[1].key is None
    assert commit.control and [r.marker for r in (*commit.records, *abort.records)] == ["commit", "abort"]
    assert not commit.records[0].tombstone


def test_a_sequence_begins_anew_after_the_greatest() -> None:
    (found,) = unpacked(batch(0, pairs(0, 2), producer=1, sequence=2**31 - 1))
    assert [r.sequence for r in found.records] == [2**31 - 1, 0]


def test_what_the_cleaner_left_of_a_batch() -> None:
    data = batch(10, [(11, b"a", None)], last=14, attributes=HORIZON) + batch(15, [], last=17, producer=3, sequence=0)
    some, none = unpacked(data)
    assert (some.base_offset, some.last_offset, some.count, some.delete_horizon) == (10, 14, 1, AT + 11)
    assert (none.count, none.last_offset, none.records) == (0, 17, ())


def compressed(codec: str) -> bytes:
    """A batch of a record, compressed by another library than the one that reads it."""
    plain = batch(0, [(0, b"k", b"v" * 1000)], codec=1 if codec == "gzip" else 0)
    if codec == "gzip":
        return plain
    packed = pyarrow.compress(plain[61:], codec="snappy" if codec == "xerial" else codec, asbytes=True)
    if codec == "xerial":
        packed = b"\x82SNAPPY\x00" + struct.pack(">iii", 1, 1, len(packed)) + packed
    head = bytearray(plain[:61])
    struct.pack_into(">i", head, 8, len(packed) + 49)
    struct.pack_into(">h", head, 21, {"snappy": 2, "xerial": 2, "lz4": 3, "zstd": 4}[codec])
    return bytes(head) + packed


@pytest.mark.parametrize("codec", ["gzip", "lz4", "zstd", "snappy", "xerial"])
def test_compressed_batches_are_unpacked(codec: str) -> None:
    (found,) = unpacked(compressed(codec))
    assert found.codec == ("snappy" if codec == "xerial" else codec) and not found.damage
    assert found.records[0].value == b"v" * 1000


@pytest.mark.parametrize("codec", ["gzip", "lz4", "zstd", "snappy", "xerial"])
def test_damage_to_a_compressed_batch_is_told(codec: str) -> None:
    data = bytearray(compressed(codec))
    data[-20:] = b"\xff" * 20
    (found,) = unpacked(bytes(data))
    assert found.records is None and found.damage


def test_a_damaged_batch_says_so_and_the_next_one_is_read() -> None:
    data = bytearray(batch(0, pairs(0, 2)) + batch(2, pairs(2, 1)))
    data[61:66] = b"\xff" * 5
    first, second = unpacked(bytes(data))
    assert first.records is None and first.damage
    assert [r.offset for r in second.records] == [2]


# -- the folder


def test_segments_with_their_indexes(folder: Path, log: LogFolder) -> None:
    first = batch(0, pairs(0, 2))
    write_segment(folder, 0, [first, batch(2, pairs(2, 1))], offsets=[(2, len(first))], times=[(AT + 2, 2)])
    write_segment(folder, 3, [batch(3, pairs(3, 4))], offsets=[(3, 70)], times=[(AT + 6, 3)], room=1 << 20)
    closed, active = log.read().segments
    assert (closed.base_offset, closed.state, closed.count, closed.next_offset) == (0, "closed", 3, 3)
    assert (active.base_offset, active.state, active.count, active.torn) == (3, "active", 4, 0)
    assert closed.offset_index == ((2, len(first)),) and closed.time_index == ((AT + 2, 2),)
    assert active.offset_index == ((6, 70),) and active.time_index == ((AT + 6, 6),)


def test_an_empty_log(folder: Path, log: LogFolder) -> None:
    assert log.read().segments == ()
    write_segment(folder, 0, room=12)
    (only,) = log.read().segments
    assert (only.state, only.size, only.count, only.next_offset, only.offset_index) == ("active", 0, 0, 0, ())
    assert log.read().gaps() == ()


@pytest.mark.parametrize("cut", [1, 60, 61, 70])
def test_a_batch_that_is_not_whole_is_left_out_until_it_is(folder: Path, log: LogFolder, cut: int) -> None:
    whole, torn = batch(0, pairs(0, 2)), batch(2, pairs(2, 2))
    path = write_segment(folder, 0, [whole, torn[:cut]])
    (segment,) = log.read().segments
    assert offsets(segment) == [0, 1] and segment.torn == cut
    with open(path, "ab") as file:
        file.write(torn[cut:])
    (segment,) = log.read().segments
    assert offsets(segment) == [0, 1, 2, 3] and segment.torn == 0


def test_zeros_at_the_end_are_no_batch(folder: Path, log: LogFolder) -> None:
    write_segment(folder, 0, [batch(0, pairs(0, 1)), bytes(200)])
    (segment,) = log.read().segments
    assert offsets(segment) == [0] and segment.torn == 200


def test_an_index_that_ends_amid_an_entry(folder: Path, log: LogFolder) -> None:
    write_segment(folder, 0, [batch(0, pairs(0, 9))], offsets=[(3, 80)], times=[(AT, 3)])
    for kind in ("index", "timeindex"):
        with open(folder / f"{0:020d}.{kind}", "ab") as file:
            file.write(b"\x00\x00\x01")
    (segment,) = log.read().segments
    assert segment.offset_index == ((3, 80),) and segment.time_index == ((AT, 3),)


def test_what_the_cleaner_makes_and_what_goes(folder: Path, log: LogFolder) -> None:
    old, new = batch(0, pairs(0, 3)), batch(0, pairs(0, 3)[2:], last=2)
    write_segment(folder, 0, [old])
    write_segment(folder, 3, [batch(3, pairs(3, 1))])
    write_segment(folder, 0, [new], suffix=".cleaned")
    assert [(s.base_offset, s.state) for s in log.read().segments] == [(0, "closed"), (0, "cleaned"), (3, "active")]
    stem = f"{0:020d}"
    for kind in ("log", "index", "timeindex"):
        (folder / f"{stem}.{kind}.cleaned").rename(folder / f"{stem}.{kind}.swap")
    assert [s.state for s in log.read().segments] == ["closed", "swap", "active"]
    for kind in ("log", "index", "timeindex"):
        (folder / f"{stem}.{kind}").rename(folder / f"{stem}.{kind}.deleted")
        (folder / f"{stem}.{kind}.swap").rename(folder / f"{stem}.{kind}")
    files = log.read()
    assert [(s.state, offsets(s)) for s in files.segments] == [("closed", [2]), ("deleted", [0, 1, 2]), ("active", [3])]
    assert [s.state for s in files.live] == ["closed", "active"]


def test_an_empty_segment_that_another_of_its_name_replaced_is_left_out(folder: Path, log: LogFolder) -> None:
    """As a broker does with a log's first segment, if its index has room for one entry only."""
    write_segment(folder, 0, [batch(0, pairs(0, 1))])
    write_segment(folder, 0, [], suffix=".deleted")
    write_segment(folder, 1, [])
    assert [(s.base_offset, s.state) for s in log.read().segments] == [(0, "closed"), (1, "active")]


def test_gaps_are_offsets_between_records_that_no_record_has(folder: Path, log: LogFolder) -> None:
    write_segment(folder, 0, [batch(0, [(1, b"a", b"1"), (3, b"b", b"1")], last=4), batch(5, pairs(5, 1))])
    write_segment(folder, 9, [batch(9, [], last=10), batch(11, pairs(11, 1))])
    write_segment(folder, 0, [batch(0, pairs(0, 9))], suffix=".deleted")
    assert log.read().gaps() == ((0, 0), (2, 2), (4, 4), (6, 10))


def test_checkpoints(folder: Path, log: LogFolder) -> None:
    assert log.read().leader_epochs == () and log.read().clean_until is None
    (folder / "leader-epoch-checkpoint").write_text("0\n2\n0 0\n3 12\n")
    for name, offset in (("cleaner-offset", 5), ("log-start-offset", 1), ("replication-offset", 12)):
        (folder.parent / f"{name}-checkpoint").write_text(f"0\n3\nt 1 99\nt-0 0 98\nt 0 {offset}\n")
    files = log.read()
    assert files.leader_epochs == ((0, 0), (3, 12))
    assert (files.clean_until, files.start, files.high_watermark) == (5, 1, 12)


def test_a_log_that_is_cut_off_and_written_on(folder: Path, log: LogFolder) -> None:
    """As a follower does whose new leader lacks what it had."""
    first = batch(0, pairs(0, 1))
    path = write_segment(folder, 0, [first, batch(1, pairs(1, 1), epoch=0)])
    log.read()
    path.write_bytes(first + batch(1, [(1, b"other", b"value")], epoch=1) + batch(2, pairs(2, 1), epoch=1))
    (segment,) = log.read().segments
    assert [(b.leader_epoch, b.records[0].key) for b in segment.batches] == [(0, b"K0"), (1, b"other"), (1, b"K2")]


def test_a_folder_that_is_gone(folder: Path, log: LogFolder) -> None:
    folder.rmdir()
    with pytest.raises(
        NoReplica, match="no folder t-0 in the broker's data folder: the broker hasn't made it yet, the topic was"
    ):
        log.read()


def test_a_file_that_is_renamed_while_the_folder_is_read(folder: Path, log: LogFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_segment(folder, 0, [batch(0, pairs(0, 1))])
    write_segment(folder, 1, [batch(1, pairs(1, 1))])
    iterdir, gone = Path.iterdir, []

    def behind_its_back(self: Path) -> object:
        listed = list(iterdir(self))
        if not gone:
            gone.append(path.rename(f"{path}.deleted"))
        return iter(listed)

    monkeypatch.setattr(Path, "iterdir", behind_its_back)
    assert [s.state for s in log.read().segments] == ["deleted", "active"]


def test_segments_in_the_remote_tier(tmp_path: Path) -> None:
    whole, part = batch(0, pairs(0, 2)), batch(0, pairs(0, 2))[:30]
    for name, content in (
        (f"{0:020d}-{'A' * 22}.log", whole),
        (f"{0:020d}-{'B' * 22}.log", part),  # what a try that failed left
        (f"{2:020d}-{'C' * 22}.log", batch(2, pairs(2, 1))),
        (f"{2:020d}-{'C' * 22}.index", b""),
        (f"{3:020d}.log", batch(3, pairs(3, 1))),
    ):
        (tmp_path / name).write_bytes(content)
    found = TierFolder().read(tmp_path)
    assert [(s.base_offset, s.state, offsets(s)) for s in found] == [(0, "remote", [0, 1]), (2, "remote", [2])]
    assert not any(segment.live for segment in found)
    assert TierFolder().read(tmp_path / "gone") == ()


def test_reading_changes_nothing(folder: Path, log: LogFolder) -> None:
    write_segment(folder, 0, [batch(0, pairs(0, 3))], offsets=[(1, 5)], room=64)
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}
    log.read()
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()} == before


# -- many records


def test_of_many_records_the_newest_are_unpacked(folder: Path) -> None:
    log = LogFolder(folder.parent, "t", 0, unpacked=25)
    path = write_segment(folder, 0, [batch(i, pairs(i, 10)) for i in range(0, 40, 10)])
    write_segment(folder, 40, [batch(40, pairs(40, 10))])
    assert [b.records is not None for s in log.read().segments for b in s.batches] == [False, False, False, True, True]
    write_segment(folder, 50, [batch(50, pairs(50, 10))])
    files = log.read()
    assert [b.records is not None for s in files.segments for b in s.batches] == [False] * 4 + [True, True]
    assert sum(s.count for s in files.segments) == 60 and files.gaps() == ()
    path.unlink()
    assert len(log.read().segments) == 2


def test_ten_thousand_records_are_read_once(folder: Path, log: LogFolder) -> None:
    path = write_segment(folder, 0, [batch(i, pairs(i, 10)) for i in range(0, 10_000, 10)])
    first = _seconds(log)
    with open(path, "ab") as file:
        file.write(batch(10_000, pairs(10_000, 1)))
    again = min(_seconds(log) for _ in range(3))
    assert again < first / 5
    assert log.read().segments[0].count == 10_001


def _seconds(log: LogFolder) -> float:
    began = time.perf_counter()
    log.read()
    return time.perf_counter() - began


# -- a copy that is kept up


def _archive(files: dict[str, bytes]) -> io.BytesIO:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return io.BytesIO(data.getvalue())


def test_a_mirror_touches_only_what_changed(tmp_path: Path) -> None:
    def take(files: dict[str, bytes]) -> dict[str, tuple[bytes, int, int]]:
        with tarfile.open(fileobj=_archive(files)) as archive:
            mirror(archive, tmp_path)
        found = {p.relative_to(tmp_path): p for p in tmp_path.rglob("*") if p.is_file()}
        return {str(name): (p.read_bytes(), p.stat().st_ino, p.stat().st_mtime_ns) for name, p in found.items()}

    first = take({"t-0/a": b"one", "t-0/b": b"two", "t-0/c": b"three"})
    os.utime(tmp_path / "t-0/a", ns=(1, 1))
    second = take({"t-0/a": b"one", "t-0/b": b"two and", "t-0/d": b"four"})
    assert {name: content for name, (content, *_) in second.items()} == {"t-0/a": b"one", "t-0/b": b"two and", "t-0/d": b"four"}
    assert second["t-0/a"][2] == 1
    assert second["t-0/b"][1] == first["t-0/b"][1]  # it was appended to, so that what was read of it counts
    third = take({"t-0/b": b"other"})
    assert third["t-0/b"][:2] != second["t-0/b"][:2]


def test_a_mirror_loses_the_files_and_folders_that_are_gone(tmp_path: Path) -> None:
    for folder in ("store/t-0", "store/u-0"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "a").write_text("old")
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        for name in ("store", "store/t-0"):
            entry = tarfile.TarInfo(name)
            entry.type = tarfile.DIRTYPE
            archive.addfile(entry)
    with tarfile.open(fileobj=io.BytesIO(data.getvalue())) as archive:
        mirror(archive, tmp_path)
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")) == ["store", "store/t-0"]


def test_a_mirror_of_an_archive_that_breaks_off_keeps_the_rest(tmp_path: Path) -> None:
    with tarfile.open(fileobj=_archive({"t-0/a": b"old", "t-0/b": b"old"})) as archive:
        mirror(archive, tmp_path)
    whole = _archive({"t-0/a": b"new", "t-0/b": b"x" * 2000}).getvalue()
    with pytest.raises(tarfile.ReadError), tarfile.open(fileobj=io.BytesIO(whole[:2048])) as archive:
        mirror(archive, tmp_path)
    assert (tmp_path / "t-0/a").read_bytes() == b"new" and (tmp_path / "t-0/b").read_bytes() == b"old"

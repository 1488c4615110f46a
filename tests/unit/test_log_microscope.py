"""What the log microscope draws, and how it follows a log; the files are real, the brokers are not."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import ipywidgets
import pytest

from kafkalab.cli.storing import machine_marks
from kafkalab.cluster.backends.control import Control
from kafkalab.cluster.cluster import Cluster
from kafkalab.cluster.log_files import LogFolder, TierFolder
from kafkalab.cluster.log_offsets import LogOffsets
from kafkalab.cluster.log_reader import LogView
from kafkalab.cluster.observer import Observer
from kafkalab.cluster.view import ClusterView, PartitionView
from kafkalab.errors import NoReplica, UnknownPartition, UnknownTopic
from kafkalab.waiting import wait_until
from kafkalab.widgets import LogMicroscope
from kafkalab.widgets.log_drawing import log_picture, overview_html, segments_html
from kafkalab.widgets.log_records import lens, outcomes
from kafkalab.widgets.log_segments import segment_cards
from kafkalab.widgets.palette import THEMED
from log_support import AT, TRANSACTIONAL, batch, marker, pairs, write_segment
from picture_support import SVG, svg_roots, texts
from support import PATIENCE
from virtual_clock import VirtualClock
from widget_support import WIDGET_VIEW, Shown, find, html, show


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "t-0"


def look(folder: Path, offsets: LogOffsets | None = None, **changed: object) -> LogView:
    """A view of the folder on broker 1 of three."""
    folder.mkdir(exist_ok=True)
    view = LogView("t", 0, 1, "up", 1, (0, 1, 2), (0, 1), offsets or LogOffsets(), LogFolder(folder.parent, "t", 0).read())
    return replace(view, **changed)


def words(view: LogView, until: int | None = None) -> list[str]:
    return texts(log_picture(view, until).html)


def one_a_segment(folder: Path, kept: list[int], deleted: Iterable[int] = ()) -> None:
    for offset in kept:
        write_segment(folder, offset, [batch(offset, pairs(offset, 1))], times=[(AT + offset, 0)])
    for offset in deleted:
        write_segment(folder, offset, [batch(offset, pairs(offset, 1))], suffix=".deleted")


# -- what is drawn


def test_compaction_one_record_a_segment(folder: Path) -> None:
    one_a_segment(folder, [1, 3, 8, 9], deleted=[2])
    (folder.parent / "cleaner-offset-checkpoint").write_text("0\n1\nt 0 8\n")
    view = look(folder, LogOffsets(0, 10, 10, ends={0: 10, 1: 10, 2: 4}, compacted=True))
    shown = words(view)
    assert {"deleted", "active", "2 gone", "4–7 gone", "2, 4–7", "clean up to", "dirty up to"} <= set(shown)
    assert {f"{offset:020d}" for offset in (1, 2, 3, 8, 9)} <= set(shown)
    assert shown[shown.index("clean up to") + 1] == "8" and shown[shown.index("dirty up to") + 1] == "9"
    assert shown[shown.index("broker 2, out of ISR") + 1] == "4"
    assert shown[shown.index("broker 1, leads") + 1] == "10"
    assert [shown[shown.index(mark) + 1] for mark in ("log start", "last stable", "high watermark")] == ["0", "10", "10"]
    assert "K8 → V8" in shown and any(line.startswith("time index: ") for line in shown)


def test_transactions_and_their_markers(folder: Path) -> None:
    tx = TRANSACTIONAL
    write_segment(
        folder,
        0,
        [
            batch(0, pairs(0, 2), producer=7, sequence=0, attributes=tx),
            batch(2, pairs(2, 1), producer=8, sequence=0, attributes=tx),
            marker(3, 7, "abort"),
            marker(4, 8, "commit"),
            batch(5, pairs(5, 1), producer=7, sequence=2, attributes=tx),
        ],
    )
    view = look(folder, LogOffsets(0, 6, 5))
    assert outcomes(view) == {0: "aborted", 2: "committed", 5: "open"}
    shown = words(view)
    assert {"marker: abort", "marker: commit"} <= set(shown)
    assert "producer 7 · epoch 0 · sequence 0–1 · aborted" in shown
    assert "producer 8 · epoch 0 · sequence 0 · committed" in shown
    assert "producer 7 · epoch 0 · sequence 2 · open transaction" in shown


def test_a_committed_transaction_whose_marker_was_cleaned_away(folder: Path) -> None:
    write_segment(folder, 0, [batch(0, pairs(0, 1), producer=7, sequence=0, attributes=TRANSACTIONAL), batch(5, pairs(5, 1))])
    assert outcomes(look(folder, LogOffsets(0, 6, 6))) == {0: "committed"}


def test_keys_and_values_of_any_kind(folder: Path) -> None:
    records = [(0, b"k", None), (1, None, b"v"), (2, b"\xff\x00", b"a\n"), (3, "ключ".encode(), b"<b>&")]
    write_segment(folder, 0, [batch(0, records)])
    shown = words(look(folder))
    assert {"k → tombstone", "v", "0xff00 → 0x610a", "ключ → <b>&"} <= set(shown)
    assert "<b>" not in segments_html(look(folder))


@pytest.mark.parametrize("state", ["active", "cleaned", "swap", "deleted"])
def test_every_state_of_a_segment_has_its_word(folder: Path, state: str) -> None:
    write_segment(folder, 0, [batch(0, pairs(0, 1))], suffix="" if state == "active" else f".{state}")
    expected = {"cleaned": "being cleaned", "swap": "cleaned, taking over"}.get(state, state)
    assert expected in words(look(folder))


def test_what_is_in_the_remote_tier(folder: Path) -> None:
    one_a_segment(folder, [4, 5, 6])
    shown = words(look(folder, LogOffsets(0, 7, 7, local_start=4, tiered=4)))
    assert {
        "Offsets 0–3",
        "only in the remote tier, no longer on this disk",
        "closed, in remote tier",
        "closed",
        "active",
    } <= set(shown)
    assert shown[shown.index("in remote tier") + 1] == "≤ 4" and shown[shown.index("on disk from") + 1] == "4"
    assert "in remote tier" not in words(look(folder, LogOffsets(0, 7, 7)))


def test_segments_in_the_remote_tier(folder: Path) -> None:
    one_a_segment(folder, [4, 5])
    tier = folder.parent / "tier"
    tier.mkdir()
    for offset in (2, 3, 4):
        (tier / f"{offset:020d}-{'A' * 22}.log").write_bytes(batch(offset, pairs(offset, 1)))
    view = look(folder, LogOffsets(2, 6, 6, local_start=4, tiered=4), remote=TierFolder().read(tier))
    assert [segment.base_offset for segment in view.only_remote] == [2, 3]
    shown = words(view)
    assert [word for word in shown if "tier" in word] == [
        "3 in the remote tier",
        "in remote tier",
        "in the remote tier only",
        "in the remote tier only",
        "closed, in remote tier",
    ]
    assert {f"{2:020d}", "K2 → V2", "K3 → V3"} <= set(shown)
    summary = log_picture(view).summary
    assert "3 in the remote tier" in summary and "segment 2: in the remote tier only, 1 record" in summary


def test_a_batch_that_is_being_written_and_one_that_is_damaged(folder: Path) -> None:
    damaged = bytearray(batch(0, pairs(0, 1)))
    damaged[61:] = b"\xff" * (len(damaged) - 61)
    write_segment(folder, 0, [bytes(damaged), batch(1, pairs(1, 1)), batch(2, pairs(2, 1))[:20]])
    shown = words(look(folder))
    assert "the last 20 B aren't a whole batch yet" in shown
    assert any(line.startswith("can't be unpacked: ") for line in shown) and "K1 → V1" in shown


def test_nothing_is_told_and_nothing_is_there(folder: Path) -> None:
    shown = words(look(folder, leader=None, state="dead"))
    assert "Offsets 0 to 1" in shown and shown.count("?") == 3
    assert "dead" in log_picture(look(folder, leader=None, state="dead")).summary


def test_without_brokers_the_checkpoints_tell(folder: Path) -> None:
    one_a_segment(folder, [3, 4])
    for name, offset in (("log-start-offset", 3), ("replication-offset", 5)):
        (folder.parent / f"{name}-checkpoint").write_text(f"0\n1\nt 0 {offset}\n")
    shown = words(look(folder, leader=None, state="dead"))
    assert [shown[shown.index(mark) + 1] for mark in ("log start", "high watermark")] == ["3", "5"]
    assert "last stable" not in shown


def test_what_cannot_be_seen_is_said(folder: Path) -> None:
    view = look(folder, LogOffsets(0, 9, 9, ends={0: 9, 1: 9, 2: 9}), files=None, unseen="the files are elsewhere")
    shown = words(view)
    assert "What can't be seen from here" in shown and shown.count("9") == 5
    assert segment_cards(view) == [] and "the files are elsewhere" in log_picture(view).summary


def test_many_segments_and_records_are_folded(folder: Path) -> None:
    one_a_segment(folder, list(range(60)))
    view = look(folder)
    shown = words(view)
    assert "20 older segments, folded" in shown and "K9 → V59" in shown and "K9 → V19" not in shown
    assert lens(view.files.segments).first == 20
    shown = words(view, until=49)
    assert {"10 older segments, folded", "10 newer segments, folded"} <= set(shown)
    assert "K9 → V49" in shown and "K9 → V59" not in shown


def test_records_that_are_not_written_out_are_a_square_each(folder: Path) -> None:
    write_segment(folder, 0, [batch(i, pairs(i, 10)) for i in range(0, 140, 10)])
    roots = svg_roots(log_picture(look(folder)).html)
    titles = [t.text or "" for root in roots for t in root.iter(f"{SVG}title")]
    assert sum(title.startswith("offset ") for title in titles) == 140
    assert len([t for root in roots for t in root.iter(f"{SVG}text") if "→ V" in (t.text or "")]) == 40


@pytest.mark.parametrize(
    ("count", "line", "heading", "first"),
    [
        (3, "offset index: 3 entries, the last 3 at byte 300", "offset index:", 1),
        (40, "offset index: 40 entries, the last 40 at byte 4,000", "offset index:", 1),
        (41, "offset index: 41 entries, the last 41 at byte 4,100", "offset index, the last 40 of 41 entries:", 2),
    ],
)
def test_index_entries_that_do_not_fit_into_a_line_are_in_its_tooltip(
    folder: Path, count: int, line: str, heading: str, first: int
) -> None:
    offsets = [(i, 100 * i) for i in range(1, count + 1)]
    write_segment(folder, 0, [batch(0, pairs(0, 50))], offsets=offsets, times=[(AT, 0), (AT + 1, 1)])
    drawn = [e for root in svg_roots(log_picture(look(folder)).html) for e in root.iter(f"{SVG}text")]
    titles = {e.text or "": e.findtext(f"{SVG}title") for e in drawn}
    assert titles[line] == "\n".join([heading, *(f"{i} at byte {100 * i:,}" for i in range(first, count + 1))])
    assert [title for words, title in titles.items() if words.startswith("time index: ")] == [None], "two entries fit"


def test_text_is_large_enough_and_nothing_is_drawn_outside(folder: Path) -> None:
    write_segment(folder, 10**12, [batch(10**12, [(10**12, b"k" * 100, b"v" * 100)], producer=10**9, sequence=2**31 - 1)])
    view = look(folder, LogOffsets(0, 10**12, 10**12, ends=dict.fromkeys((0, 1, 2), 10**12 + 1), compacted=True))
    for card in svg_roots(overview_html(view) + segments_html(view)):
        for element in card.iter(f"{SVG}text"):
            assert float(element.get("font-size")) >= 12
        for r in card.iter(f"{SVG}rect"):
            assert float(r.get("x")) >= 0 and float(r.get("x")) + float(r.get("width")) <= float(card.get("width"))


def test_a_live_drawing_follows_the_theme(folder: Path) -> None:
    one_a_segment(folder, [0])
    assert "var(--jp-" in segments_html(look(folder), palette=THEMED)
    overview, still = overview_html(look(folder), THEMED), log_picture(look(folder)).html
    assert all(root.findall(f".//*[@fill='{THEMED.panel}']") for root in svg_roots(overview))
    assert not any("var(--jp-" in (e.get("fill") or "") for root in svg_roots(still) for e in root.iter())


def test_a_stored_picture_tells_nothing_of_the_machine(folder: Path) -> None:
    one_a_segment(folder, [0, 2])
    for content in log_picture(look(folder, LogOffsets(0, 3, 3))).bundle().values():
        assert not [what for what, pattern in machine_marks(folder).items() if pattern.search(content)]


def test_ten_thousand_records_are_drawn_fluently(folder: Path) -> None:
    write_segment(folder, 0, [batch(i, pairs(i, 1)) for i in range(10_000)])
    view = look(folder)
    html, took = "", []
    for _ in range(3):
        began = time.thread_time()  # of the processor: others may have it meanwhile
        html = overview_html(view) + segments_html(view)
        took.append(time.thread_time() - began)
    assert min(took) < 1  # it is about 0.1 s
    assert len(html) < 600_000
    write_segment(folder, 10_000, [batch(10_000, pairs(10_000, 10))])
    assert "10 older records in 10 batches, folded" in words(look(folder))


# -- following a log


class FakeCluster:
    """A folder that has no broker."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.disk = self.nodes = self
        self.log = LogFolder(folder.parent, "t", 0)
        self.offsets = LogOffsets()
        self.unseen = ""
        self.broken = False
        self.closed = False
        self.callbacks: list[Callable[[], None]] = []

    def log_reader(self, topic: str, partition: int = 0, broker: int | None = None) -> FakeCluster:
        return self

    def read(self) -> LogView:
        if self.broken:
            raise RuntimeError("the cluster is falling over")
        files = None if self.unseen else self.log.read()
        return LogView("t", 0, 1, "up", 1, (1,), (1,), self.offsets, files, self.unseen)

    def close(self) -> None:
        self.closed = True

    def on_stop(self, callback: Callable[[], None]) -> None:
        self.callbacks.append(callback)

    def stop(self) -> None:
        for callback in self.callbacks:
            callback()


@pytest.fixture
def cluster(folder: Path) -> Iterator[FakeCluster]:
    one_a_segment(folder, [0])
    fake = FakeCluster(folder)
    yield fake
    fake.stop()


@pytest.mark.parametrize("moment", [0.01, 0.06, 0.11, 0.16, 0.21, 0.26])
def test_a_record_among_ten_thousand_is_seen_within_half_a_second(cluster: FakeCluster, moment: float) -> None:
    write_segment(cluster.folder, 0, [batch(i, pairs(i, 10)) for i in range(0, 10_000, 10)])
    clock = VirtualClock(threads=1)
    microscope = LogMicroscope(cluster, "t", clock=clock)
    clock.advance(moment)
    with open(cluster.folder / f"{0:020d}.log", "ab") as file:
        file.write(batch(10_000, [(10_000, b"new", b"record")]))
    assert clock.seconds_until(lambda: "new → record" in html(microscope)) <= 0.5


def test_a_look_that_fails_is_followed_by_another(cluster: FakeCluster) -> None:
    microscope = LogMicroscope(cluster, "t")
    cluster.broken = True
    assert "1 record" in microscope.snapshot().summary
    one_a_segment(cluster.folder, [1])
    cluster.broken = False
    wait_until(lambda: "K1 → V1" in html(microscope), PATIENCE, "the record to be seen")


def test_a_topic_that_was_deleted_is_shown_as_it_was(cluster: FakeCluster) -> None:
    microscope = LogMicroscope(cluster, "t")
    cluster.unseen = "the topic t was deleted"
    picture = microscope.snapshot()
    assert "the topic t was deleted" in picture.summary and "K0 → V0" in texts(picture.html)


def test_a_still_picture_of_the_end_takes_its_place(cluster: FakeCluster, shown: Shown) -> None:
    microscope = LogMicroscope(cluster, "t")
    show(microscope)
    ((first,),) = shown.values()
    assert set(first) == {"text/html", "text/plain", WIDGET_VIEW}
    one_a_segment(cluster.folder, [1])
    cluster.stop()
    ((_, last),) = shown.values()
    assert set(last) == {"text/html", "text/plain"}
    assert "K1 → V1" in texts(last["text/html"]) and "2 segments" in last["text/plain"]
    assert cluster.closed
    microscope.close()
    assert "K1 → V1" in texts(microscope.snapshot().html)
    wait_until(
        lambda: not [t for t in threading.enumerate() if t.name == "kafkalab-microscope"],
        PATIENCE,
        "the microscope's thread to end",
    )


def test_the_slider_follows_the_log_until_it_is_moved(cluster: FakeCluster) -> None:
    microscope = LogMicroscope(cluster, "t")
    slider = find(microscope, ipywidgets.IntSlider)
    assert slider.layout.display == "none"
    write_segment(cluster.folder, 1, [batch(1, pairs(1, 99))])
    microscope.snapshot()
    assert slider.layout.display == "" and (slider.min, slider.max, slider.value) == (0, 99, 99)
    write_segment(cluster.folder, 100, [batch(100, pairs(100, 10))])
    microscope.snapshot()
    assert slider.value == 109 and "K9 → V109" in html(microscope)
    slider.value = 50
    assert "K0 → V50" in html(microscope) and "K9 → V109" not in html(microscope)
    write_segment(cluster.folder, 110, [batch(110, pairs(110, 1))])
    microscope.snapshot()
    assert (slider.value, slider.max) == (50, 110) and "K0 → V50" in html(microscope)
    slider.value = 110
    write_segment(cluster.folder, 111, [batch(111, pairs(111, 1))])
    assert "K1 → V111" in texts(microscope.snapshot().html) and slider.value == 111


# -- what cannot be looked at


@pytest.fixture
def stopped_short(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """A cluster that is not started, with an answer to what `log_reader` asks."""
    made = Cluster(2, backend="local")
    view = ClusterView("id", 0, 1, {}, {"t": (PartitionView("t", 0, 0, 0, (0,), (0,)),)})
    observer = Mock(spec=Observer)
    observer.describe.return_value = view
    monkeypatch.setattr(made._lifecycle, "running", lambda: (Mock(spec=Control), observer))
    return made


def test_no_such_topic_partition_or_replica(stopped_short: Cluster) -> None:
    with pytest.raises(UnknownTopic, match=r"there is no topic 'u' in this cluster; it has t"):
        stopped_short.disk.log_reader("u")
    with pytest.raises(UnknownPartition, match=r"t has no partition 3; it has only 0"):
        stopped_short.disk.log_reader("t", 3)
    with pytest.raises(NoReplica, match=r"broker 1 has no replica of partition 0 of t; these brokers have one: 0"):
        stopped_short.disk.log_reader("t", 0, 1)

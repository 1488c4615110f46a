"""The timeline: gaps, marks, and how it follows a ledger."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from kafkalab.cluster.view import Fault
from kafkalab.waiting import wait_until
from kafkalab.widgets import Timeline
from kafkalab.widgets.events import Event
from kafkalab.widgets.picture import flow
from kafkalab.widgets.timeline_drawing import Ack, Mark, describe_gaps, draw_timeline, longest_gap, partition_gaps
from picture_support import SVG, svg_roots, texts
from support import PATIENCE
from widget_support import TOPIC, WIDGET_VIEW, FakeCluster, Shown, show


class FakeProducer:
    topic = TOPIC

    def __init__(self, ledger: Path) -> None:
        self.ledger = ledger
        self.alive = True

    def write(self, *entries: tuple[float, int], end: str = "\n") -> None:
        with open(self.ledger, "a") as file:
            file.write("\n".join(json.dumps({"at": at, "partition": p}) for at, p in entries) + end)


def test_the_longest_gap() -> None:
    assert longest_gap([]) is None and longest_gap([1.0]) is None
    assert (gap := longest_gap([5.0, 1.0, 2.0])) is not None and gap.seconds == 3.0


def test_gaps_of_partitions_count_the_time_still_waited() -> None:
    acks = [Ack(0.0, 0), Ack(0.1, 1), Ack(0.2, 0), Ack(2.3, 1)]
    assert {p: round(g.seconds, 1) for p, g in partition_gaps(acks).items()} == {0: 0.2, 1: 2.2}
    assert {p: round(g.seconds, 1) for p, g in partition_gaps(acks, until=3.0).items()} == {0: 2.8, 1: 2.2}
    assert describe_gaps(acks) == "no acknowledgement for 2.1 s; longest in one partition (1): 2.2 s"
    assert describe_gaps([]) == "nothing acknowledged yet"


def test_the_timeline_shows_gap_and_marks() -> None:
    acks = [Ack(at / 10, at % 3) for at in (*range(30), *range(51, 90))]
    drawing = draw_timeline(
        acks, [Mark(3.0, "fault", "kill 0"), Mark(4.9, "leader", "new leaders after 1.9 s"), Mark(-5.0, "fault", "old")]
    )
    shown_texts = texts(flow([drawing], "timeline"))
    assert {"no acknowledgement for 2.2 s", "kill 0", "new leaders after 1.9 s"} <= set(shown_texts)
    assert "old" not in shown_texts


@pytest.mark.parametrize("acks", [[], [Ack(1.0, 0)], [Ack(1.0, 0), Ack(1.0, 0)]])
def test_a_timeline_of_almost_nothing(acks: list[Ack]) -> None:
    assert len(svg_roots(flow([draw_timeline(acks, [])], "timeline"))) == 2


def labels_and_distances(html: str) -> list[tuple[float, float]]:
    """Of each "new leaders after N s": N, and the seconds on the axis between its line and that of the fault before it."""
    _, root = svg_roots(html)  # names, and what scrolls beside them
    ticks = [
        (float(e.get("x")), float(e.text))
        for e in root.iter(f"{SVG}text")
        if e.get("text-anchor") == "middle" and e.text[0].isdigit()
    ]
    (x0, s0), (x1, s1) = ticks[0], ticks[-1]
    second = (x1 - x0) / (s1 - s0)
    upright = [
        e for e in root.iter(f"{SVG}line") if e.get("x1") == e.get("x2") and float(e.get("y2")) - float(e.get("y1")) > 100
    ]
    faults = [float(e.get("x1")) for e in upright if not e.get("stroke-dasharray")]
    leaders = sorted(float(e.get("x1")) for e in upright if e.get("stroke-dasharray"))
    labelled = [float(words.split()[-2]) for words in texts(html) if words and words.startswith("new leaders after")]
    assert len(labelled) == len(leaders)
    return [(words, (x - max(f for f in faults if f <= x)) / second) for words, x in zip(labelled, leaders, strict=True)]


def test_each_label_of_the_timeline_is_its_distance_on_the_axis(cluster: FakeCluster, tmp_path: Path) -> None:
    producer = FakeProducer(tmp_path / "ledger.jsonl")
    began = time.time() - 40
    producer.write(*[(began + i / 5, i % 2) for i in range(200)])
    cluster.nodes.faults.append(Fault(began + 5, "kill", 0))
    timeline = Timeline(cluster, producer)
    timeline.seen(cluster.view, [Event(began + 6.9, "leader", "…", TOPIC)], True)
    # Of a verb that takes its time the effects are seen first: it is in the list when the picture is drawn.
    timeline.seen(cluster.view, [Event(began + 20.4, "leader", "…", TOPIC)], True)
    cluster.nodes.faults.append(Fault(began + 20, "stop", 1))
    measured = labels_and_distances(timeline.snapshot().html)
    assert [labelled for labelled, _ in measured] == [1.9, 0.4]
    for labelled, distance in measured:
        assert distance == pytest.approx(labelled, abs=0.1)


def test_the_timeline_follows_the_ledger_and_leaves_a_still_picture(cluster: FakeCluster, shown: Shown, tmp_path: Path) -> None:
    producer = FakeProducer(tmp_path / "ledger.jsonl")
    timeline = Timeline(cluster, producer)
    show(timeline)
    assert timeline.gap == 0.0
    now = time.time()
    producer.write((now - 3, 0), (now - 1, 1), (now, 0))
    assert timeline.gap == pytest.approx(2.0)
    producer.write((now + 5, 0), end="")  # half written
    assert timeline.gap == pytest.approx(2.0)
    assert timeline.gaps == {0: pytest.approx(3.0)}
    producer.alive = False
    wait_until(lambda: [b for b in shown.values() if WIDGET_VIEW not in b[-1]], PATIENCE, "the still picture")
    assert "no acknowledgement for 2.0 s" in next(iter(shown.values()))[-1]["text/plain"]


def test_a_ledger_that_went_with_its_cluster_is_remembered(cluster: FakeCluster, tmp_path: Path) -> None:
    producer = FakeProducer(tmp_path / "ledger.jsonl")
    producer.write((10.0, 0), (12.0, 0))
    timeline = Timeline(cluster, producer)
    cluster.stop()
    producer.ledger.unlink()
    assert timeline.gap == 2.0

"""Records that move through the live map: what Python tells the browser."""

from __future__ import annotations

import json
import re
import threading
from dataclasses import replace
from html import unescape
from pathlib import Path

import ipywidgets
import pytest

from kafkalab import preferences
from kafkalab.cluster.view import ClusterView
from kafkalab.preferences import moving_records
from kafkalab.widgets import ClusterMap
from kafkalab.widgets.clock import Clock
from kafkalab.widgets.flows import FLOW_STYLE, Flow, flows
from kafkalab.widgets.group_rows import group_row
from kafkalab.widgets.motion import Motion
from kafkalab.widgets.rates import AT_REST, Place, Rates, where_led
from kafkalab.widgets.topic_rows import topic_chips, topic_row
from kafkalab.widgets.watcher import Watcher
from support import PATIENCE
from widget_support import TOPIC, FakeCluster, broker, find, group, healthy, html, partition

P0: Place = (TOPIC, 0)
READER = group(("c1", (P0,)), lag={P0: 0})
RATES = Rates({P0: 412.0}, {("mygroup", P0): 33.0})
VIEW = replace(healthy(), groups={"mygroup": READER})


def told(map_: ClusterMap | ipywidgets.Widget) -> list[list[object]]:
    (flows_,) = re.findall(r'data-flows="([^"]*)"', html(map_))
    moving: list[list[object]] = json.loads(unescape(flows_))
    return moving


def spots(markup: str) -> list[str]:
    return re.findall(r'data-spot="([^"]*)"', markup)


def test_records_move_from_the_producers_to_the_leader_and_from_there_to_the_member() -> None:
    written, read = flows(RATES)
    assert (written.end, written.speed, read.speed) == (read.start, 3, 2)
    row = topic_row(VIEW, TOPIC, [0, 1, 2], RATES)
    assert spots(row).count(written.start) == 1 and spots(row).count(written.end) == 1
    assert spots(group_row(READER, RATES)) == [read.end]
    chip = topic_chips(replace(VIEW, topics={TOPIC: VIEW.topics[TOPIC][:1]}), [TOPIC], RATES)
    assert spots(chip) == [written.start, written.end]


def test_speed_goes_by_powers_of_ten() -> None:
    speeds = [flows(Rates({P0: rate}))[0].speed for rate in (0.2, 9, 10, 99, 100, 999, 1_000, 50_000)]
    assert speeds == [1, 1, 2, 2, 3, 3, 4, 4]


@pytest.mark.parametrize(
    "view",
    [
        replace(VIEW, topics={TOPIC: (partition(0, leaderless=True),)}),
        replace(VIEW, brokers={**VIEW.brokers, 0: broker(0, "dead")}),
        replace(VIEW, brokers={**VIEW.brokers, 0: broker(0, "paused")}),
        replace(VIEW, topics={}),
    ],
    ids=["no leader", "the leader is dead", "the leader hangs", "the topic is gone"],
)
def test_nothing_moves_where_nobody_leads(view: ClusterView) -> None:
    assert where_led(VIEW, RATES) == RATES and where_led(view, RATES) == AT_REST


def test_a_replica_that_does_not_lead_is_no_place_for_dots() -> None:
    view = replace(VIEW, topics={TOPIC: (partition(0), partition(1, leaderless=True))})
    assert len(spots(topic_row(view, TOPIC, [0, 1, 2]))) == 1


def test_rates_are_in_words_too() -> None:
    assert "producers 410/s" in topic_row(VIEW, TOPIC, [0, 1, 2], RATES)
    assert "33/s" in group_row(READER, RATES)
    assert not re.search(r"\d/s", topic_row(VIEW, TOPIC, [0, 1, 2]) + group_row(READER))


def test_what_comes_from_outside_is_escaped() -> None:
    nasty = '"><script>'
    motion = Motion(lambda words: None)
    motion.show(Rates({(nasty, 0): 1.0}))
    assert "<script" not in html(motion.widget) and told(motion.widget) == [[nasty, f"{nasty} 0", 1]]


class ByHand(Clock):
    """Moves when a test moves it. The watcher's threads look once and then wait for the end."""

    seconds = 0.0

    def now(self) -> float:
        return self.seconds

    def wait(self, event: threading.Event, seconds: float) -> bool:
        return event.wait(PATIENCE)


def test_the_map_stays_as_it_is_while_records_move_steadily(cluster: FakeCluster) -> None:
    cluster.view = VIEW
    clock = ByHand()
    watcher = Watcher.of(cluster, clock)
    map_ = ClusterMap(cluster)
    shown = []
    for look in range(40):
        cluster.view = replace(VIEW, ends={P0: 206 * look + 3 * (-1) ** look})
        clock.seconds += 0.5
        watcher.look(groups=True)
        shown.append(html(map_))
    assert told(map_) == [[TOPIC, f"{TOPIC} 0", 3], [f"{TOPIC} 0", f"{TOPIC} 0 mygroup", 3]]
    assert "producers 410/s" in shown[-1]
    assert set(shown[10:]) == {shown[-1]}
    cluster.view = replace(cluster.view, topics={TOPIC: (partition(0, leaderless=True),)})
    watcher.look()
    assert told(map_) == []


def test_it_can_be_switched_off_and_stays_so(cluster: FakeCluster) -> None:
    motion = Motion(lambda words: None)
    motion.show(RATES)
    assert len(told(motion.widget)) == 2
    motion.choice.value = False
    assert told(motion.widget) == [] and not moving_records()
    motion.show(RATES)
    assert told(motion.widget) == []
    cluster.view = VIEW
    choice = find(ClusterMap(cluster), ipywidgets.Checkbox)
    assert not choice.value
    choice.value = True
    assert moving_records()


def test_a_choice_that_cannot_be_kept_holds_here_and_says_so(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(preferences, "progress_dir", lambda: tmp_path / "file" / "folder")
    map_ = ClusterMap(cluster)
    find(map_, ipywidgets.Checkbox).value = False
    assert "This choice holds here only: Not a directory" in html(map_)


def test_who_wants_less_motion_gets_marks_that_rest_where_records_move() -> None:
    reduced = FLOW_STYLE.partition("@media (prefers-reduced-motion: reduce)")[2]
    assert ".kafkalab-dots { display: none; }" in reduced and "i.moves::before" in reduced
    assert re.findall(r'<i class="([^"]* moves)"[^>]*>(\d+)', topic_row(VIEW, TOPIC, [0, 1, 2], RATES)) == [
        ("leader preferred moves", "0")
    ]
    assert re.findall(r'<i class="([^"]* moves)"[^>]*>(\d+)', group_row(READER, RATES)) == [("owned moves", "0")]
    assert "moves" not in topic_row(VIEW, TOPIC, [0, 1, 2]) + group_row(READER)


def test_dots_are_nothing_to_a_screen_reader() -> None:
    motion = Motion(lambda words: None)
    motion.show(RATES)
    assert '<div class="kafkalab-flows" aria-hidden="true"' in html(motion.widget)


def test_a_flow_is_told_apart_by_its_ends() -> None:
    assert {flow.end for flow in flows(Rates({}, {("a", P0): 1.0, ("b", P0): 1.0}))} == {f"{TOPIC} 0 a", f"{TOPIC} 0 b"}
    assert Flow("a", "b", 1) != Flow("a", "b", 2)

"""The live map: how it follows a cluster, its buttons, and what it leaves in a notebook."""

from __future__ import annotations

import re
import threading
import time
from dataclasses import replace

import ipywidgets
import pytest

from kafkalab.cluster.view import Fault
from kafkalab.waiting import wait_until
from kafkalab.widgets import ClusterMap
from kafkalab.widgets.watcher import Watcher
from picture_support import texts
from support import PATIENCE
from virtual_clock import VirtualClock
from widget_support import TOPIC, WIDGET_VIEW, FakeCluster, Shown, button, find_all, html, press, show

HALF_A_SECOND = 0.5
"""In which the map follows a change, as its description says."""


MOMENTS = pytest.mark.parametrize("moment", [round(0.01 + step * 0.05, 2) for step in range(16)])
"""Before, during and after looks of all kinds."""


@pytest.fixture
def clock(cluster: FakeCluster) -> VirtualClock:
    """The clock of all that watch the cluster: for brokers, processes and groups a thread each."""
    cluster.clock = clock = VirtualClock(threads=3)
    Watcher.of(cluster, clock)
    return clock


def draws(map_: ClusterMap, *words: str) -> bool:
    return all(word in html(map_) for word in words)


def wait_until_drawn(map_: ClusterMap) -> None:
    """Wait until the map shows its last node: nothing draws the others again."""
    wait_until(lambda: draws(map_, "broker 2"), PATIENCE, "the map to be drawn")


@MOMENTS
def test_the_map_moves_within_half_a_second(cluster: FakeCluster, clock: VirtualClock, moment: float) -> None:
    """Even if each look takes a tenth of a second."""
    map_ = ClusterMap(cluster)
    assert clock.seconds_until(lambda: draws(map_, "broker 0")) == 0
    cluster.takes = 0.1
    clock.advance(moment)
    cluster.kill(0)
    # That broker 0 is dead may be known from its process, before the brokers tell who leads now.
    led = re.compile(r"now led by 1, ISR 1,2, after \d+\.\d s")
    seconds = clock.seconds_until(lambda: draws(map_, "is-dead") and any(map(led.search, map_.events)))
    assert seconds <= HALF_A_SECOND
    assert map_.events[0] == "kill broker 0"


@MOMENTS
def test_a_question_that_hangs_does_not_hold_up_the_map(cluster: FakeCluster, clock: VirtualClock, moment: float) -> None:
    map_ = ClusterMap(cluster)
    clock.seconds_until(lambda: draws(map_, "broker 0"))
    cluster.takes = 0.03  # the looks at brokers and at processes get out of step
    clock.advance(1 + moment)
    cluster.takes = 60
    cluster.change_state(2, "paused")
    assert clock.seconds_until(lambda: draws(map_, "is-paused")) <= HALF_A_SECOND
    assert not draws(map_, "no broker answers")
    clock.seconds_until(lambda: draws(map_, "no broker answers"))


def test_a_fault_that_was_taken_back_hides_none_of_those_to_come(cluster: FakeCluster) -> None:
    map_ = ClusterMap(cluster)
    cluster.nodes.faults.append(Fault(time.time(), "stop", 1))
    wait_until(lambda: "stop broker 1" in map_.events, PATIENCE, "the map to tell of it")
    cluster.nodes.faults[:] = [Fault(time.time(), "kill", 2)]  # the stop failed
    wait_until(lambda: "kill broker 2" in map_.events, PATIENCE, "the map to tell of the next one")


def test_the_map_shows_what_became_of_the_only_broker_although_nobody_answers(cluster: FakeCluster) -> None:
    map_ = ClusterMap(cluster)
    wait_until_drawn(map_)
    cluster.answers = False
    cluster.kill(0)
    wait_until(lambda: draws(map_, "is-dead"), PATIENCE, "the map to show it")
    wait_until(lambda: draws(map_, "no broker answers"), PATIENCE, "the map to say so")
    cluster.answers = True
    wait_until(lambda: not draws(map_, "no broker answers"), PATIENCE, "the map to see again")


def test_a_button_acts_in_the_background_and_shows_its_error(cluster: FakeCluster) -> None:
    map_ = ClusterMap(cluster)
    wait_until_drawn(map_)
    cluster.kill_error = RuntimeError("it is <dead>\nlog: …")
    press(map_, "Kill 1")
    assert cluster.killing.wait(PATIENCE)
    wait_until(lambda: draws(map_, "&lt;dead&gt;"), PATIENCE, "the error to be shown", last_seen=lambda: map_.events)
    assert map_.events == ["kill broker 1 failed: it is <dead>"]


def verbs(map_: ClusterMap, broker: int) -> list[str]:
    """The verbs that the menu of a broker offers."""
    buttons = [button for button in find_all(map_, ipywidgets.Button) if button.description.endswith(f" {broker}")]
    return [button.description.split()[0] for button in buttons if button.layout.display != "none"]


def test_the_menu_of_a_broker_has_only_the_verbs_that_its_state_allows(cluster: FakeCluster) -> None:
    map_ = ClusterMap(cluster)
    wait_until_drawn(map_)
    assert verbs(map_, 0) == ["Pause", "Restart", "Kill"]
    for state, offered in (
        ("paused", ["Resume", "Restart", "Kill"]),
        ("isolated", ["Pause", "Restart", "Kill"]),
        ("dead", ["Restart"]),
        ("stopped", ["Restart"]),
    ):
        cluster.change_state(0, state)
        Watcher.of(cluster).look()
        assert verbs(map_, 0) == offered
        assert verbs(map_, 1) == ["Pause", "Restart", "Kill"]


def test_only_kill_is_marked_as_dangerous(cluster: FakeCluster) -> None:
    buttons = find_all(ClusterMap(cluster), ipywidgets.Button)
    dangerous = [button.description for button in buttons if "kafkalab-danger" in button._dom_classes]
    assert dangerous == ["Kill 0", "Kill 1", "Kill 2"]


def test_a_broker_has_no_other_verb_while_one_is_under_way(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    map_ = ClusterMap(cluster)
    go_on = threading.Event()
    monkeypatch.setattr(cluster, "restart", lambda broker: go_on.wait(PATIENCE))
    press(map_, "Restart 1")
    assert button(map_, "Kill 1").disabled and not button(map_, "Kill 0").disabled
    go_on.set()
    wait_until(lambda: not button(map_, "Kill 1").disabled, PATIENCE, "the end of the restart")


def test_an_attached_cluster_has_no_buttons(cluster: FakeCluster) -> None:
    cluster.nodes.backend = "attached"
    map_ = ClusterMap(cluster)
    wait_until_drawn(map_)
    assert not find_all(map_, ipywidgets.Button)
    assert "Actions for broker" not in html(map_)


def test_a_display_has_a_picture_besides_the_widget_and_only_that_after_the_stop(cluster: FakeCluster, shown: Shown) -> None:
    map_ = ClusterMap(cluster)
    wait_until_drawn(map_)
    show(map_)
    show(map_)
    for (first,) in shown.values():
        assert {"text/html", "text/plain", WIDGET_VIEW} == set(first)
    cluster.kill(0)
    map_.snapshot()
    cluster.stop()
    cluster.stop()
    assert len(shown) == 2
    for _, last in shown.values():
        assert set(last) == {"text/html", "text/plain"}
        assert "0 dead" in last["text/plain"]
        assert "kill broker 0" in texts(last["text/html"])
    show(map_)
    assert WIDGET_VIEW not in list(shown.values())[-1][-1]


def test_a_snapshot_is_of_now_and_stays_after_the_stop(cluster: FakeCluster) -> None:
    map_ = ClusterMap(cluster)
    assert "0 up" in map_.snapshot().summary
    cluster.kill(0)
    assert "0 dead" in map_.snapshot().summary
    cluster.stop()
    cluster.answers = False
    assert "0 dead" in map_.snapshot().summary


def test_a_browser_gets_only_what_has_changed(cluster: FakeCluster) -> None:
    map_ = ClusterMap(cluster)
    watcher = Watcher.of(cluster)
    watcher.look(groups=True)
    changed: list[object] = []
    for widget in find_all(map_, ipywidgets.Widget):
        widget.observe(lambda change: changed.append(change["owner"]))
    view = cluster.view
    map_.seen(view, (), True)
    assert not changed
    lagging = tuple(replace(p, isr=p.isr[:2]) for p in view.topics[TOPIC])
    map_.seen(replace(view, topics={TOPIC: lagging}), (), True)
    assert set(changed) == {map_._status, map_._rows}


def test_two_maps_of_a_cluster_share_a_watcher(cluster: FakeCluster) -> None:
    maps = [ClusterMap(cluster), ClusterMap(cluster)]
    assert len(cluster.callbacks) == 1
    cluster.kill(0)
    Watcher.of(cluster).look()
    assert all(draws(map_, "is-dead") for map_ in maps)


def test_no_thread_outlives_the_cluster() -> None:
    cluster = FakeCluster()
    ClusterMap(cluster)
    cluster.stop()
    wait_until(
        lambda: not [t for t in threading.enumerate() if t.name.startswith("kafkalab-watcher")], PATIENCE, "the watchers to end"
    )

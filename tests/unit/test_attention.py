"""Live drawings pause when nobody looks, so that a forgotten server gets no activity from them."""

from __future__ import annotations

from dataclasses import replace

import ipywidgets
import pytest

from kafkalab.widgets import ClusterMap
from kafkalab.widgets.attention import PATIENCE, Attention
from kafkalab.widgets.watcher import Watcher
from virtual_clock import VirtualClock
from widget_support import FakeCluster, find_all, html


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(2)  # the watcher's threads


@pytest.fixture
def attention(clock: VirtualClock, monkeypatch: pytest.MonkeyPatch) -> Attention:
    attention = Attention(clock.now)
    monkeypatch.setattr("kafkalab.widgets.clock.ATTENTION", attention)
    return attention


def absent(clock: VirtualClock) -> None:
    """Let so much time pass that drawings pause, and then some."""
    clock.move_to(clock.now() + PATIENCE)
    clock.advance(2.0)


def test_a_map_pauses_when_nobody_has_looked_for_a_while_and_goes_on_at_once(
    cluster: FakeCluster, clock: VirtualClock, attention: Attention
) -> None:
    Watcher.of(cluster, clock)
    cluster_map = ClusterMap(cluster, groups=False)
    attention.note()
    absent(clock)
    sent: list[object] = []
    for widget in find_all(cluster_map, ipywidgets.HTML):
        widget.observe(sent.append, "value")
    broker = replace(cluster.view.brokers[0], state="dead")
    cluster.view = replace(cluster.view, brokers=dict(cluster.view.brokers) | {0: broker})
    absent(clock)
    assert not sent
    attention.note()
    assert clock.seconds_until(lambda: sent) < 0.5
    assert "2 of 3 nodes up" in html(cluster_map.widget)
    cluster.stop()


def test_without_a_browser_nothing_pauses(cluster: FakeCluster, clock: VirtualClock, attention: Attention) -> None:
    """As in a run of all cells, which stores what the drawings show."""
    Watcher.of(cluster, clock)
    absent(clock)
    assert attention.paid
    cluster.stop()


def test_a_stopped_cluster_leaves_its_last_state_also_when_nobody_looks(
    cluster: FakeCluster, clock: VirtualClock, attention: Attention
) -> None:
    Watcher.of(cluster, clock)
    cluster_map = ClusterMap(cluster, groups=False)
    attention.note()
    absent(clock)
    cluster.stop()
    assert "Brokers: " in cluster_map.snapshot().summary

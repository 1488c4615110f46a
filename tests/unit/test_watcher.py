"""What the watcher of a cluster reports to the displays."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import replace

from kafkalab.cluster.view import ClusterView, Fault
from kafkalab.widgets.clock import Clock
from kafkalab.widgets.events import Event
from kafkalab.widgets.watcher import Watcher, with_states
from support import PATIENCE
from virtual_clock import VirtualClock
from widget_support import TOPIC, FakeCluster, after_kill, broker, group, healthy


class Observer:
    """Keeps what the watcher saw last."""

    view: ClusterView

    def seen(self, view: ClusterView, events: Sequence[Event], fresh: bool) -> None:
        self.view = view

    def ended(self) -> None:
        pass


def test_what_is_known_last_is_corrected_by_the_states_of_the_processes() -> None:
    view = healthy()
    view = replace(view, brokers={**view.brokers, 1: broker(1, "starting")})
    later = with_states(view, {0: "paused", 1: "up", 2: "dead"})
    assert [node.state for node in later.brokers.values()] == ["paused", "starting", "dead"]
    assert later.controller is None and not later.brokers[0].controller
    assert with_states(view, {0: "up"}) == view
    assert with_states(later, {2: "up"}).brokers[2].state == "starting"


def test_a_deleted_group_vanishes_and_one_whose_coordinator_moves_stays() -> None:
    cluster = FakeCluster()
    cluster.view = replace(healthy(), groups={"mygroup": group(("c1", ((TOPIC, 0),)))})
    watcher, observer = Watcher(cluster, Clock()), Observer()
    watcher.observe(observer, groups=False)
    watcher.look(groups=True)
    kept = cluster.view
    cluster.view = replace(after_kill(kept, 1), groups={})
    watcher.look(groups=True)
    assert set(observer.view.groups) == {"mygroup"}
    cluster.view = replace(kept, groups={})
    watcher.look(groups=True)
    assert not observer.view.groups
    cluster.view = kept
    watcher.look(groups=True)
    cluster.nodes.faults.append(Fault(time.time(), "restart", 1))
    cluster.view = replace(kept, groups={})
    watcher.look(groups=True)
    assert set(observer.view.groups) == {"mygroup"}


def test_an_answer_that_was_overtaken_is_dropped() -> None:
    cluster, observer, clock = FakeCluster(), Observer(), VirtualClock(threads=1)
    cluster.clock, cluster.takes = clock, 1
    watcher = Watcher(cluster, clock)
    watcher.observe(observer, groups=False)
    slow = threading.Thread(target=watcher.look)
    slow.start()
    clock.advance(0.5)  # the question is asked
    cluster.takes = 0
    cluster.kill(0)
    watcher.look()
    clock.move_to(1)
    slow.join(PATIENCE)
    assert observer.view.brokers[0].state == "dead"

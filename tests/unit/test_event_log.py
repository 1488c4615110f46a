"""What the live map's log says of what happened."""

from __future__ import annotations

import re
import time
from dataclasses import replace

from kafkalab.cluster.view import ClusterView, Fault
from kafkalab.widgets import ClusterMap
from kafkalab.widgets.event_log import log_html, log_lines
from kafkalab.widgets.events import Event, events_between, fault_event
from kafkalab.widgets.watcher import Watcher
from widget_support import TOPIC, FakeCluster, after_kill, group, healthy, partition

BEGAN = 1_000_000.0
KILL = Fault(BEGAN, "kill", 0)


def said(*events: Event, name_topics: bool = False) -> list[str]:
    return [line.words for line in log_lines(events, name_topics=name_topics)]


def two_topics() -> ClusterView:
    return replace(healthy(), topics={name: tuple(partition(p, topic=name) for p in range(3)) for name in ("a", "b")})


def killed(view: ClusterView) -> ClusterView:
    """Broker 1 leads what broker 0 led."""
    moved = {name: tuple(replace(p, leader=1, isr=(1, 2)) for p in partitions) for name, partitions in view.topics.items()}
    return replace(after_kill(replace(view, topics=healthy().topics)), topics=moved)


def test_below_a_fault_stands_what_it_brought_about() -> None:
    events = [fault_event(KILL), *events_between(healthy(4), after_kill(healthy(4)), BEGAN + 1.6, [KILL])]
    assert said(*events) == [
        "broker 0 killed",  # that it's dead needn't be said
        "→ active controller is now 1, epoch 6 after 1.6 s",
        "→ p0, p3 moved to broker 1 after 1.6 s",
        "→ broker 0 left the ISR of p1, p2 after 1.6 s",
    ]
    times = [line.time for line in log_lines(events, name_topics=False)]
    assert times == [time.strftime("%H:%M:%S", time.localtime(BEGAN)), "", "", ""]


def test_a_time_is_said_once() -> None:
    leaderless = replace(after_kill(healthy()), controller=None)
    lines = said(fault_event(KILL), *events_between(healthy(), leaderless, BEGAN + 0.2, [KILL]))
    assert "→ no active controller (was 0) after 0.2 s" in lines
    assert max(line.count(" after ") for line in lines) == 1


def test_what_comes_after_something_else_has_its_own_time() -> None:
    created = Event(BEGAN + 1, "topic", "orders: created", "orders")
    moved = Event(BEGAN + 2, "leader", "", TOPIC, "{} moved to broker 1", (3,), 2.0)
    lines = log_lines([fault_event(KILL), created, moved], name_topics=False)
    assert [line.words for line in lines] == ["broker 0 killed", "orders: created", "p3 moved to broker 1 after 2.0 s"]
    assert all(line.time for line in lines)


def test_a_broker_that_dies_by_itself_is_reported() -> None:
    assert "broker 0 is dead" in said(*events_between(healthy(), after_kill(healthy()), BEGAN))


def test_a_restart_ends_with_the_broker_up() -> None:
    restart = Fault(BEGAN, "restart", 0)
    back = events_between(
        after_kill(healthy()), replace(after_kill(healthy()), brokers=healthy().brokers), BEGAN + 3, [restart]
    )
    assert said(fault_event(restart), *back) == ["broker 0 restarted", "→ broker 0 is up after 3.0 s"]


def test_topics_that_change_alike_share_a_line_and_are_counted() -> None:
    events = events_between(two_topics(), killed(two_topics()), BEGAN)
    assert "6 partitions of 2 topics moved to broker 1" in said(*events, name_topics=True)


def test_a_topic_is_named_if_there_is_another() -> None:
    def moved(*numbers: int) -> Event:
        return Event(BEGAN, "leader", "", TOPIC, "{} moved to broker 1", numbers)

    assert said(moved(3, 7)) == ["p3, p7 moved to broker 1"]
    assert said(moved(3, 7), name_topics=True) == [f"{TOPIC} p3, p7 moved to broker 1"]
    assert said(moved(*range(9)), name_topics=True) == [f"9 partitions of {TOPIC} moved to broker 1"]
    assert said(moved(*range(9))) == ["9 partitions moved to broker 1"]


def test_partitions_lose_and_find_leaders() -> None:
    led, lost = (replace(healthy(), topics={TOPIC: (partition(0, leaderless=off, isr=(0,)),)}) for off in (False, True))
    assert said(*events_between(led, lost, BEGAN)) == ["p0 without a leader"]
    assert said(*events_between(lost, led, BEGAN)) == ["p0 led by broker 0"]


def test_a_group_tells_the_sizes_of_its_shares() -> None:
    both = replace(healthy(), groups={"g": group(("c1", ((TOPIC, 0), (TOPIC, 1))), ("c2", ((TOPIC, 2),)), id_="g")})
    assert said(*events_between(healthy(), both, BEGAN)) == ["group g: 2 members, 2 + 1 partitions"]


def test_the_log_has_a_role_and_a_name_and_escapes_what_it_says() -> None:
    log = log_html([Event(BEGAN, "error", "<script>")], name_topics=False)
    assert log.startswith('<div role="log" aria-label="Events" aria-live="off">') and "<script>" not in log
    assert "Nothing has happened yet." in log_html([], name_topics=False)


def test_the_log_keeps_the_focus_and_its_end_in_sight(cluster: FakeCluster) -> None:
    """The widget around it can be focused: the browser replaces what is in it with each event."""
    map_ = ClusterMap(cluster)
    log = map_._log
    assert log.tabbable and "kafkalab-events" in log._dom_classes and map_.widget.children[-1] is log
    style = map_.widget.children[0].value
    (rules,) = re.findall(r"\.kafkalab-map \.kafkalab-events \{([^}]*)\}", style)
    assert "position: sticky" in rules and "column-reverse" in rules
    cluster.kill(0)
    Watcher.of(cluster).look()
    assert "broker 0 killed" in log.value

"""What the list of events tells of a change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kafkalab.cluster.view import ClusterView, Fault
from kafkalab.widgets.events import events_between
from widget_support import TOPIC, after_kill, group, healthy, partition


def texts(before: ClusterView, after: ClusterView, at: float = 100.0, faults: Sequence[Fault] = ()) -> list[str]:
    return [event.text for event in events_between(before, after, at, faults)]


def test_no_change_is_no_event() -> None:
    assert texts(healthy(), healthy()) == []


def test_one_partition_tells_old_and_new_leader_isr_and_the_time_since_the_fault() -> None:
    before, after = (
        replace(healthy(), topics={TOPIC: (partition(3, leader=leader, isr=isr),)}) for leader, isr in ((0, None), (2, (1, 2)))
    )
    assert texts(before, after, 101.9, [Fault(100.0, "kill", 0)]) == [
        f"{TOPIC}: partition 3: leader 0 → 2, ISR 2,1, after 1.9 s"
    ]


def test_partitions_that_move_alike_share_a_line() -> None:
    lines = texts(healthy(), after_kill(healthy()), 101.9, [Fault(100.0, "kill", 0)])
    assert lines == [
        "broker 0: up → dead, after 1.9 s",
        "active controller 0 → 1, epoch 6, after 1.9 s",
        f"{TOPIC}: partitions 0, 3, 6, 9, 12 now led by 1, ISR 1,2, after 1.9 s",
        f"{TOPIC}: broker 0 left the ISR of partitions 1, 2, 4, 5, 7, 8, 10, 11, after 1.9 s",
    ]


def test_a_broker_that_returns_joins_the_isr_of_all_partitions() -> None:
    down = after_kill(healthy())
    back = replace(down, topics={TOPIC: tuple(replace(p, isr=(0, 1, 2)) for p in down.topics[TOPIC])})
    assert texts(down, back) == [f"{TOPIC}: broker 0 joined the ISR of all 13 partitions"]


def test_partitions_without_a_leader() -> None:
    before = replace(healthy(), topics={TOPIC: tuple(partition(p) for p in range(3))})
    after = replace(before, topics={TOPIC: (*(partition(p, leaderless=True) for p in range(2)), partition(2))})
    assert texts(before, after) == [f"{TOPIC}: partitions 0, 1 without a leader"]
    assert texts(after, before) == [f"{TOPIC}: partitions 0, 1 now led by 0, ISR 0,1,2"]


def test_time_is_told_only_after_a_fault_that_came_before_and_not_long_ago() -> None:
    before, after = healthy(), after_kill(healthy())
    assert all("after" not in line for line in texts(before, after, 100.0, [Fault(100.5, "kill", 0)]))
    assert all("after" not in line for line in texts(before, after, 900.0, [Fault(100.0, "kill", 0)]))
    assert all("after 2.0 s" in line for line in texts(before, after, 102.0, [Fault(10.0, "kill", 1), Fault(100.0, "kill", 0)]))


def test_topics_come_and_go_and_grow() -> None:
    without = replace(healthy(), topics={})
    assert texts(without, healthy()) == [f"{TOPIC}: created, 13 partitions, 3 replicas of each"]
    assert texts(healthy(), without) == [f"{TOPIC}: deleted"]
    assert texts(healthy(13), healthy(15)) == [f"{TOPIC}: partitions 13, 14 added"]


def test_reassigned_replicas() -> None:
    before, after = (replace(healthy(), topics={TOPIC: (partition(0, replicas),)}) for replicas in ((0, 1), (0, 2)))
    assert f"{TOPIC}: partition 0: replicas 0,1 → 0,2" in texts(before, after)


def test_brokers_and_controllers_come_and_go() -> None:
    assert texts(healthy(brokers=3), replace(healthy(brokers=3), brokers=healthy(brokers=4).brokers)) == ["broker 3 added: up"]
    assert "no active controller (was 0)" in texts(healthy(), replace(healthy(), controller=None))
    assert "active controller none → 0, epoch 5" in texts(replace(healthy(), controller=None), healthy())


def test_groups_tell_who_owns_how_much_once_they_are_settled() -> None:
    quiet = healthy()
    both = replace(quiet, groups={"mygroup": group(("c1", ((TOPIC, 0), (TOPIC, 1))), ("c2", ((TOPIC, 2),)), ("c3", ()))})
    moving = replace(quiet, groups={"mygroup": group(("c1", ()), state="PreparingRebalance")})
    empty = replace(quiet, groups={"mygroup": group(state="Empty")})
    assert texts(quiet, both) == ["group mygroup: 3 members own partitions: c1 2, c2 1, c3 idle"]
    assert texts(both, moving) == []
    assert texts(both, empty) == ["group mygroup: no members"]
    assert texts(both, replace(both, groups={"mygroup": replace(both.groups["mygroup"], lag={(TOPIC, 0): 7})})) == []

"""What can be asked of a view of a cluster."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kafkalab.cluster import ClusterView, PartitionView


def view(**topics: list[tuple[int | None, tuple[int, ...]]]) -> ClusterView:
    """Topics with three replicas, by leader and ISR of each partition."""
    made = {
        name: tuple(PartitionView(name, n, leader, 0, (0, 1, 2), isr) for n, (leader, isr) in enumerate(parts))
        for name, parts in topics.items()
    }
    return ClusterView("id", 0, 1, {}, made)


WHOLE = (0, (2, 1, 0))
MOVED = (1, (1, 2))
ALONE = (2, (2,))
LOST = (None, (0,))


def test_a_partition_without_leader() -> None:
    assert view(t=[WHOLE, MOVED]).led("t")
    assert not view(t=[WHOLE, LOST]).led("t")
    assert not view(t=[WHOLE], u=[LOST]).led(["t", "u"])


def test_who_leads() -> None:
    assert view(t=[WHOLE, WHOLE]).led_by("t", 0)
    assert not view(t=[WHOLE, MOVED]).led_by("t", 0)
    assert not view(t=[WHOLE, MOVED]).moved_from("t", 0)
    assert not view(t=[LOST, MOVED]).moved_from("t", 0)  # it has no other leader yet
    assert view(t=[MOVED], u=[ALONE]).moved_from(("t", "u"), 0)


def test_who_is_in_sync() -> None:
    assert view(t=[WHOLE]).in_sync("t")
    assert not view(t=[WHOLE, MOVED]).in_sync("t")
    assert view(t=[MOVED, ALONE]).out_of_sync("t", 0)
    assert not view(t=[MOVED, WHOLE]).out_of_sync("t", 0)
    assert not view(t=[(None, ())]).out_of_sync("t", 0)  # nothing is known of it


@pytest.mark.parametrize("ask", [lambda v: v.led("u"), lambda v: v.led_by("u", 0), lambda v: v.in_sync(["t", "u"])])
def test_a_topic_that_is_not_there_yet(ask: Callable[[ClusterView], object]) -> None:
    with pytest.raises(KeyError):
        ask(view(t=[WHOLE]))

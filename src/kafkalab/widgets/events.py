"""Describe what happened between two views of a cluster. Partitions with the same change share a line."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from kafkalab.cluster.view import ClusterView, Fault, GroupView, PartitionView
from kafkalab.widgets.prose import counted

__all__ = ["Event", "EventKind", "events_between", "fault_event", "is_settled", "last_fault"]

EventKind = Literal["fault", "broker", "controller", "leader", "isr", "topic", "group", "error"]

# After this many seconds, a change no longer counts as a consequence of the last fault.
_CONSEQUENCE = 120.0


@dataclass(frozen=True)
class Event:
    """One line of the event list.

    Attributes
    ----------
    at
        When a view showed it, in seconds since the epoch.
    kind
        What it's about.
    text
        The line.
    topic
        The topic it's about, if any.
    """

    at: float
    kind: EventKind
    text: str
    topic: str | None = None


_Change = tuple[EventKind, str, str | None]
"""An event without its time: kind, text, topic."""


def events_between(before: ClusterView, after: ClusterView, at: float, faults: Sequence[Fault] = ()) -> list[Event]:
    """Return an event for each difference between two views.

    Parameters
    ----------
    before, after
        The views.
    at
        When `after` was taken, in seconds since the epoch.
    faults
        Faults so far. A change is shown with the time since the last fault.
    """
    changes = [
        *_broker_changes(before, after),
        *_controller_change(before, after),
        *_topic_changes(before, after),
        *_group_changes(before, after),
    ]
    since = _since_last_fault(at, faults)
    consequences = ("broker", "controller", "leader", "isr")
    return [Event(at, kind, text + (since if kind in consequences else ""), topic) for kind, text, topic in changes]


def fault_event(fault: Fault) -> Event:
    """Return the event for a fault."""
    return Event(fault.at, "fault", f"{fault.verb} broker {fault.broker}")


def _in_order(partition: PartitionView) -> str:
    """Return the ISR of a partition, its leader first."""
    ids = sorted(partition.isr, key=lambda broker: (broker != partition.leader, broker))
    return ",".join(map(str, ids)) or "empty"


def last_fault(at: float, faults: Iterable[Fault]) -> float | None:
    """Return when the last fault before a moment began, or None. Faults that began later didn't cause anything at it."""
    return max((fault.at for fault in faults if fault.at <= at), default=None)


def _since_last_fault(at: float, faults: Iterable[Fault]) -> str:
    began = last_fault(at, faults)
    return "" if began is None or at - began > _CONSEQUENCE else f", after {at - began:.1f} s"


def _broker_changes(before: ClusterView, after: ClusterView) -> Iterator[_Change]:
    for id_, broker in after.brokers.items():
        old = before.brokers.get(id_)
        if old is None:
            yield "broker", f"broker {id_} added: {broker.state}", None
        elif old.state != broker.state:
            yield "broker", f"broker {id_}: {old.state} → {broker.state}", None
    for id_ in before.brokers.keys() - after.brokers.keys():
        yield "broker", f"broker {id_} removed", None


def _controller_change(before: ClusterView, after: ClusterView) -> Iterator[_Change]:
    if before.controller == after.controller:
        return
    if after.controller is None:
        yield "controller", f"no active controller (was {before.controller})", None
    else:
        old = "none" if before.controller is None else before.controller
        yield "controller", f"active controller {old} → {after.controller}, epoch {after.controller_epoch}", None


def _topic_changes(before: ClusterView, after: ClusterView) -> Iterator[_Change]:
    for topic in sorted(before.topics.keys() - after.topics.keys()):
        yield "topic", f"{topic}: deleted", topic
    for topic, partitions in after.topics.items():
        if topic not in before.topics:
            replicas = len(partitions[0].replicas) if partitions else 0
            yield (
                "topic",
                f"{topic}: created, {counted(len(partitions), 'partition')}, {counted(replicas, 'replica')} of each",
                topic,
            )
            continue
        old = {p.partition: p for p in before.topics[topic]}
        added = [p for p in partitions if p.partition not in old]
        if added:
            yield "topic", f"{topic}: {_named(added, len(partitions))} added", topic
        pairs = [(old[p.partition], p) for p in partitions if p.partition in old]
        yield from _replica_changes(topic, pairs)
        yield from _leader_changes(topic, pairs)
        yield from _isr_changes(topic, pairs)


_Pairs = Sequence[tuple[PartitionView, PartitionView]]


def _replica_changes(topic: str, pairs: _Pairs) -> Iterator[_Change]:
    for old, new in pairs:
        if old.replicas != new.replicas:
            was, now = (",".join(map(str, p.replicas)) for p in (old, new))
            yield "topic", f"{topic}: partition {new.partition}: replicas {was} → {now}", topic


def _leader_changes(topic: str, pairs: _Pairs) -> Iterator[_Change]:
    alike = defaultdict(list)
    for old, new in pairs:
        if old.leader != new.leader:
            alike[new.leader, _in_order(new)].append((old, new))
    for (leader, isr), moved in alike.items():
        old, new = moved[0]
        names = _named([new for _, new in moved], len(pairs))
        if leader is None:
            text = f"{topic}: {names} without a leader"
        elif len(moved) == 1:
            was = "none" if old.leader is None else old.leader
            text = f"{topic}: partition {new.partition}: leader {was} → {leader}, ISR {isr}"
        else:
            text = f"{topic}: {names} now led by {leader}, ISR {isr}"
        yield "leader", text, topic


def _isr_changes(topic: str, pairs: _Pairs) -> Iterator[_Change]:
    alike = defaultdict(list)
    for old, new in pairs:
        # If the leader changed, too, its line already shows the ISR.
        if old.leader == new.leader and set(old.isr) != set(new.isr):
            left, joined = (tuple(sorted(ids)) for ids in (set(old.isr) - set(new.isr), set(new.isr) - set(old.isr)))
            alike[left, joined].append((old, new))
    for (left, joined), changed in alike.items():
        old, new = changed[0]
        if len(changed) == 1:
            text = f"{topic}: partition {new.partition}: ISR {_in_order(old)} → {_in_order(new)}"
        else:
            deeds = [f"{_brokers(ids)} {deed}" for ids, deed in ((left, "left"), (joined, "joined")) if ids]
            text = f"{topic}: {' and '.join(deeds)} the ISR of {_named([new for _, new in changed], len(pairs))}"
        yield "isr", text, topic


def _group_changes(before: ClusterView, after: ClusterView) -> Iterator[_Change]:
    for id_, group in after.groups.items():
        owned = _ownership(group)
        old = before.groups.get(id_)
        # While a group rebalances, its members have no partitions for a moment. Show only the result.
        if not is_settled(group) or (old is not None and _ownership(old) == owned):
            continue
        if not owned:
            if old is not None:
                yield "group", f"group {id_}: no members", None
            continue
        shares = ", ".join(f"{name} {len(partitions) or 'idle'}" for name, partitions in owned)
        yield "group", f"group {id_}: {counted(len(owned), 'member')} own partitions: {shares}", None


def is_settled(group: GroupView) -> bool:
    """Return whether a group isn't rebalancing."""
    return group.state in ("Stable", "Empty")


def _ownership(group: GroupView) -> list[tuple[str, tuple[tuple[str, int], ...]]]:
    """Return members by client id with their partitions, in order."""
    return sorted((member.client_id, tuple(sorted(member.partitions))) for member in group.members)


def _named(partitions: Iterable[PartitionView], of: int) -> str:
    numbers = [p.partition for p in partitions]
    if len(numbers) == 1:
        return f"partition {numbers[0]}"
    if len(numbers) == of:
        return f"all {of} partitions"
    return "partitions " + ", ".join(map(str, numbers))


def _brokers(ids: Sequence[int]) -> str:
    return ("broker " if len(ids) == 1 else "brokers ") + ", ".join(map(str, ids))

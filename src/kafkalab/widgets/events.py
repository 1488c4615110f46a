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
_CONSEQUENCES: tuple[EventKind, ...] = ("broker", "controller", "leader", "isr")

_DONE = {
    "kill": "killed",
    "stop": "stopped",
    "pause": "paused",
    "resume": "resumed",
    "restart": "restarted",
    "isolate": "isolated",
    "heal": "healed",
}


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
    says
        The same in the words of the live map, with ``{}`` for the partitions. Empty if `text` serves there, too.
    partitions
        The partitions it's about, by number.
    after
        Seconds since the last fault, if it may have caused the event.
    """

    at: float
    kind: EventKind
    text: str
    topic: str | None = None
    says: str = ""
    partitions: tuple[int, ...] = ()
    after: float | None = None


@dataclass(frozen=True)
class _Change:
    """An event without its time. See `Event`."""

    kind: EventKind
    text: str
    topic: str | None = None
    says: str = ""
    partitions: tuple[int, ...] = ()

    def at(self, moment: float, fault: float | None) -> Event:
        """Return the event: the change at a moment, with the time of the fault that may have caused it."""
        if self.kind not in _CONSEQUENCES or fault is None or moment - fault > _CONSEQUENCE:
            return Event(moment, self.kind, self.text, self.topic, self.says, self.partitions)
        after = moment - fault
        says = self.says or self.text  # the live map adds the time in its own words
        return Event(moment, self.kind, f"{self.text}, after {after:.1f} s", self.topic, says, self.partitions, after)


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
    fault = last_fault(at, faults)
    return [change.at(at, fault) for change in changes]


def fault_event(fault: Fault) -> Event:
    """Return the event for a fault."""
    done = _DONE.get(fault.verb)
    return Event(fault.at, "fault", f"{fault.verb} broker {fault.broker}", says=f"broker {fault.broker} {done}" if done else "")


def _in_order(partition: PartitionView) -> str:
    """Return the ISR of a partition, its leader first."""
    ids = sorted(partition.isr, key=lambda broker: (broker != partition.leader, broker))
    return ",".join(map(str, ids)) or "empty"


def last_fault(at: float, faults: Iterable[Fault]) -> float | None:
    """Return when the last fault before a moment began, or None. Faults that began later didn't cause anything at it."""
    return max((fault.at for fault in faults if fault.at <= at), default=None)


def _broker_changes(before: ClusterView, after: ClusterView) -> Iterator[_Change]:
    for id_, broker in after.brokers.items():
        old = before.brokers.get(id_)
        if old is None:
            yield _Change("broker", f"broker {id_} added: {broker.state}")
        elif old.state != broker.state:
            why = f": {broker.end}" if broker.end else ""
            yield _Change(
                "broker", f"broker {id_}: {old.state} → {broker.state}{why}", says=f"broker {id_} is {broker.state}{why}"
            )
    for id_ in before.brokers.keys() - after.brokers.keys():
        yield _Change("broker", f"broker {id_} removed")


def _controller_change(before: ClusterView, after: ClusterView) -> Iterator[_Change]:
    if before.controller == after.controller:
        return
    if after.controller is None:
        yield _Change("controller", f"no active controller (was {before.controller})")
    else:
        old = "none" if before.controller is None else before.controller
        yield _Change(
            "controller",
            f"active controller {old} → {after.controller}, epoch {after.controller_epoch}",
            says=f"active controller is now {after.controller}, epoch {after.controller_epoch}",
        )


def _topic_changes(before: ClusterView, after: ClusterView) -> Iterator[_Change]:
    for topic in sorted(before.topics.keys() - after.topics.keys()):
        yield _Change("topic", f"{topic}: deleted", topic)
    for topic, partitions in after.topics.items():
        if topic not in before.topics:
            replicas = len(partitions[0].replicas) if partitions else 0
            shape = f"{counted(len(partitions), 'partition')}, {counted(replicas, 'replica')} of each"
            yield _Change("topic", f"{topic}: created, {shape}", topic)
            continue
        old = {p.partition: p for p in before.topics[topic]}
        added = [p for p in partitions if p.partition not in old]
        if added:
            yield _Change("topic", f"{topic}: {_named(added, len(partitions))} added", topic)
        pairs = [(old[p.partition], p) for p in partitions if p.partition in old]
        yield from _replica_changes(topic, pairs)
        yield from _leader_changes(topic, pairs)
        yield from _isr_changes(topic, pairs)


_Pairs = Sequence[tuple[PartitionView, PartitionView]]


def _replica_changes(topic: str, pairs: _Pairs) -> Iterator[_Change]:
    for old, new in pairs:
        if old.replicas != new.replicas:
            was, now = (",".join(map(str, p.replicas)) for p in (old, new))
            yield _Change("topic", f"{topic}: partition {new.partition}: replicas {was} → {now}", topic)


def _leader_changes(topic: str, pairs: _Pairs) -> Iterator[_Change]:
    alike = defaultdict(list)
    for old, new in pairs:
        if old.leader != new.leader:
            alike[new.leader, _in_order(new)].append((old, new))
    for (leader, isr), moved in alike.items():
        old, new = moved[0]
        names = _named([new for _, new in moved], len(pairs))
        deed = f"moved to broker {leader}" if any(old.leader is not None for old, _ in moved) else f"led by broker {leader}"
        if leader is None:
            text = f"{topic}: {names} without a leader"
            deed = "without a leader"
        elif len(moved) == 1:
            was = "none" if old.leader is None else old.leader
            text = f"{topic}: partition {new.partition}: leader {was} → {leader}, ISR {isr}"
        else:
            text = f"{topic}: {names} now led by {leader}, ISR {isr}"
        yield _Change("leader", text, topic, f"{{}} {deed}", _numbers(moved))


def _isr_changes(topic: str, pairs: _Pairs) -> Iterator[_Change]:
    alike = defaultdict(list)
    for old, new in pairs:
        # If the leader changed, too, its line already shows the ISR.
        if old.leader == new.leader and set(old.isr) != set(new.isr):
            left, joined = (tuple(sorted(ids)) for ids in (set(old.isr) - set(new.isr), set(new.isr) - set(old.isr)))
            alike[left, joined].append((old, new))
    for (left, joined), changed in alike.items():
        old, new = changed[0]
        deeds = " and ".join(f"{_brokers(ids)} {deed}" for ids, deed in ((left, "left"), (joined, "joined")) if ids)
        if len(changed) == 1:
            text = f"{topic}: partition {new.partition}: ISR {_in_order(old)} → {_in_order(new)}"
        else:
            text = f"{topic}: {deeds} the ISR of {_named([new for _, new in changed], len(pairs))}"
        yield _Change("isr", text, topic, f"{deeds} the ISR of {{}}", _numbers(changed))


def _group_changes(before: ClusterView, after: ClusterView) -> Iterator[_Change]:
    for id_, group in after.groups.items():
        owned = _ownership(group)
        old = before.groups.get(id_)
        # While a group rebalances, its members have no partitions for a moment. Show only the result.
        if not is_settled(group) or (old is not None and _ownership(old) == owned):
            continue
        if not owned:
            if old is not None:
                yield _Change("group", f"group {id_}: no members")
            continue
        members = counted(len(owned), "member")
        shares = ", ".join(f"{name} {len(partitions) or 'idle'}" for name, partitions in owned)
        sizes = " + ".join(str(len(partitions)) for _, partitions in owned)
        yield _Change(
            "group", f"group {id_}: {members} own partitions: {shares}", says=f"group {id_}: {members}, {sizes} partitions"
        )


def is_settled(group: GroupView) -> bool:
    """Return whether a group isn't rebalancing."""
    return group.state in ("Stable", "Empty")


def _ownership(group: GroupView) -> list[tuple[str, tuple[tuple[str, int], ...]]]:
    """Return members by client id with their partitions, in order."""
    return sorted((member.client_id, tuple(sorted(member.partitions))) for member in group.members)


def _numbers(pairs: _Pairs) -> tuple[int, ...]:
    return tuple(new.partition for _, new in pairs)


def _named(partitions: Iterable[PartitionView], of: int) -> str:
    numbers = [p.partition for p in partitions]
    if len(numbers) == 1:
        return f"partition {numbers[0]}"
    if len(numbers) == of:
        return f"all {of} partitions"
    return "partitions " + ", ".join(map(str, numbers))


def _brokers(ids: Sequence[int]) -> str:
    return ("broker " if len(ids) == 1 else "brokers ") + ", ".join(map(str, ids))

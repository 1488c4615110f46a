"""Questions about consumer groups: whether they exist, what they have committed, and what they have read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import cast

from confluent_kafka import Message

from kafkalab.checks.context import CheckContext, Unmet, text_of
from kafkalab.checks.probes import parametrized
from kafkalab.checks.topics import existing
from kafkalab.checks.wording import counted
from kafkalab.cluster import GroupView
from kafkalab.cluster.offsets import watermarks

__all__ = [
    "Place",
    "behind",
    "existing_group",
    "has_members",
    "has_read_everything",
    "is_assigned_evenly",
    "place_of",
    "places",
    "read_everything",
    "read_once",
    "unread",
]

Place = tuple[int, int]
"""Partition and offset."""


def existing_group(ctx: CheckContext, group: str) -> GroupView:
    """Return a group. Raise `Unmet` if it doesn't exist."""
    groups = ctx.view().groups
    if group not in groups:
        raise Unmet(f"There is no consumer group {group!r} yet. The cluster's groups: {', '.join(groups) or 'none'}.")
    return groups[group]


def behind(ctx: CheckContext, group: GroupView, topic: str) -> Iterator[tuple[int, int, int | None]]:
    """Yield partitions where the group hasn't committed the end: number, end offset, lag (None without a committed offset)."""
    for partition, end in ctx.end_offsets(topic).items():
        if end and group.lag.get((topic, partition)) != 0:
            yield partition, end, group.lag.get((topic, partition))


def read_everything(ctx: CheckContext, group: str, topic: str) -> None:
    """Raise `Unmet` unless a group has committed the end of every partition that holds records."""
    existing(ctx, topic)
    view = existing_group(ctx, group)
    if not any(ctx.end_offsets(topic).values()):
        raise Unmet(f"{topic} is empty, so {group} has read nothing.")
    for partition, end, lag in behind(ctx, view, topic):
        if lag is None:
            raise Unmet(f"{group} has committed nothing in partition {partition} of {topic}, which ends at offset {end}.")
        # An application that commits the offset of the last record it read always stays one behind.
        question = " Is a committed offset the last one read, or the next one to read?" if lag == 1 else ""
        raise Unmet(
            f"{group} has committed offset {end - lag} in partition {partition} of {topic}, which ends at offset "
            f"{end}.{question}"
        )


has_read_everything = parametrized(read_everything)


def place_of(record: Message) -> Place:
    """Return the place of a record that was read from a topic."""
    return cast(Place, (record.partition(), record.offset()))


def places(ctx: CheckContext, topic: str) -> set[Place]:
    """Return every offset of a topic's partitions. Without transactions, that is one for each record."""
    existing(ctx, topic)
    return {(p, offset) for p, (low, high) in watermarks(ctx.cluster, topic).items() for offset in range(low, high)}


def unread(ctx: CheckContext, group: GroupView, topic: str, records: Iterable[Message]) -> list[str]:
    """Return the values of those records that are at or after the group's committed offsets."""
    ends = ctx.end_offsets(topic)
    committed = {p: ends[p] - lag for (name, p), lag in group.lag.items() if name == topic}
    return [text_of(m) for m in records if m.offset() >= committed.get(m.partition(), 0)]


@parametrized
def has_members(ctx: CheckContext, group: str, number: int) -> None:
    """A group must have this many members."""
    members = existing_group(ctx, group).members
    if len(members) != number:
        timeout = " A member that was killed stays in the group until its session times out." if len(members) > number else ""
        raise Unmet(f"{group} has {counted(len(members), 'member')}, not {number}.{timeout}")


@parametrized
def is_assigned_evenly(ctx: CheckContext, group: str, topic: str) -> None:
    """Each partition must be assigned to one member, and members' shares differ by at most one."""
    view = existing_group(ctx, group)
    assigned = Counter(partition for member in view.members for name, partition in member.partitions if name == topic)
    if free := [p.partition for p in existing(ctx, topic) if not assigned[p.partition]]:
        raise Unmet(f"No member of {group} is assigned partition {free[0]} of {topic}. Did you wait for the rebalance to end?")
    sizes = sorted(sum(name == topic for name, _ in member.partitions) for member in view.members)
    if sizes[-1] - sizes[0] > 1:
        raise Unmet(f"The members have {', '.join(map(str, sizes))} partitions. Did you wait for the rebalance to end?")


def read_once(read: Iterable[Place], wanted: Iterable[Place], who: str) -> None:
    """Raise `Unmet` unless every wanted record was read, and none twice."""
    counts, wanted = Counter(tuple(place) for place in read), set(wanted)
    if twice := sorted(place for place, n in counts.items() if n > 1):
        raise Unmet(
            f"{who} read offset {twice[0][1]} of partition {twice[0][0]} more than once "
            f"({sum(counts.values()) - len(counts)} duplicates in all)."
        )
    if missing := sorted(wanted - counts.keys()):
        raise Unmet(
            f"{who} did not read offset {missing[0][1]} of partition {missing[0][0]} "
            f"({len(missing)} of {len(wanted)} are missing)."
        )

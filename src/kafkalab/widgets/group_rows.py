"""The consumer groups of the live map, in HTML."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from html import escape

from kafkalab.cluster.view import GroupView, MemberView
from kafkalab.widgets.events import is_settled
from kafkalab.widgets.flows import reader_spot
from kafkalab.widgets.prose import counted
from kafkalab.widgets.rates import AT_REST, Rates, rate_words

__all__ = ["group_row", "idle_row", "is_idle"]

_MEMBERS = 8  # so many have a line; more would push everything else out


def is_idle(group: GroupView) -> bool:
    """Return whether nobody reads in a group: it has no members, or its members have no partitions."""
    return not group.members or (is_settled(group) and not any(member.partitions for member in group.members))


def group_row(group: GroupView, rates: Rates = AT_REST) -> str:
    """Return a group with its rate and lag, and its members with their partitions."""
    state = "" if group.state == "Stable" else f'<span class="note">{_state(group)}</span>'
    lag = sum(group.lag.values())
    members = sorted(group.members, key=lambda member: (member.client_id, member.id))
    topics = {topic for member in members for topic, _ in member.partitions}
    read = {place for id_, place in rates.read if id_ == group.id}
    lines = "".join(_member(member, group, len(topics) > 1, read) for member in members[:_MEMBERS])
    more = f'<div class="muted">and {len(members) - _MEMBERS} more</div>' if len(members) > _MEMBERS else ""
    rate = rate_words(sum(rates.read[group.id, place] for place in read))
    reads = f' <span class="read" title="records that it commits, per second">· {rate}</span>' if rate else ""
    return (
        f'<div class="group"><b title="group {escape(group.id)}">{escape(group.id)}</b>'
        f'<span class="muted numbers"><span>{counted(len(members), "member")}</span>{reads}</span>{state}{_bar(lag)}'
        f'<span class="numbers">lag {lag:,}</span></div>{lines}{more}'
    )


def idle_row(group: GroupView) -> str:
    """Return a group in which nobody reads, in one line."""
    lag = sum(group.lag.values())
    who = f"{counted(len(group.members), 'member')}, no partitions" if group.members else _state(group)
    return (
        f'<div class="group"><b title="group {escape(group.id)}">{escape(group.id)}</b><span class="muted">{who}</span>'
        f'<span class="numbers" style="margin-left:auto">lag {lag:,}</span></div>'
    )


def _state(group: GroupView) -> str:
    words = "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in group.state)
    return escape(words.replace("_", " ").strip())


def _bar(lag: int) -> str:
    # By powers of ten: a quarter is a lag of 9, the whole of 9,999 and more.
    share = min(100, round(25 * math.log10(lag + 1)))
    return f'<span class="bar" aria-hidden="true"><span style="width:{share}%"></span></span>'


def _member(member: MemberView, group: GroupView, name_topics: bool, read: Collection[tuple[str, int]]) -> str:
    lag = sum(group.lag.get(owned, 0) for owned in member.partitions)
    by_topic: dict[str, list[int]] = {}
    for topic, partition in sorted(member.partitions):
        by_topic.setdefault(topic, []).append(partition)
    owned = "".join(_owned(topic, numbers, group, name_topics, read) for topic, numbers in by_topic.items())
    return (
        f'<div class="member"><span title="{escape(member.client_id)}">{escape(member.client_id)}</span>'
        f'<div class="replicas">{owned or _NO_PARTITIONS}</div>'
        f'<span class="numbers">{f"lag {lag:,}" if lag else ""}</span></div>'
    )


_NO_PARTITIONS = '<span class="muted">no partitions</span>'


def _owned(topic: str, partitions: Sequence[int], group: GroupView, named: bool, read: Collection[tuple[str, int]]) -> str:
    name = f'<span class="muted">{escape(topic)}</span>' if named else ""
    pieces = []
    for partition in partitions:
        lag = group.lag.get((topic, partition), 0)
        title = f"{escape(topic)}, partition {partition}: lag {lag:,}"
        spot = reader_spot(group.id, (topic, partition))
        kind = ("behind" if lag else "owned") + (" moves" if (topic, partition) in read else "")
        pieces.append(f'<i class="{kind}" title="{title}" {spot}>{partition}</i>')
    return name + "".join(pieces)

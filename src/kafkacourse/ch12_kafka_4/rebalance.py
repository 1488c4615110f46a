"""Three groups of three members, one for each rebalance protocol, that a fourth member joins and leaves."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from kafkacourse.ch12_kafka_4.reports import reports_of
from kafkalab.checks.context import CheckContext, Unmet
from kafkalab.checks.groups import existing_group, has_members, is_assigned_evenly
from kafkalab.checks.lab import Lab
from kafkalab.checks.topics import existing
from kafkalab.checks.wording import counted

__all__ = ["lab"]

TOPIC = "prices"
EAGER, COOPERATIVE, NEW = GROUPS = ("eager", "cooperative", "new")
ROUNDED = 0.06
"""Seconds by which an answer may differ: a learner may write 0.7 for 0.65."""

lab = Lab("12_rebalance")

# -- three protocols --------------------------------------------------------------------------------------------------

protocols = lab.add_check(
    "12_rebalance_protocols",
    "Three groups, three protocols",
    hints=(
        "Chapter 4, section 5, has all three. A classic group is eager unless its members ask for another assignor.",
        "Cooperative is an assignor: its setting is partition.assignment.strategy. The new protocol isn't.",
        "The setting of the new one is group.protocol. With it, the broker sets how often members send heartbeats.",
    ),
)


def each_group(probe: Callable[[str], Callable[[CheckContext], None]]) -> Callable[[CheckContext], None]:
    """Run the same probe for all three groups."""

    def probe_each(ctx: CheckContext) -> None:
        for group in GROUPS:
            probe(group)(ctx)

    return probe_each


three_members = each_group(lambda group: has_members(group, 3))
protocols.requires("Each group has three members")(three_members)
protocols.requires("They share the twelve partitions evenly", after=three_members)(
    each_group(lambda group: is_assigned_evenly(group, TOPIC))
)


def speaks(group: str, wanted: str) -> Callable[[CheckContext], None]:
    """Return a probe: the broker must report that a group uses this protocol."""

    def probe(ctx: CheckContext) -> None:
        found = existing_group(ctx, group)
        if found.protocol != wanted:
            raise Unmet(
                f"The broker says that {group} is a group of type {found.protocol}, not {wanted}. Which setting of its members "
                "chooses the type?"
            )

    return probe


def is_classic(group: str, *, cooperative: bool) -> Callable[[CheckContext], None]:
    """Return a probe: a group must be of the classic type, with an assignor of this kind."""

    def probe(ctx: CheckContext) -> None:
        speaks(group, "classic")(ctx)
        assignor = existing_group(ctx, group).assignor
        if assignor.startswith("cooperative") != cooperative:
            raise Unmet(
                f"The assignor of {group} is {assignor}. Does it take everything from everybody, or only what must move?"
            )

    return probe


protocols.requires("eager is classic, with an eager assignor", after=three_members)(is_classic(EAGER, cooperative=False))
protocols.requires("cooperative is classic, with a cooperative assignor", after=three_members)(
    is_classic(COOPERATIVE, cooperative=True)
)
protocols.requires("new uses the consumer protocol", after=three_members)(speaks(NEW, "consumer"))

# -- gaps -------------------------------------------------------------------------------------------------------------

gaps = lab.add_check(
    "12_rebalance_gaps",
    "How long partitions had no owner",
    hints=(
        "A partition has no owner from the report that it's revoked until the next one that it's assigned.",
        "Go through the reports in order, and remember for each partition when it was revoked.",
        "A partition can lose its owner twice: when the fourth member comes, and when it leaves.",
    ),
)


@dataclass(frozen=True)
class Change:
    """A member was assigned a partition, or gave it up."""

    at: float
    member: str
    partition: int
    assigned: bool


def changes(ctx: CheckContext, group: str) -> list[Change]:
    """Return what the members of a group reported, in order of time."""
    found = [
        Change(fact["at"], fact["member"], fact["partition"], fact["event"] == "assigned")
        for fact in reports_of(ctx, group)
        if fact.keys() >= {"at", "member", "partition", "event"}
    ]
    if not found:
        raise Unmet(f"`reports` shows no change in {group}. Did a fourth member join while the group was watched?")
    return sorted(found, key=lambda change: change.at)


def gaps_of(reported: Iterable[Change]) -> dict[int, list[float]]:
    """Return how long each partition had no owner, each time. A partition that was never revoked is missing."""
    revoked: dict[int, float] = {}
    found: dict[int, list[float]] = defaultdict(list)
    for change in reported:
        if not change.assigned:
            revoked[change.partition] = change.at
        elif change.partition in revoked:
            found[change.partition].append(change.at - revoked.pop(change.partition))
    return found


@gaps.requires("A fourth member joined each group, and left it")
def fourth_came_and_went(ctx: CheckContext) -> None:
    for group in GROUPS:
        there = {member.client_id for member in existing_group(ctx, group).members}
        if not {change.member for change in changes(ctx, group)} - there:
            raise Unmet(
                f"By the reports of {group}, everybody who was assigned a partition is still a member. Did a fourth leave?"
            )


gaps.requires("Each group has three members again", after=fourth_came_and_went)(three_members)


@gaps.requires("The reports end with the owners that the broker reports", after=(fourth_came_and_went, three_members))
def reports_are_right(ctx: CheckContext) -> None:
    existing(ctx, TOPIC)
    for group in GROUPS:
        owners = {p: m.client_id for m in existing_group(ctx, group).members for topic, p in m.partitions if topic == TOPIC}
        reported = {change.partition: change.member if change.assigned else "nobody" for change in changes(ctx, group)}
        for partition, member in sorted(reported.items()):
            if owners.get(partition, "nobody") != member:
                raise Unmet(
                    f"By the reports of {group}, partition {partition} belongs to {member} at the end. The broker says: "
                    f"{owners.get(partition, 'nobody')}. Did you wait until three members shared the partitions again?"
                )


@gaps.requires("You know how long each partition had no owner", after=reports_are_right)
def gaps_are_right(ctx: CheckContext) -> None:
    given = ctx.answer("gaps", dict[str, dict[int, float]], "group → partition → seconds without an owner")
    for group in GROUPS:
        if group not in given:
            raise Unmet(f"`gaps` has no {group!r}.")
        told = gaps_of(changes(ctx, group))
        if wrong := sorted(p for p, seconds in given[group].items() if p not in told and seconds > ROUNDED):
            raise Unmet(f"`gaps` has a gap for partition {wrong[0]} of {group}. By the reports it had an owner all the time.")
        for partition, times in sorted(told.items()):
            if abs((answer := given[group].get(partition, 0.0)) - sum(times)) > ROUNDED:
                raise Unmet(
                    f"By the reports, partition {partition} of {group} had no owner for {sum(times):.2f} s, in "
                    f"{counted(len(times), 'gap')}; `gaps` says {answer:.2f} s. Between which two reports does a gap last?"
                )

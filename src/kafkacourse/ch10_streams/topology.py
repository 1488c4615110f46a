"""Alarms joined with depots and counted: what an application keeps up to date is what a recomputation of both topics gives."""

from __future__ import annotations

from collections import Counter

from kafkacourse.datasets import truck_events
from kafkalab.checks.context import CheckContext, Unmet
from kafkalab.checks.lab import Lab
from kafkalab.checks.lives import passed_on
from kafkalab.checks.records import key_of, last_values
from kafkalab.checks.topics import existing, filled, was_given
from kafkalab.checks.wording import counted, quoted

__all__ = ["lab"]

ALARMS, DEPOTS, SINK = "in-1", "in-2", "out-1"
STORE = "counts"
WITHOUT = "unknown"
_CHANGELOG = f"-{STORE}-changelog"
_SENT = sum(event.event != "Normal" for event in truck_events())

lab = Lab("10_topology")

check = lab.add_check(
    "10_topology",
    "Build a topology: join, group, count",
    hints=(
        "builder.stream reads in-1, and builder.table reads in-2. A stream has a join for each case: with a partner only, or "
        "without one, too.",
        "A joiner gets the alarm and the depot, and returns the new value. In Python a missing partner is None.",
        "groupBy takes a function of key and value, which returns the new key. count takes Materialized.as_(name).",
        "count gives a table. toStream makes a stream of its changes, mapValues makes text of a number, and to writes it.",
    ),
)


@check.requires(f"{ALARMS} has the alarms, and {DEPOTS} has the depots of some drivers")
def topics_are_filled(ctx: CheckContext) -> None:
    for topic in (ALARMS, DEPOTS):
        existing(ctx, topic)
    was_given(ctx, ALARMS, _SENT, "record", "Run the cell that sends alarms and depots.", or_more=True)
    filled(ctx, DEPOTS)


def recomputed(ctx: CheckContext) -> Counter[str]:
    """The counts by depot, from what both topics hold now."""
    depots = last_values(ctx.records(DEPOTS))
    return Counter(depots.get(key_of(record), WITHOUT) for record in ctx.records(ALARMS))


def _counts(ctx: CheckContext) -> dict[str, str]:
    """The last count of each key, as a table has it."""
    return last_values(passed_on(ctx, SINK))


@check.requires(f"{SINK} has a count for each depot, and its keys are depots", after=topics_are_filled)
def keys_are_depots(ctx: CheckContext) -> None:
    counts, right = _counts(ctx), recomputed(ctx)
    if others := [key for key in counts if key not in right]:
        raise Unmet(
            f"{SINK} has a record with the key {quoted(others[0])}. The keys are the depots of {DEPOTS}, and {WITHOUT}. By "
            "what does your topology group?"
        )
    if missing := [key for key in sorted(right) if key not in counts and key != WITHOUT]:
        raise Unmet(f"{SINK} has no count for {missing[0]} so far. Does the application run, and has it read everything?")


@check.requires(f"An alarm whose driver has no depot is counted, too: under {WITHOUT}", after=topics_are_filled)
def the_join_keeps_them(ctx: CheckContext) -> None:
    if WITHOUT not in _counts(ctx):
        raise Unmet(
            f"{SINK} has no count for {WITHOUT}, but {counted(recomputed(ctx)[WITHOUT], 'alarm')} of {ALARMS} came from "
            f"drivers that aren't in {DEPOTS}. What does your join do with a record that has no partner?"
        )


@check.requires(
    f"The last count of each depot is what {ALARMS} and {DEPOTS} give", after=(keys_are_depots, the_join_keeps_them)
)
def counts_are_right(ctx: CheckContext) -> None:
    right = recomputed(ctx)
    for key, value in _counts(ctx).items():
        if value != str(right[key]):
            raise Unmet(
                f"{SINK} ends with {quoted(value)} for {key}, and that isn't the number of alarms of its drivers. What does "
                "your topology count, and has it read everything?"
            )


@check.requires(f"The counts are in a store `{STORE}`, and its changelog has each of them", after=counts_are_right)
def the_store_has_a_changelog(ctx: CheckContext) -> None:
    changelogs = [topic for topic in ctx.cluster.describe(groups=False).topics if topic.endswith(_CHANGELOG)]
    if not changelogs:
        raise Unmet(f"No topic is the changelog of a store `{STORE}`. Where does your topology name the store?")
    if not any(recomputed(ctx).keys() <= {key_of(r) for r in ctx.records(changelog)} for changelog in changelogs):
        raise Unmet(f"{changelogs[0]} lacks some of the counts. What does the store `{STORE}` of your topology hold?")

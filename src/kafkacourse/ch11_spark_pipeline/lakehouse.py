"""Three Delta tables, of which one was damaged: fixed with what it held before, and with what came after."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from kafkacourse.ch11_spark_pipeline import RUN_AGAIN
from kafkacourse.datasets import truck_events
from kafkalab.checks.context import CheckContext, Unmet
from kafkalab.checks.delta_tables import DeltaTable
from kafkalab.checks.lab import Lab
from kafkalab.checks.topics import existing
from kafkalab.checks.wording import counted

__all__ = ["lab"]

SOURCE = "truck_position"
BRONZE, SILVER, GOLD = "bronze", "silver", "gold"
BEFORE = 80  # events that were there when the mistake was made
HIDDEN = "Overspeed"  # what the mistake made Normal
FOLDER = "the folder of the tables"

lab = Lab("11_lakehouse")

check = lab.add_check(
    "11_lakehouse",
    "Fix a table with its own past",
    hints=(
        "write.format('delta').mode('overwrite') replaces what a table held. The old version stays readable.",
        "DESCRIBE HISTORY has a row for each version. The column operation says what made it. Which one did the mistake make?",
        "spark.read.format('delta').option('versionAsOf', n) reads version n. How does the next one differ?",
        "RESTORE takes the whole table back to a version. MERGE changes single rows: by which columns do two rows match?",
    ),
)

EVENTS = truck_events()
RIGHT = {event.timestamp: event.event for event in EVENTS}
CHANGED = sum(event.event == HIDDEN for event in EVENTS[:BEFORE])


def alarms(kinds: Iterable[tuple[int, str]]) -> dict[int, int]:
    """How many dangerous events each driver has."""
    return dict(Counter(driver for driver, kind in kinds if kind != "Normal"))


COUNTS = alarms((event.driver, event.event) for event in EVENTS)
WITH_THE_MISTAKE = alarms(
    (event.driver, "Normal" if event.event == HIDDEN and number < BEFORE else event.event)
    for number, event in enumerate(EVENTS)
)
EARLY = alarms((event.driver, event.event) for event in EVENTS[:BEFORE])


def _table(ctx: CheckContext, name: str) -> DeltaTable:
    return DeltaTable(ctx.answer("lake", str, FOLDER), name)


@check.requires("Trucks sent all their events, and bronze has each of them once")
def bronze_has_all(ctx: CheckContext) -> None:
    existing(ctx, SOURCE)
    sent = ctx.given(SOURCE)
    if sent != len(EVENTS):
        raise Unmet(
            f"{SOURCE} was given {counted(sent, 'event')}, not {len(EVENTS)}. Run each cell with drive() once. {RUN_AGAIN}"
        )
    rows = _table(ctx, BRONZE).rows()
    if len(rows) != sent:
        raise Unmet(f"{BRONZE} has {counted(len(rows), 'row')}, the topic has {counted(sent, 'record')}. Was take_in() called?")


def _mistake(ctx: CheckContext) -> tuple[DeltaTable, int]:
    """The table silver, and its version that the mistake made."""
    silver = _table(ctx, SILVER)
    operations = silver.operations
    if "UPDATE" not in operations:
        raise Unmet(
            f"The history of {SILVER} has no UPDATE, only {', '.join(operations)}. Run the cell with the mistake, and keep "
            "the table. Its history is what you fix it with."
        )
    return silver, operations.index("UPDATE")


@check.requires("You know the last good version of silver", after=bronze_has_all)
def good_version_is_known(ctx: CheckContext) -> None:
    silver, wrong = _mistake(ctx)
    good = ctx.answer("good", int, f"the last version of {SILVER} before the mistake")
    if good != wrong - 1:
        found = f"made by {silver.operations[good]}" if 0 <= good < len(silver.operations) else "not there"
        raise Unmet(f"`good` is {good}. That version is {found}. Which version did the mistake make?")


@check.requires("You know how many events the mistake changed", after=good_version_is_known)
def changed_is_known(ctx: CheckContext) -> None:
    changed = ctx.answer("changed", int, "the number of events that the mistake changed")
    if changed != CHANGED:
        raise Unmet(f"`changed` is {changed}. Read {SILVER} as of the two versions, and count the rows of a kind in each.")


@check.requires("Silver has each event again, as its truck sent it", after=bronze_has_all)
def silver_is_right(ctx: CheckContext) -> None:
    silver, _ = _mistake(ctx)
    rows = silver.rows()
    times = Counter(row.get("time") for row in rows)
    if twice := sum(number > 1 for number in times.values()):
        raise Unmet(
            f"{SILVER} has {counted(twice, 'event')} more than once, such as the one at {max(times, key=times.__getitem__)}. "
            "Which rows were there when you added yours?"
        )
    if missing := RIGHT.keys() - times.keys():
        late = sum(event.timestamp in missing for event in EVENTS[BEFORE:])
        raise Unmet(
            f"{SILVER} lacks {counted(len(missing), 'event')}, {late} of them sent after the mistake. If you went back "
            "to an earlier version, what did it not have yet?"
        )
    wrong = [row for row in rows if row["kind"] != RIGHT.get(row["time"])]
    if wrong:
        kind = RIGHT.get(wrong[0]["time"], "nothing")
        raise Unmet(
            f"{SILVER} has {counted(len(wrong), 'event')} of another kind than its truck sent. The one at "
            f"{wrong[0]['time']} is {wrong[0]['kind']} and was {kind}. Which version still knows?"
        )


def _counts(rows: Iterable[dict[str, Any]]) -> dict[int, int]:
    try:
        return {int(row["driver"]): int(row["alarms"]) for row in rows if row["alarms"]}  # who has none may be missing
    except KeyError as column:
        raise Unmet(f"{GOLD} has no column {column}. It needs two: driver and alarms.") from None


@check.requires("Gold counts the dangerous events of each driver", after=silver_is_right)
def gold_is_right(ctx: CheckContext) -> None:
    found = _counts(_table(ctx, GOLD).rows())
    if found == COUNTS:
        return
    if found == WITH_THE_MISTAKE:
        raise Unmet(f"{GOLD} has the counts that the mistake made. When was it worked out from {SILVER} for the last time?")
    if found == EARLY:
        raise Unmet(
            f"{GOLD} has the counts of the first {BEFORE} events. When was it worked out from {SILVER} for the last time?"
        )
    driver = next(d for d in sorted(COUNTS.keys() | found.keys()) if found.get(d) != COUNTS.get(d))
    raise Unmet(
        f"{GOLD} has {found.get(driver, 'no count')} for driver {driver}. How many of that driver's rows in {SILVER} "
        "aren't Normal?"
    )

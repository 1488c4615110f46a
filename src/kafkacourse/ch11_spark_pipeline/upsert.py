"""Counts in PostgreSQL that a batch which runs again doesn't change."""

from __future__ import annotations

from collections import Counter

from kafkacourse.drivers import answered
from kafkalab.checks.context import CheckContext, Unmet
from kafkalab.checks.lab import Lab
from kafkalab.checks.records import key_of
from kafkalab.checks.topics import filled
from kafkalab.checks.wording import counted

__all__ = ["lab"]

SOURCE, TABLE = "truck_events", "driving"

lab = Lab("11_upsert")

check = lab.add_check(
    "11_upsert",
    "Count in a table, even if Spark dies",
    hints=(
        "A batch that runs again has the number that it had before. What would the table have to remember to know it?",
        "ON CONFLICT (driver) DO UPDATE SET … WHERE … changes a row only if the condition holds. EXCLUDED is the row that you "
        "wanted to insert.",
        "Give the table a column batch. Add only where driving.batch < EXCLUDED.batch, and write the new number, too.",
    ),
)


@check.requires(f"Spark died when the stream {TABLE} had stored a batch, and ran that batch again")
def a_batch_ran_again(ctx: CheckContext) -> None:
    runs = answered(ctx, f"SELECT batch FROM runs WHERE stream = '{TABLE}'".encode(), "The table runs")
    ran = Counter(batch for (batch,) in runs)
    if not ran:
        raise Unmet(f"No batch has run under the name {TABLE}. Give that name to run, and to crashing.")
    if max(ran.values()) < 2:
        raise Unmet(
            f"No batch ran twice under the name {TABLE}. Let the stream run with crashing, and start it again after Spark has "
            "died, with the same checkpoint."
        )


def _counts(ctx: CheckContext) -> dict[int, int]:
    """Return what the table has of each driver."""
    question = f"SELECT driver::int, events::bigint FROM {TABLE}"
    rows = answered(ctx, question.encode(), f"Columns driver and events of {TABLE}")
    found = Counter(driver for driver, _ in rows)
    if repeated := [driver for driver, times in found.items() if times > 1]:
        raise Unmet(f"{TABLE} has {found[repeated[0]]} rows for driver {repeated[0]}. It should have one for each driver.")
    return {int(str(driver)): int(str(events or 0)) for driver, events in rows}


def _sent(ctx: CheckContext) -> Counter[int]:
    return Counter(int(key_of(record)) for record in filled(ctx, SOURCE))


@check.requires(f"{TABLE} has a row for each driver")
def drivers_are_there(ctx: CheckContext) -> None:
    found, sent = _counts(ctx), _sent(ctx)
    if missing := sorted(sent.keys() - found.keys()):
        raise Unmet(f"{TABLE} has no row for driver {missing[0]}. Did the stream get to the end?")
    if others := sorted(found.keys() - sent.keys()):
        raise Unmet(f"{TABLE} has a row for driver {others[0]}, of whom {SOURCE} has no event.")


@check.requires("No event is missing in it", after=(a_batch_ran_again, drivers_are_there))
def none_is_missing(ctx: CheckContext) -> None:
    found = _counts(ctx)
    for driver, events in sorted(_sent(ctx).items()):
        if found[driver] < events:
            raise Unmet(
                f"{TABLE} has {counted(found[driver], 'event')} of driver {driver}, and {SOURCE} {events}. Does your function "
                "skip a batch that isn't in the table yet, or write over what earlier batches counted?"
            )


@check.requires("No event counts twice in it", after=(a_batch_ran_again, drivers_are_there))
def none_counts_twice(ctx: CheckContext) -> None:
    found = _counts(ctx)
    for driver, events in sorted(_sent(ctx).items()):
        if found[driver] > events:
            raise Unmet(
                f"{TABLE} has {counted(found[driver], 'event')} of driver {driver}, and {SOURCE} {events}. How does the table "
                "know that a batch is in it already?"
            )

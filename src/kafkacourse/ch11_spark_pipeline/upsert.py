"""Counts in PostgreSQL that a batch which runs again doesn't change."""

from __future__ import annotations

from collections import Counter
from typing import Any

from psycopg import sql

from kafkacourse.ch11_spark_pipeline.upsert_drill import stopped_and_repeated
from kafkacourse.drivers import answered
from kafkalab.checks.context import CheckContext, Unmet
from kafkalab.checks.lab import Lab
from kafkalab.checks.records import key_of
from kafkalab.checks.topics import filled
from kafkalab.checks.wording import counted
from kafkalab.services import PostgreSQL
from kafkalab.spark import spark_session

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
        "A process that dies loses its variables, and the transaction that it hasn't committed. What's left to the next one?",
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
    rows_of = Counter(driver for driver, _ in rows)
    if repeated := [driver for driver, number in rows_of.items() if number > 1]:
        raise Unmet(f"{TABLE} has {rows_of[repeated[0]]} rows for driver {repeated[0]}. It should have one for each driver.")
    return {int(str(driver)): int(str(events or 0)) for driver, events in rows}


def _sent(ctx: CheckContext) -> Counter[int]:
    return Counter(int(key_of(record)) for record in filled(ctx, SOURCE))


@check.requires(f"{TABLE} has a row for each driver")
def drivers_are_there(ctx: CheckContext) -> None:
    counts, sent = _counts(ctx), _sent(ctx)
    if missing := sorted(sent.keys() - counts.keys()):
        raise Unmet(f"{TABLE} has no row for driver {missing[0]}. Did the stream get to the end?")
    if others := sorted(counts.keys() - sent.keys()):
        raise Unmet(f"{TABLE} has a row for driver {others[0]}, of whom {SOURCE} has no event.")


@check.requires("No event is missing in it", after=(a_batch_ran_again, drivers_are_there))
def none_is_missing(ctx: CheckContext) -> None:
    counts = _counts(ctx)
    for driver, events in sorted(_sent(ctx).items()):
        if counts[driver] < events:
            raise Unmet(
                f"{TABLE} has {counted(counts[driver], 'event')} of driver {driver}, and {SOURCE} {events}. Does your function "
                "skip a batch that isn't in the table yet, or write over what earlier batches counted?"
            )


@check.requires("No event counts twice in it", after=(a_batch_ran_again, drivers_are_there))
def none_counts_twice(ctx: CheckContext) -> None:
    counts = _counts(ctx)
    for driver, events in sorted(_sent(ctx).items()):
        if counts[driver] > events:
            raise Unmet(
                f"{TABLE} has {counted(counts[driver], 'event')} of driver {driver}, and {SOURCE} {events}. How does the table "
                "know that a batch is in it already?"
            )


NEW = 99  # a driver of whom the table has no row yet


def _more_rows(ctx: CheckContext) -> Any:
    """Return a batch that never ran: rows as the lab's stream has them."""
    first, second = sorted(_sent(ctx))[:2]
    drivers = (first, second, first, NEW)
    rows = [(driver, 0, 1_000_000 + number) for number, driver in enumerate(drivers)]
    return spark_session(ctx.cluster).createDataFrame(rows, "driver INT, partition INT, offset BIGINT")


@check.requires(
    "A batch that is stopped half done counts once when a new process runs it", after=(none_is_missing, none_counts_twice)
)
def survives_any_stop(ctx: CheckContext) -> None:
    store = ctx.function("store", "your function")
    server = ctx.answer("database", PostgreSQL, "the PostgreSQL server of this lab", may_be_empty=True)
    first, second = sorted(_sent(ctx))[:2]
    right = Counter(_counts(ctx)) + Counter((first, second, first, NEW))
    [(last,)] = answered(ctx, b"SELECT max(batch) FROM runs", "The table runs")
    question = sql.SQL(f"SELECT driver::int, events::bigint FROM {TABLE}")
    for transactions, rows in stopped_and_repeated(store, server, _more_rows(ctx), int(str(last)) + 1, question):
        counts: Counter[int] = Counter()
        for driver, events in rows:
            counts[driver] += events
        if wrong := sorted(driver for driver in right | counts if counts[driver] != right[driver]):
            more = counts[wrong[0]] > right[wrong[0]]
            raise Unmet(
                f"The check gave store another batch, stopped it after {counted(transactions, 'transaction')}, and gave the "
                f"same batch to a fresh copy of store. Then {TABLE} had {counted(counts[wrong[0]], 'event')} of driver "
                f"{wrong[0]}, not {right[wrong[0]]}. "
                + (
                    "Where does your function remember the batch: in the same transaction as the counts?"
                    if more
                    else "Does your function note the batch before its counts are in the table?"
                )
            )

"""A field that events get while a stream runs: every event is in the table, with the field or its default."""

from __future__ import annotations

import json
from typing import Any

from kafkacourse.ch11_spark_pipeline import RUN_AGAIN
from kafkalab.checks.context import CheckContext, Unmet, text_of
from kafkalab.checks.lab import Lab
from kafkalab.checks.records import key_of
from kafkalab.checks.topics import existing, filled
from kafkalab.checks.wording import counted, quoted

__all__ = ["lab"]

SOURCE, TABLE, DEAD = "truck_position", "events", "dead_letters"
FIRST, NEW, OLD = range(60), range(60, 100), range(100, 120)  # events by V1, by V2, and by V1 again
DEFAULT = -1

lab = Lab("11_schema_change")

check = lab.add_check(
    "11_schema_change",
    "Add a field while the stream runs",
    hints=(
        "A field in Avro is a dictionary with a name and a type, and a third entry for readers of older events.",
        "drive(schema, numbers) registers the schema and sends. The stream asks for schemas in start(), and only there.",
        "Two things decide what a row has: the schemas that the stream knows, and the one that it reads by.",
        "A dead letter has the key and value of its record. Can a batch decode it, by the schemas that there are today?",
    ),
)


def speed_of(number: int) -> int:
    """What the truck sent."""
    return 50 + number % 40


def _table(ctx: CheckContext) -> dict[str, dict[str, Any]]:
    """The last value of each key."""
    rows: dict[str, dict[str, Any]] = {}
    for record in filled(ctx, TABLE):
        try:
            row = json.loads(text_of(record))
        except ValueError:
            row = None
        if not isinstance(row, dict):
            raise Unmet(f"A record of {TABLE} has the value {quoted(text_of(record))}. It should be an event as JSON.")
        rows[key_of(record)] = row
    return rows


def _missing(rows: dict[str, dict[str, Any]], numbers: range) -> int:
    return sum(f"event-{number}" not in rows for number in numbers)


@check.requires("Trucks sent all events")
def events_were_sent(ctx: CheckContext) -> None:
    existing(ctx, SOURCE)
    found, wanted = ctx.given(SOURCE), OLD.stop
    if found < wanted:
        raise Unmet(
            f"{SOURCE} was given {counted(found, 'event')}, and should have {wanted}. Which call of drive() is missing?"
        )


@check.requires("The table has the events from before the change", after=events_were_sent)
def first_are_there(ctx: CheckContext) -> None:
    if missing := _missing(_table(ctx), FIRST):
        raise Unmet(f"{TABLE} lacks {counted(missing, 'event')} of the first {len(FIRST)}. Did the stream process everything?")


@check.requires("It has the events that were written by V2", after=events_were_sent)
def new_are_there(ctx: CheckContext) -> None:
    if missing := _missing(_table(ctx), NEW):
        letters = ctx.given(DEAD)
        raise Unmet(
            f"{TABLE} lacks {counted(missing, 'event')} of the {len(NEW)} from 60 on. {DEAD} was given "
            f"{counted(letters, 'record')}. Has anybody read those again since a stream knows their schema?"
        )


@check.requires("They have their speed", after=new_are_there)
def speeds_are_right(ctx: CheckContext) -> None:
    rows = _table(ctx)
    for number in NEW:
        if (found := rows[f"event-{number}"].get("speed")) != speed_of(number):
            raise Unmet(
                f"event-{number} has {'no speed' if found is None else f'the speed {found}'} in {TABLE}, and was sent with "
                f"{speed_of(number)}. By which schema does the stream read? {RUN_AGAIN if found == DEFAULT else ''}".rstrip()
            )


@check.requires(f"Old trucks' events have the default, {DEFAULT}", after=events_were_sent)
def default_is_there(ctx: CheckContext) -> None:
    rows = _table(ctx)
    if missing := _missing(rows, OLD):
        raise Unmet(f"{TABLE} lacks {counted(missing, 'event')} of the {len(OLD)} from 100 on. Did a stream run at that time?")
    for number in OLD:
        if (found := rows[f"event-{number}"].get("speed")) != DEFAULT:
            raise Unmet(
                f"event-{number} was sent without a speed, and has {'none' if found is None else found} in {TABLE}. Which "
                f"schema does the stream read by, and what does that say about a missing speed?"
            )

"""A table's changes in a topic, captured from the database's log, beside the same table asked now and then."""

from __future__ import annotations

import json
from typing import Any

from kafkacourse.drivers import drivers_in, keyed_by_ids
from kafkalab.checks.connectors import SENT, runs
from kafkalab.checks.context import CheckContext, Unmet
from kafkalab.checks.lab import Lab
from kafkalab.checks.records import key_of
from kafkalab.checks.topics import existing, filled

__all__ = ["lab"]

SOURCE, CAPTURED, POLLED = "driver-changes", "trucking_driver", "polled_driver"

lab = Lab("09_cdc")

cdc = lab.add_check(
    "09_cdc",
    "Capture the changes of a table",
    hints=(
        "Without transforms, look at a record of trucking.public.driver: where in its value is the row, and what's its key?",
        "Three transforms: Debezium's ExtractNewRecordState, ExtractField$Key with its `field`, and RegexRouter. A dot in a "
        "regex stands for any character.",
        "Look at the value of the last record of key 11, as bytes. The cell above yours lists what "
        "`delete.tombstone.handling.mode` may be.",
        "To begin afresh: stop the connector, DELETE its offsets, delete the topic, PUT the new settings, resume. "
        "`begin_afresh` in your cell does that, so correct the settings and run the cell again.",
    ),
)


@cdc.requires("driver-changes runs")
def source_runs(ctx: CheckContext) -> None:
    runs(ctx, SOURCE)


@cdc.requires("Each record of trucking_driver has the driver's id as its key", after=source_runs)
def keys_are_ids(ctx: CheckContext) -> None:
    keyed_by_ids(ctx, CAPTURED)


def last_values(ctx: CheckContext, topic: str) -> dict[int, bytes | None]:
    """The value of each key's last record in a topic of one partition."""
    values: dict[int, bytes | None] = {}
    for record in filled(ctx, topic, SENT):
        if key_of(record).isdigit():
            values[int(key_of(record))] = record.value()
    return values


def row_of(value: bytes) -> dict[str, Any] | None:
    """A driver's row that is a record's value; None where it isn't one."""
    try:
        row = json.loads(value)
    except ValueError:
        return None
    return row if isinstance(row, dict) and {"id", "name", "available"} <= row.keys() else None


@cdc.requires("The value of each record is the driver's row", after=keys_are_ids)
def values_are_rows(ctx: CheckContext) -> None:
    for record in filled(ctx, CAPTURED, SENT):
        value = record.value()
        if value not in (None, b"null") and row_of(value) is None:
            raise Unmet(
                f"A record of {CAPTURED} has a value that begins with {value[:40].decode(errors='replace')!r}. Which part of "
                "it is the row, and which transform takes that out?"
            )


@cdc.requires("The last record of each key is what the table has", after=values_are_rows)
def topic_is_the_table(ctx: CheckContext) -> None:
    rows, values = drivers_in(ctx, "driver"), last_values(ctx, CAPTURED)
    for number, row in rows.items():
        value = values.get(number)
        if value is None:
            raise Unmet(f"The table has a driver {number}, and {CAPTURED} doesn't. Is that change still on its way?")
        found = row_of(value) or {}
        if (found.get("name"), found.get("available")) != row:
            raise Unmet(
                f"The last record of driver {number} in {CAPTURED} isn't what the table has. Is a change still on its way?"
            )


@cdc.requires("A driver who was deleted has a tombstone", after=topic_is_the_table)
def deleted_ones_have_tombstones(ctx: CheckContext) -> None:
    rows, values = drivers_in(ctx, "driver"), last_values(ctx, CAPTURED)
    gone = values.keys() - rows.keys()
    if not gone:
        raise Unmet(f"No driver of {CAPTURED} was deleted from the table. Run `shift` first.")
    for number in sorted(gone):
        if values[number] == b"null":
            raise Unmet(
                f"The last record of driver {number} has a value: the four letters null. Compaction keeps that, for a "
                "tombstone has no value at all. What may ExtractNewRecordState make of a delete?"
            )
        if values[number] is not None:
            raise Unmet(
                f"Driver {number} isn't in the table any more, and the last record of {CAPTURED} for it still has a value. "
                "What becomes of a delete on its way?"
            )


@cdc.requires("You know whom the polled topic still takes for a driver")
def ghosts_are_known(ctx: CheckContext) -> None:
    existing(ctx, POLLED)
    ghosts = ctx.answer("ghosts", set[int], "ids in polled_driver that the table lacks")
    right = last_values(ctx, POLLED).keys() - drivers_in(ctx, "driver").keys()
    if ghosts != right:
        raise Unmet(f"`ghosts` is {sorted(ghosts)}. Compare the keys of {POLLED} with the ids in the table.")

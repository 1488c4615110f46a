"""The same six positions as a stream and as a table."""

from __future__ import annotations

from collections import defaultdict

from kafkalab.checks.context import CheckContext, Unmet, text_of
from kafkalab.checks.lab import Notebook
from kafkalab.checks.records import BEGIN_AGAIN, key_of
from kafkalab.checks.topics import existing, filled
from kafkalab.checks.wording import counted, quoted
from kafkalab.datasets import first_positions

__all__ = ["notebook"]

STREAM, TABLE = "position_stream", "position_table"
HISTORY = {str(driver): [e.csv() for e in first_positions() if e.driver == driver] for driver in (11, 21)}
LATEST = {driver: values[-1] for driver, values in HISTORY.items()}

notebook = Notebook("10_duality", difficulty="medium", minutes=30, needs="chapter 10, sections 2 and 3")

lab = notebook.check(
    "10_duality",
    "Read a topic as a stream and as a table",
    hints=(
        "A topic can be a source only once. Make the stream first, and the table from it.",
        "A KStream has toTable: with Materialized.as_('latest') it keeps the last value of each key in a store of that name.",
        "A KTable can't be written as it is. Its method toStream gives the stream of its changes.",
        "A compacted topic keeps the last record of each key, which is all that a table needs. Which setting makes it one?",
    ),
)


def _of_each_driver(ctx: CheckContext, topic: str) -> dict[str, list[str]]:
    found = defaultdict(list)
    for record in filled(ctx, topic):
        key, value = key_of(record), text_of(record)
        if key not in HISTORY:
            raise Unmet(f"{topic} has a record with the key {key}. The keys of the positions are {' and '.join(HISTORY)}.")
        if value not in HISTORY[key]:
            raise Unmet(f"{topic} holds {quoted(value)} for driver {key}, which that driver's truck never sent.")
        found[key].append(value)
    return found


@lab.requires(f"{STREAM} holds every position, once and in the order of each driver")
def stream_has_all(ctx: CheckContext) -> None:
    found = _of_each_driver(ctx, STREAM)
    for driver, values in HISTORY.items():
        there = found.get(driver, [])
        if missing := [value for value in values if value not in there]:
            raise Unmet(
                f"{STREAM} lacks {counted(len(missing), 'position')} of driver {driver}, {quoted(missing[0])} for one. Which "
                "of the two passes on every record, a KStream or a KTable?"
            )
        if sorted(there) != sorted(values):
            raise Unmet(f"{STREAM} holds {len(there)} records of driver {driver}, who sent {len(values)}. {BEGIN_AGAIN}")
        if there != values:
            raise Unmet(f"The positions of driver {driver} aren't in the order in which they were sent. {BEGIN_AGAIN}")


@lab.requires(f"{TABLE} is a topic that keeps the last record of each key")
def table_is_compacted(ctx: CheckContext) -> None:
    existing(ctx, TABLE)
    if (policy := ctx.topic_config(TABLE)["cleanup.policy"]) != "compact":
        raise Unmet(f"The cleanup.policy of {TABLE} is {policy}. With it, Kafka deletes a driver who hasn't moved for long.")


@lab.requires(f"The last record of each driver in {TABLE} is the driver's latest position", after=table_is_compacted)
def table_ends_right(ctx: CheckContext) -> None:
    found = _of_each_driver(ctx, TABLE)
    for driver, value in LATEST.items():
        if driver not in found:
            raise Unmet(f"{TABLE} has no record of driver {driver}.")
        if found[driver][-1] != value:
            raise Unmet(
                f"{TABLE} ends with {quoted(found[driver][-1])} for driver {driver}, who sent another position after that. "
                "Which value does a table keep?"
            )


@lab.requires("You know what the table holds: one row for each driver")
def answer_is_the_table(ctx: CheckContext) -> None:
    latest = ctx.answer("latest", dict[str, str], "driver → the driver's latest position, as the store holds it")
    for driver, value in LATEST.items():
        if driver not in latest:
            raise Unmet(f"`latest` has no row for driver {driver}. It has rows for {', '.join(latest)}.")
        if latest[driver] != value:
            raise Unmet(f"`latest` has {quoted(latest[driver])} for driver {driver}. What does the store hold?")
    if others := [driver for driver in latest if driver not in LATEST]:
        raise Unmet(f"`latest` also has a row for {others[0]}, and no truck of that driver sent a position.")

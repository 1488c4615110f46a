"""The same six positions as a stream and as a table."""

from __future__ import annotations

from collections import defaultdict

from kafkacourse.datasets import first_positions
from kafkalab.checks.context import CheckContext, Unmet, text_of
from kafkalab.checks.lab import Lab
from kafkalab.checks.lives import passed_on
from kafkalab.checks.records import FROM_SECTION_1, key_of
from kafkalab.checks.topics import existing
from kafkalab.checks.wording import counted, quoted
from kafkalab.streams import StreamsApp
from kafkalab.streams.description import Node, parse

__all__ = ["lab"]

STREAM, TABLE = "position_stream", "position_table"
HISTORY = {str(driver): [e.csv() for e in first_positions() if e.driver == driver] for driver in (11, 21)}
LATEST = {driver: values[-1] for driver, values in HISTORY.items()}

lab = Lab("10_duality")

check = lab.add_check(
    "10_duality",
    "Read a topic as a stream and as a table",
    hints=(
        "builder.stream and builder.table of the same topic don't go together: Kafka Streams refuses the second one. Read the "
        "topic as a stream, and make the table from that.",
        "A KStream has toTable: with Materialized.as_('latest') it keeps the last value of each key in a store of that name.",
        "A KTable can't be written as it is. Its method toStream gives the stream of its changes.",
        "A compacted topic keeps the last record of each key, which is all that a table needs. Which setting makes it one?",
    ),
)


def _of_each_driver(ctx: CheckContext, topic: str) -> dict[str, list[str]]:
    found = defaultdict(list)
    for record in passed_on(ctx, topic):
        key, value = key_of(record), text_of(record)
        if key not in HISTORY:
            raise Unmet(f"{topic} has a record with the key {key}. The keys of the positions are {' and '.join(HISTORY)}.")
        if value not in HISTORY[key]:
            raise Unmet(f"{topic} holds {quoted(value)} for driver {key}, which that driver's truck never sent.")
        found[key].append(value)
    return found


@check.requires(f"{STREAM} holds every position, once and in the order of each driver")
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
            raise Unmet(f"{STREAM} holds {len(there)} records of driver {driver}, who sent {len(values)}. {FROM_SECTION_1}")
        if there != values:
            raise Unmet(f"The positions of driver {driver} aren't in the order in which they were sent. {FROM_SECTION_1}")


@check.requires(f"{TABLE} is a topic that keeps the last record of each key")
def table_is_compacted(ctx: CheckContext) -> None:
    existing(ctx, TABLE)
    if (policy := ctx.topic_config(TABLE)["cleanup.policy"]) != "compact":
        raise Unmet(f"The cleanup.policy of {TABLE} is {policy}. With it, Kafka deletes a driver who hasn't moved for long.")


@check.requires(f"The last record of each driver in {TABLE} is the driver's latest position", after=table_is_compacted)
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


def _before(nodes: tuple[Node, ...], node: Node) -> set[Node]:
    """Return the nodes from which records come to a node."""
    direct = {other for other in nodes if node.name in other.followers}
    return direct.union(*(_before(nodes, other) for other in direct))


@check.requires(f"What {TABLE} gets are the changes of a table", after=table_ends_right)
def table_is_written(ctx: CheckContext) -> None:
    app = ctx.answer("app", StreamsApp, "your application", may_be_empty=True)
    sinks = [(part.nodes, node) for part in parse(app.describe()) for node in part.nodes]
    writing = [(nodes, node) for nodes, node in sinks if node.kind == "Sink" and TABLE in node.topics]
    if not writing:
        raise Unmet(f"`app.describe()` has no sink for {TABLE}. Is `app` the application that you started last?")
    for nodes, sink in writing:
        if not any(node.stores for node in _before(nodes, sink)):
            raise Unmet(
                f"On their way to {TABLE}, records pass no state store: the topic gets every position, as {STREAM} does. "
                f"`app.describe()` shows it. Whose changes should it get? {FROM_SECTION_1}"
            )


@check.requires("You know what the table holds: one row for each driver")
def answer_is_the_table(ctx: CheckContext) -> None:
    latest = ctx.answer("latest", dict[str, str], "driver → the driver's latest position, as the store holds it")
    for driver, value in LATEST.items():
        if driver not in latest:
            raise Unmet(f"`latest` has no row for driver {driver}. It has rows for {', '.join(latest)}.")
        if latest[driver] != value:
            raise Unmet(
                f"`latest` has {quoted(latest[driver])} for driver {driver}, who has sent another position since. What "
                "does the store hold when it has all of them?"
            )
    if others := [driver for driver in latest if driver not in LATEST]:
        raise Unmet(f"`latest` also has a row for {others[0]}, and no truck of that driver sent a position.")

"""One question in SQL and as a topology: dangerous events as rows, and the same with the names of drivers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from kafkacourse.datasets import TruckEvent, event_row, truck_events
from kafkalab.checks.context import CheckContext, Unmet, text_of
from kafkalab.checks.lab import Lab
from kafkalab.checks.probes import parametrized
from kafkalab.checks.records import FROM_SECTION_1, json_object, key_of
from kafkalab.checks.topics import filled, was_given
from kafkalab.checks.wording import quoted

__all__ = ["lab"]

SOURCE, TABLE = "truck_position", "driver"
DANGEROUS_IN_SQL, DANGEROUS_IN_STREAMS = "dangerous_in_sql", "dangerous_in_streams"
NAMED_IN_SQL, NAMED_IN_STREAMS = "named_in_sql", "named_in_streams"
_WRITTEN = "Has the query or the application that writes it run, and what did it read?"


class Driver(NamedTuple):
    """A record of the table: who has a number from then on."""

    id: int
    first_name: str
    last_name: str
    timestamp: int


_EVENTS = truck_events()
DRIVERS = (
    Driver(11, "Jamie", "Engesser", _EVENTS[0].timestamp - 1),
    Driver(12, "Laurence", "Lindsey", _EVENTS[0].timestamp - 1),
    Driver(21, "Lila", "Page", _EVENTS[0].timestamp - 1),
    Driver(11, "Micky", "Isaacson", _EVENTS[60].timestamp - 1),
)
_BY_TIME = {str(event.timestamp): event for event in _EVENTS}
_DANGEROUS = {time: event for time, event in _BY_TIME.items() if event.event != "Normal"}

Name = tuple[str | None, str | None]

lab = Lab("10_sql")

check = lab.add_check(
    "10_sql",
    "Ask in SQL, and answer with a topology",
    hints=(
        "spark.sql(query).createOrReplaceTempView(name) gives the rows of a query a name, on a stream, too.",
        "One row for each driver: group by the key, and take max_by of value and offset. from_json makes columns of the text.",
        "A LEFT JOIN keeps a row that has no partner. Which of your views holds the dangerous events only?",
        "In the topology, mapValues makes JSON of the events you kept. leftJoin joins them with builder.table(topic), "
        "and gives your joiner None if there's no such driver.",
    ),
)


def row_of(event: TruckEvent) -> dict[str, str | int | float]:
    """The row that the statement makes of an event."""
    return event_row(event.csv())


def latest_name(event: TruckEvent) -> Name:
    """Who has the number of an event's driver at last."""
    return next(((d.first_name, d.last_name) for d in reversed(DRIVERS) if d.id == event.driver), (None, None))


def name_then(event: TruckEvent) -> Name:
    """Who had the number of an event's driver when it happened."""
    since = (d for d in reversed(DRIVERS) if d.id == event.driver and d.timestamp <= event.timestamp)
    return next(((d.first_name, d.last_name) for d in since), (None, None))


@check.requires("Trucks and drivers sent their records, once")
def all_were_sent(ctx: CheckContext) -> None:
    for topic, wanted in ((SOURCE, len(_EVENTS)), (TABLE, len(DRIVERS))):
        was_given(ctx, topic, wanted, "record", f"Run its cell once. {FROM_SECTION_1}")


def _rows(ctx: CheckContext, topic: str) -> list[Mapping[str, Any]]:
    """The rows of a topic: each is a dangerous event, with the right fields, under its driver's key."""
    rows: list[Mapping[str, Any]] = []
    for record in filled(ctx, topic, _WRITTEN):
        row = json_object(text_of(record))
        if row is None:
            raise Unmet(f"{topic} holds {quoted(text_of(record))}, which is no row as JSON. What makes JSON of a row?")
        _is_dangerous(topic, row)
        if key_of(record) != str(row["driverId"]):
            raise Unmet(
                f"An event of driver {row['driverId']} has the key {quoted(key_of(record))} in {topic}, not the driver."
            )
        rows.append(row)
    return rows


def _is_dangerous(topic: str, row: Mapping[str, Any]) -> None:
    event = _BY_TIME.get(str(row.get("ts")))
    if event is None:
        raise Unmet(f"{topic} has a row with `ts` {row.get('ts')!r}, and no event was sent at that time.")
    if event.event == "Normal":
        raise Unmet(f"{topic} has an event that is Normal, of driver {event.driver}. Which stream does that answer read?")
    for name, value in row_of(event).items():
        field = row.get(name)
        if field != value:
            raise Unmet(
                f"{topic} has a row with `{name}` {field!r}. The statement that creates truck_position_s says {value!r} for "
                "that event. Compare name, type and place of the field."
            )


def _each_once(topic: str, rows: list[Mapping[str, Any]], twice: str, missing: str) -> None:
    """Each dangerous event must be there once; else a question that helps."""
    times = Counter(str(row["ts"]) for row in rows)
    for time, number in times.items():
        if number > 1:
            event = _DANGEROUS[time]
            raise Unmet(f"An event of driver {event.driver} is in {topic} {number} times. {twice} {FROM_SECTION_1}")
    if lost := [event for time, event in _DANGEROUS.items() if time not in times]:
        drivers = ", ".join(map(str, sorted({event.driver for event in lost})))
        raise Unmet(f"{topic} lacks {len(lost)} of {len(_DANGEROUS)} dangerous events, all of drivers {drivers}. {missing}")


@parametrized
def _has_dangerous_events(ctx: CheckContext, topic: str) -> None:
    twice = "Was the query or the application started a second time, from the beginning?"
    _each_once(topic, _rows(ctx, topic), twice, "Does the condition keep every kind but one, and was everything read?")


dangerous_in_sql = check.requires(f"{DANGEROUS_IN_SQL} has each dangerous event once, as a row", after=all_were_sent)(
    _has_dangerous_events(DANGEROUS_IN_SQL)
)
dangerous_in_streams = check.requires(f"{DANGEROUS_IN_STREAMS} has the same rows", after=all_were_sent)(
    _has_dangerous_events(DANGEROUS_IN_STREAMS)
)


def _named(ctx: CheckContext, topic: str, right: Callable[[TruckEvent], Name], wrong: str) -> None:
    """Each dangerous event must be there once, with the right name."""
    rows = _rows(ctx, topic)
    twice = "How many rows does the table have for that driver?"
    _each_once(topic, rows, twice, "What does your join do with an event whose driver isn't in the table?")
    for row in rows:
        event, driver = _DANGEROUS[str(row["ts"])], (row.get("first_name"), row.get("last_name"))
        if driver != right(event):
            raise Unmet(
                f"In {topic} the event of driver {event.driver} with `ts` {event.timestamp} has the name "
                f"{' '.join(map(str, driver))}. {wrong}"
            )


@check.requires(f"{NAMED_IN_SQL} has each of them once, with the name that the table has at last", after=dangerous_in_sql)
def named_in_sql(ctx: CheckContext) -> None:
    _named(ctx, NAMED_IN_SQL, latest_name, f"Which record of {TABLE} is the last one of that driver, if there is one?")


@check.requires(
    f"{NAMED_IN_STREAMS} has each of them once, with the name that the table had at that time", after=dangerous_in_streams
)
def named_in_streams(ctx: CheckContext) -> None:
    _named(ctx, NAMED_IN_STREAMS, name_then, "Who had that number then? Which of the two tables of Kafka Streams knows?")

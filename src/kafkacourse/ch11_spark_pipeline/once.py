"""Late and repeated events: each counts once unless it's too late, and each alarm has its driver's name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from confluent_kafka import Message

from kafkacourse.ch11_spark_pipeline import RUN_AGAIN
from kafkalab.checks.context import CheckContext, Unmet, text_of
from kafkalab.checks.lab import Lab
from kafkalab.checks.records import json_object, key_of, last_values
from kafkalab.checks.topics import filled, was_given
from kafkalab.checks.wording import quoted

__all__ = ["lab"]

SOURCE, COUNTS, ALARMS = "truck_events", "driving_counts", "alarms"
WINDOW, PATIENCE = 60, 120  # seconds


class Sent(NamedTuple):
    """An event: its second after 20:00, its driver, its kind, and its id."""

    second: int
    driver: str
    kind: str
    id: str


WAVES: tuple[tuple[Sent, ...], ...] = (
    (
        Sent(10, "11", "Normal", "a"), Sent(15, "21", "Overspeed", "b"), Sent(15, "21", "Overspeed", "b"),
        Sent(50, "28", "Lane Departure", "c"), Sent(70, "11", "Overspeed", "d"), Sent(110, "21", "Normal", "e"),
    ),
    (
        Sent(250, "11", "Normal", "f"), Sent(65, "21", "Overspeed", "g"), Sent(300, "11", "Overspeed", "h"),
        Sent(70, "11", "Overspeed", "d"),
    ),
    (
        Sent(200, "21", "Normal", "i"), Sent(170, "28", "Normal", "j"), Sent(300, "11", "Overspeed", "h"),
        Sent(310, "21", "Lane Departure", "k"),
    ),
)  # fmt: skip
"""The events of each wave. In the third, one is late and one is too late."""

NAMES = {"11": "Isaacson", "21": "Page"}  # the last rows of the table, which has none for driver 28

lab = Lab("11_once")

check = lab.add_check(
    "11_once",
    "Count each event once",
    hints=(
        "A table in a topic: the last value of each key. `max_by` finds the value at the highest offset of a group.",
        "withWatermark comes before the operator that drops repeats. dropDuplicates by the id alone keeps each id for ever. "
        "What lets it forget one is a time among the columns that it compares. Or take dropDuplicatesWithinWatermark.",
        "f.window makes a column to group by, and window.start is when it began. date_format makes text of it, such as 20:01.",
        "Which kind of join keeps an event whose driver isn't in the table?",
    ),
)


def _counts(sent: Sequence[Sent]) -> Counter[str]:
    return Counter(f"{event.driver}@20:{event.second // WINDOW:02d}" for event in sent)


def _right() -> list[Sent]:
    """Return the events that count: each once, unless the watermark had passed it in an earlier wave."""
    counting: dict[str, Sent] = {}
    latest = watermark = 0
    for wave in WAVES:
        for event in wave:
            latest = max(latest, event.second)
            if event.second >= watermark:
                counting.setdefault(event.id, event)
        watermark = latest - PATIENCE
    return list(counting.values())


ALL = [event for wave in WAVES for event in wave]
RIGHT = _counts(_right())
WITH_REPEATS = _counts([event for event in ALL if event.id != "j"])
WITHIN_WAVES = _counts([event for wave in WAVES for event in set(wave) if event.id != "j"])
TOO_LATE = "28@20:02"
LATEST = max(event.second for event in ALL)
REMEMBERED = len({event.id for event in _right() if event.second + PATIENCE > LATEST - PATIENCE})
"""How many ids a stream may still know after the last wave. Those that forget by the event's own time know fewer."""
_OPEN = {"11@20:05", "21@20:05", "11@20:04", "21@20:03"}
"""Windows that end after the last watermark: in the mode `append`, they have no count yet."""
DANGEROUS = {event.id: event.driver for event in _right() if event.kind != "Normal"}


@check.requires("The three waves were sent, once and in their order")
def waves_were_sent(ctx: CheckContext) -> None:
    was_given(ctx, SOURCE, len(ALL), "record", f"Send each of the three waves once. {RUN_AGAIN}")


def _table(ctx: CheckContext) -> dict[str, str]:
    """Return the last count of each window."""
    return last_values(filled(ctx, COUNTS))


@check.requires(f"{COUNTS} has each window of each driver", after=waves_were_sent)
def windows_are_there(ctx: CheckContext) -> None:
    counts = _table(ctx)
    if others := [key for key in counts if key not in RIGHT and key != TOO_LATE]:
        raise Unmet(
            f"{COUNTS} has a record with the key {quoted(others[0])}. A key is the driver, an @, and the minute in which the "
            f"window starts, in UTC, such as 11@20:01. {RUN_AGAIN}"
        )
    if missing := [key for key in RIGHT if key not in counts]:
        why = "If it did: which output mode writes a count that may still change?" if set(missing) == _OPEN else ""
        raise Unmet(f"{COUNTS} has no count for {missing[0]} so far. Did the stream process every wave? {why}".rstrip())


@check.requires("An event that was sent twice counts once", after=windows_are_there)
def repeats_are_dropped(ctx: CheckContext) -> None:
    for key, value in _table(ctx).items():
        if value == str(WITH_REPEATS[key]) != str(RIGHT[key]):
            where = "in another wave" if value == str(WITHIN_WAVES[key]) else "right after it"
            raise Unmet(
                f"{COUNTS} has {value} for {key}, but one of these events was there already: it was sent again {where}. Where "
                "does your stream remember what it has seen, and for how long?"
            )


@check.requires("An event that is later than the watermark allows doesn't count", after=windows_are_there)
def too_late_ones_are_dropped(ctx: CheckContext) -> None:
    if TOO_LATE in _table(ctx):
        raise Unmet(
            f"{COUNTS} has a count for {TOO_LATE}. Its only event came when the watermark had passed it, if the patience is "
            "2 minutes. Does your stream have a watermark, and with which patience?"
        )


@check.requires("All other counts are right, too", after=(repeats_are_dropped, too_late_ones_are_dropped))
def counts_are_right(ctx: CheckContext) -> None:
    for key, value in _table(ctx).items():
        if value != str(RIGHT[key]):
            raise Unmet(f"{COUNTS} has {quoted(value)} for {key}. Count that driver's events in that minute by hand.")


@check.requires("Both streams forget what the watermark has passed", after=windows_are_there)
def state_is_bounded(ctx: CheckContext) -> None:
    queries = ctx.answer("queries", list, "the streams that run, as spark.streams.active", may_be_empty=True)
    reports = [query.lastProgress for query in queries]
    if len(reports) < 2 or not all(reports):
        raise Unmet(
            f"The check looks at the state of both streams, and got a report of {sum(map(bool, reports))}. Start both, and let "
            "them run."
        )
    for operator in (operator for report in reports for operator in report["stateOperators"]):
        if (rows := operator["numRowsTotal"]) > REMEMBERED:
            raise Unmet(
                f"The operator {operator['operatorName']} of a stream has {rows} rows in its state. The watermark has passed "
                f"most events, so {REMEMBERED} would be enough. What tells this operator that a row is old?"
            )


def _alarm(record: Message) -> dict[str, Any]:
    value = json_object(text_of(record))
    if value is None:
        raise Unmet(f"A record of {ALARMS} has the value {quoted(text_of(record))}. It should be a row as JSON: try to_json.")
    return value


@check.requires(f"{ALARMS} has each dangerous event, and no other", after=waves_were_sent)
def alarms_are_there(ctx: CheckContext) -> None:
    keys = {key_of(record) for record in filled(ctx, ALARMS)}
    if others := sorted(keys - DANGEROUS.keys()):
        raise Unmet(f"{ALARMS} has a record with the key {quoted(others[0])}. The key is the id of an event that isn't Normal.")
    if missing := sorted(DANGEROUS.keys() - keys):
        driver = DANGEROUS[missing[0]]
        raise Unmet(
            f"{ALARMS} lacks event {missing[0]} of driver {driver}. "
            + (
                "That driver isn't in the table: which join keeps such an event?"
                if driver not in NAMES
                else "Did the stream process every wave?"
            )
        )


@check.requires("Each alarm is there once", after=alarms_are_there)
def alarms_are_there_once(ctx: CheckContext) -> None:
    for event, number in Counter(key_of(record) for record in filled(ctx, ALARMS)).items():
        if number > 1:
            raise Unmet(
                f"{ALARMS} has event {event} {number} times. Was it sent more than once, or has its driver more than one row "
                f"in your table? {RUN_AGAIN}"
            )


@check.requires("Each alarm has the last name that its driver has now", after=alarms_are_there)
def names_are_right(ctx: CheckContext) -> None:
    for record in filled(ctx, ALARMS):
        event, name = key_of(record), _alarm(record).get("last_name")
        if name != NAMES.get(DANGEROUS[event]):
            raise Unmet(
                f"Event {event} of driver {DANGEROUS[event]} has the last name {quoted(str(name))} in {ALARMS}. What's the "
                "last record of that driver in the topic driver?"
            )

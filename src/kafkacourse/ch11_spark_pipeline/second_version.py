"""A second version of an answer, computed from the topic's beginning beside the first one, and the switch to it."""

from __future__ import annotations

from collections import Counter

from confluent_kafka import Message

from kafkacourse.ch11_spark_pipeline import RUN_AGAIN
from kafkacourse.datasets import TruckEvent, truck_events
from kafkalab.checks.context import CheckContext, Unmet, text_of
from kafkalab.checks.lab import Lab
from kafkalab.checks.records import key_of
from kafkalab.checks.topics import existing, filled
from kafkalab.checks.wording import counted, quoted

__all__ = ["lab"]

SOURCE, FIRST, SECOND, POINTER = "truck_position", "alarms_v1", "alarms_v2", "current"
BEFORE = 80  # events that the first version had counted when the second one started
OVERLOOKED = "Unsafe tail distance"  # the first version overlooks it

lab = Lab("11_second_version")

check = lab.add_check(
    "11_second_version",
    "Replay a topic into a second version",
    hints=(
        "Version 2 is started as version 1 is. Three things must be its own: its condition, its topic, and one more.",
        "A stream with a checkpoint goes on where that says, whatever startingOffsets says. What does a new folder change?",
        "shutil.rmtree removes a folder with all that is in it. The stream that wrote to it must be gone by then.",
        "Compare table('alarms_v2') with what you count by hand before you write to `current`.",
    ),
)


def _counts(events: list[TruckEvent], *normal: str) -> dict[str, int]:
    """Count each driver's alarms, leaving out the kinds that count as normal."""
    return dict(Counter(str(event.driver) for event in events if event.event not in ("Normal", *normal)))


EVENTS = truck_events()
RIGHT = _counts(EVENTS)
V1 = _counts(EVENTS, OVERLOOKED)
LATER_ONLY = _counts(EVENTS[BEFORE:])
ON_TOP_OF_V1 = dict(Counter(_counts(EVENTS[:BEFORE], OVERLOOKED)) + Counter(LATER_ONLY))


@check.requires("Trucks sent all their events, once")
def events_were_sent(ctx: CheckContext) -> None:
    existing(ctx, SOURCE)
    found = ctx.given(SOURCE)
    if found != len(EVENTS):
        raise Unmet(
            f"{SOURCE} was given {counted(found, 'event')}, not {len(EVENTS)}. Run each cell with drive() once. {RUN_AGAIN}"
        )


def _table(records: list[Message]) -> dict[str, str]:
    return {key_of(record): text_of(record) for record in records}


@check.requires(f"{FIRST} holds what version 1 counted, and nothing else", after=events_were_sent)
def first_is_left_alone(ctx: CheckContext) -> None:
    for record in filled(ctx, FIRST):
        driver, value = key_of(record), text_of(record)
        if not value.isdigit() or int(value) > V1.get(driver, 0):
            raise Unmet(
                f"{FIRST} has {quoted(value)} for driver {driver}. Version 1 never counts as many. Which stream wrote that, "
                "and to which topic should it write?"
            )


@check.requires(f"{SECOND} has the right count for each driver", after=first_is_left_alone)
def second_is_right(ctx: CheckContext) -> None:
    found = _table(filled(ctx, SECOND))
    if found == _as_text(RIGHT):
        return
    if found == _as_text(V1):
        raise Unmet(f"{SECOND} has the same counts as version 1. Which kind of event does its condition overlook?")
    if found == _as_text(LATER_ONLY):
        raise Unmet(
            f"{SECOND} has counts of the last {len(EVENTS) - BEFORE} events only. Where does a stream begin that has no "
            "checkpoint yet, if you don't say so?"
        )
    if found == _as_text(ON_TOP_OF_V1):
        raise Unmet(
            f"{SECOND} goes on from the counts of version 1, and only its later ones are right. From where did it have its "
            "position and its state?"
        )
    driver = next(d for d in sorted(RIGHT.keys() | found.keys()) if found.get(d) != str(RIGHT.get(d)))
    raise Unmet(
        f"{SECOND} has {quoted(found[driver]) if driver in found else 'no count'} for driver {driver}. Did the stream process "
        "everything, and does it count every kind of event but Normal?"
    )


def _as_text(counts: dict[str, int]) -> dict[str, str]:
    return {driver: str(number) for driver, number in counts.items()}


@check.requires(f"Version 2 was worked out again after its checkpoint was lost, in {SECOND}", after=second_is_right)
def second_was_replayed(ctx: CheckContext) -> None:
    last: dict[str, int] = {}
    for record in filled(ctx, SECOND):
        driver, value = key_of(record), text_of(record)
        if not value.isdigit():
            raise Unmet(f"{SECOND} has the value {quoted(value)} for driver {driver}, which is no count.")
        if int(value) <= last.get(driver, 0):
            return
        last[driver] = int(value)
    raise Unmet(
        f"In {SECOND} every count is higher than the one before it, as if the stream had read the topic only once. Is its "
        "checkpoint lost, and did it begin again after that?"
    )


@check.requires(f"{POINTER} points readers to version 2", after=second_is_right)
def readers_are_led(ctx: CheckContext) -> None:
    last = filled(ctx, POINTER)[-1]
    if text_of(last) != SECOND:
        raise Unmet(f"The last record of {POINTER} says {quoted(text_of(last))}. Readers go to the topic that it names.")


@check.requires("Readers were sent there only when version 2 had caught up", after=readers_are_led)
def switch_came_last(ctx: CheckContext) -> None:
    switched = next(record for record in filled(ctx, POINTER) if text_of(record) == SECOND).timestamp()[1]
    table: dict[str, str] = {}
    for record in filled(ctx, SECOND):
        table[key_of(record)] = text_of(record)
        if table == _as_text(RIGHT):
            if record.timestamp()[1] > switched:
                raise Unmet(
                    f"{POINTER} named {SECOND} before that had all counts, so readers saw too low ones for a while. What has "
                    f"to come first? {RUN_AGAIN}"
                )
            return

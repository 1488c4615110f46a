"""An application that forwards only dangerous events, all of them, and each once, even though it was killed."""

from __future__ import annotations

from collections import Counter

from kafkacourse.datasets import truck_events
from kafkalab.checks.context import CheckContext, Unmet, text_of
from kafkalab.checks.lab import Lab
from kafkalab.checks.lives import in_transactions, lived_twice, passed_on
from kafkalab.checks.records import FROM_SECTION_1, key_of
from kafkalab.checks.topics import existing
from kafkalab.checks.wording import counted, quoted

__all__ = ["lab"]

SOURCE, SINK = "truck_position", "dangerous_driving"
_EVENT = 4  # index of the field
_DRIVER = 2
_TIMES = 2  # the trucks drive once before the kill and once after it

lab = Lab("10_dangerous_driving")

check = lab.add_check(
    "10_dangerous_driving",
    "Pass on what is dangerous",
    hints=(
        "builder.stream(topic) is a KStream. It has filter(…), which keeps a record if your function of key and value says so.",
        "The value is text with commas in it, which Python's split takes apart. Which field says what happened?",
        "stream.to(topic) writes what is left, with the keys that the records have.",
        "The default guarantee lets a killed application write some records again. Section 2 of the chapter names the setting.",
    ),
)


def _field(value: str, number: int) -> str:
    """Return a field of an event, or an empty text if the value isn't an event."""
    return dict(enumerate(value.split(","))).get(number, "")


@check.requires("The trucks drove before and after the kill")
def trucks_drove(ctx: CheckContext) -> None:
    existing(ctx, SOURCE)
    found, wanted = ctx.given(SOURCE), _TIMES * len(truck_events())
    if found < wanted:
        raise Unmet(f"{SOURCE} was given {counted(found, 'event')}, not {wanted}. Run each cell with drive(…) once.")


@check.requires(f"{SINK} holds events of the trucks as they sent them, and no Normal one")
def only_dangerous(ctx: CheckContext) -> None:
    sent = set(ctx.values(SOURCE))
    for record in passed_on(ctx, SINK):
        value = text_of(record)
        if value not in sent:
            raise Unmet(f"{SINK} holds {quoted(value)}, which no truck sent. What did your topology do with the value?")
        if (event := _field(value, _EVENT)) == "Normal":
            raise Unmet(f"{SINK} holds a {event} event: {quoted(value)}. Which field of the value does your filter look at?")


@check.requires("Each event has its driver as the key", after=only_dangerous)
def keys_are_kept(ctx: CheckContext) -> None:
    for record in passed_on(ctx, SINK):
        driver = _field(text_of(record), _DRIVER)
        if key_of(record) != driver:
            raise Unmet(f"An event of driver {driver} has the key {key_of(record)} in {SINK}. Which step changed the key?")


@check.requires("The application had two lives, and passed events on in each", after=only_dangerous)
def application_lived_twice(ctx: CheckContext) -> None:
    lived_twice(ctx, SINK)


@check.requires("Every dangerous event is there, as often as it was sent", after=(trucks_drove, only_dangerous))
def each_as_often(ctx: CheckContext) -> None:
    wanted = Counter(value for value in ctx.values(SOURCE) if _field(value, _EVENT) != "Normal")
    found = Counter(ctx.values(SINK))
    if missing := wanted - found:
        raise Unmet(
            f"{SINK} lacks {missing.total()} of {counted(wanted.total(), 'dangerous event')}, for example "
            f"{quoted(next(iter(missing)))}. Does your filter let that type through, and has the application read to the end "
            "since it was started again?"
        )
    if more := found - wanted:
        value = next(iter(more))
        raise Unmet(
            f"{quoted(value)} is in {SINK} {counted(found[value], 'time')}, and was sent {counted(wanted[value], 'time')}. "
            f"What does an application do again after a kill, and which guarantee did you give it? {FROM_SECTION_1}"
        )


@check.requires("All of them were written in transactions", after=(application_lived_twice, each_as_often))
def it_was_no_luck(ctx: CheckContext) -> None:
    in_transactions(ctx, SINK)

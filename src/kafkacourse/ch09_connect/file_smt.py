"""Positions from a file to a topic and on to another file, masked; then a source whose offset is reset."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

from kafkalab.checks.connectors import RUN_AGAIN, SENT, config_of, runs, target_lines
from kafkalab.checks.context import CheckContext, Unmet, text_of
from kafkalab.checks.lab import Lab
from kafkalab.checks.topics import filled
from kafkalab.checks.wording import counted

__all__ = ["lab"]

SOURCE, SINK, TOPIC = "positions-in", "positions-out", "truck_position"
DRIVERS = ("Diana", "Micky", "Lila")
FIRST, ALL, AGAIN = 10, 12, 3

lab = Lab("09_file_smt")


def lines_of(ctx: CheckContext) -> list[dict[str, Any]]:
    """Return the topic's lines of the file. Raise `Unmet` if a record is no whole line."""
    lines = []
    for value in map(text_of, filled(ctx, TOPIC, SENT)):
        try:
            lines.append(dict(json.loads(value)))
        except (ValueError, TypeError):
            raise Unmet(
                f"{TOPIC} has the record {value!r}, which is no whole line of the file. Did the source begin within a line? "
                f"Its position counts bytes, and a line ends with one, too. {RUN_AGAIN}"
            ) from None
    return lines


def numbers(ctx: CheckContext) -> Counter[int]:
    """Count how many times the topic holds each line of the file, by its number."""
    return Counter(line["line"] for line in lines_of(ctx) if "line" in line)


# -- transforms -------------------------------------------------------------------------------------------------------

smt = lab.add_check(
    "09_file_smt",
    "Mask and route lines of a file",
    hints=(
        "Each name in `transforms` has its own `transforms.NAME.type` and settings. RegexRouter has `regex` and "
        "`replacement`; `$1` is what the first bracket of the regex matched.",
        "The sink's transforms need fields, which JsonConverter gives them; `value.converter.schemas.enable` is false.",
        "To write the file again: stop the sink, DELETE its offsets, delete its file, PUT the settings, resume. "
        "`begin_afresh` in its cell does that, so correct the settings and run the cell again.",
        "MaskField$Value has `fields` and `replacement`. InsertField$Value has `static.field` and `static.value`.",
    ),
)


@smt.requires("positions-in runs, and a RegexRouter names its topic")
def source_is_routed(ctx: CheckContext) -> None:
    runs(ctx, SOURCE)
    config = config_of(ctx, SOURCE)
    if config.get("topic") != "position":
        raise Unmet(f"The setting `topic` of {SOURCE} is {config.get('topic')!r}. Leave it: a transform is to change the name.")
    if not any(value.endswith("RegexRouter") for name, value in config.items() if name.endswith(".type")):
        raise Unmet(f"{SOURCE} has no RegexRouter. Where do transforms of a source have their settings?")


@smt.requires("truck_position holds the ten lines of the file", after=source_is_routed)
def topic_holds_the_lines(ctx: CheckContext) -> None:
    times = numbers(ctx)
    if again := [number for number in range(1, FIRST) if times[number] > 1]:
        raise Unmet(
            f"Line {again[0]} is in {TOPIC} {times[again[0]]} times. Does a connector under another name know where "
            f"this one was? {RUN_AGAIN}"
        )
    if missing := [number for number in range(1, FIRST + 1) if not times[number]]:
        raise Unmet(f"{TOPIC} lacks line {missing[0]} of the file. Which topic got it? kafka-topics.sh lists them.")


@smt.requires("positions-out runs, and its file has the ten lines", after=topic_holds_the_lines)
def sink_writes_them(ctx: CheckContext) -> None:
    runs(ctx, SINK)
    if (found := len(target_lines(ctx, SINK))) < FIRST:
        raise Unmet(f"The file of {SINK} has {counted(found, 'line')}, not {FIRST}. Does it read all of {TOPIC}?")


@smt.requires("No line of that file names a driver, and each still names its truck", after=sink_writes_them)
def drivers_are_masked(ctx: CheckContext) -> None:
    sent = lines_of(ctx)
    trucks, events = ({str(line.get(name)) for line in sent} for name in ("truck", "event"))
    for line in target_lines(ctx, SINK):
        if named := [driver for driver in DRIVERS if driver in line]:
            raise Unmet(
                f"A line of the file names {named[0]}. Which field holds that name? Lines that were written before a change of "
                f"the chain stay as they are. {RUN_AGAIN}"
            )
        if not (_has(line, "truck", trucks) and _has(line, "event", events)):
            raise Unmet(f"A line of the file is {line!r}. It should keep its truck and its event: which fields are masked?")


@smt.requires("Each line says which depot it came from", after=sink_writes_them)
def depot_is_inserted(ctx: CheckContext) -> None:
    for line in target_lines(ctx, SINK):
        if not _has(line, "depot", {"Bern"}):
            raise Unmet(f"A line of the file is {line!r}. Where is the field depot with the value Bern?")


def _has(line: str, field: str, values: set[str]) -> bool:
    """Return whether a line of the sink's file has one of these values in a field, as a map's text or as JSON."""
    found = re.search(rf'\b{field}"?\s*[=:]\s*"?([^",}}]*)', line)
    return found is not None and found[1].strip() in values


# -- offsets ----------------------------------------------------------------------------------------------------------

offsets = lab.add_check(
    "09_offsets",
    "Let a source send its last lines again",
    hints=(
        "Three requests: PUT …/stop, PATCH …/offsets, PUT …/resume. The second is refused until no task runs: ask again.",
        "GET …/offsets shows the form of the body. The position counts bytes.",
        "Line 10 begins where the first nine end: add up the lengths of the first nine lines of the file, with their ends.",
    ),
)


@offsets.requires("truck_position holds lines 1 to 9 once, in spite of the restart")
def early_lines_once(ctx: CheckContext) -> None:
    times = numbers(ctx)
    early = range(1, ALL - AGAIN + 1)
    if missing := [number for number in early if not times[number]]:
        raise Unmet(f"{TOPIC} lacks line {missing[0]}. {RUN_AGAIN}")
    if again := [number for number in early if times[number] > 1]:
        raise Unmet(
            f"Line {again[0]} is in {TOPIC} {times[again[0]]} times. The source began too early: at which byte does line "
            f"{ALL - AGAIN + 1} begin, and does a connector under another name know where this one was? {RUN_AGAIN}"
        )


@offsets.requires("It holds lines 10 to 12 twice", after=early_lines_once)
def late_lines_twice(ctx: CheckContext) -> None:
    times = numbers(ctx)
    for number in range(ALL - AGAIN + 1, ALL + 1):
        if times[number] != 2:
            raise Unmet(
                f"Line {number} is in {TOPIC} {counted(times[number], 'time')}, not twice. Which position did you set, and did "
                "the source resume? To set another one, run the cells of section 1 that create both connectors again, and then "
                "yours."
            )


@offsets.requires("positions-in runs again", after=late_lines_twice)
def source_runs(ctx: CheckContext) -> None:
    runs(ctx, SOURCE)

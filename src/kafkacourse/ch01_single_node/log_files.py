"""A topic's segments on the broker's disk, and the records in them."""

from __future__ import annotations

from pathlib import Path

from kafkalab.checks.context import CheckContext, Unmet
from kafkalab.checks.lab import Lab
from kafkalab.checks.topics import has_shape, holds_exactly
from kafkalab.checks.wording import counted

__all__ = ["lab"]

TOPIC = "readings"
READINGS = tuple(f"reading {n}:".ljust(300_000, ".") for n in range(10))
SEGMENT_BYTES = "1048576"
SOUGHT_OFFSET = 5

lab = Lab("01_log_files")

check = lab.add_check(
    "01_log_files",
    "Read a topic's files",
    hints=(
        "kafka-topics.sh --create takes settings of the topic as --config name=value; the chapter's topic rolling had one.",
        "The data folder has one folder per partition: the topic's name, a hyphen, the partition's number.",
        "kafka-dump-log.sh --files a.log,b.log --print-data-log prints a line that starts with | for each record. In a cell, "
        "`lines = !cd {folder} && kafka-dump-log.sh …` gives the lines as a list.",
    ),
)
is_shaped = check.requires(f"{TOPIC} has 1 partition")(has_shape(TOPIC, 1, 1))


@check.requires("Its segments have at most 1 MiB", after=is_shaped)
def segments_are_small(ctx: CheckContext) -> None:
    if (size := ctx.topic_config(TOPIC)["segment.bytes"]) != SEGMENT_BYTES:
        raise Unmet(
            f"A segment of {TOPIC} may have {int(size):,} bytes. Which setting of the topic limits that? Delete the topic, "
            "create it with that setting, and send the readings again."
        )


is_filled = check.requires("It holds the ten readings, each once", after=is_shaped)(holds_exactly(TOPIC, READINGS))


def log_files(ctx: CheckContext) -> dict[int, str]:
    """Return the names of the topic's .log files by their first offset."""
    return {int(name.removesuffix(".log")): name for name in ctx.log_files(TOPIC)[0]}


@check.requires("You know the names of its .log files", after=(segments_are_small, is_filled))
def files_are_named(ctx: CheckContext) -> None:
    given = sorted(Path(file).name for file in ctx.answer("files", list[str | Path], "the names of the .log files"))
    true = sorted(log_files(ctx).values())
    if given == true:
        return
    if other := [name for name in given if not name.endswith(".log")]:
        raise Unmet(f"{other[0]!r} doesn't hold records. Their files' names end in .log.")
    if odd := [name for name in given if len(name) != len(true[0])]:
        raise Unmet(f"{odd[0]!r} is no such name. A name is an offset, padded with zeros to 20 digits, and .log.")
    raise Unmet(
        f"You name {counted(len(given), 'file')}, but the folder has {len(true)}, or others. Did you copy it after you had "
        "sent everything?"
    )


@check.requires(f"You know which one holds offset {SOUGHT_OFFSET}", after=(segments_are_small, is_filled))
def holder_is_right(ctx: CheckContext) -> None:
    given = ctx.answer("holder", Path, f"the name of the file that holds offset {SOUGHT_OFFSET}").name
    files = log_files(ctx)
    if given not in files.values():
        raise Unmet(f"{given!r} isn't one of the .log files.")
    if given != files[max(offset for offset in files if offset <= SOUGHT_OFFSET)]:
        raise Unmet(f"Offset {SOUGHT_OFFSET} isn't in {given}. Which of its records gives a file its name?")


@check.requires("You counted all records with kafka-dump-log.sh", after=is_filled)
def dump_is_complete(ctx: CheckContext) -> None:
    given = ctx.answer("dumped", int, "how many records kafka-dump-log.sh shows in all files together")
    if given != len(READINGS):
        raise Unmet(
            f"It isn't {given}. Did you count all files, and each record once? With --print-data-log a record's line starts "
            "with |."
        )

"""A burst that a stream works off in batches of limited size: none is too large, and no event is lost or processed twice."""

from __future__ import annotations

from collections import Counter

from kafkacourse.ch11_spark_pipeline import RUN_AGAIN
from kafkalab.checks.context import CheckContext, Unmet, text_of
from kafkalab.checks.lab import Lab
from kafkalab.checks.records import key_of
from kafkalab.checks.topics import existing, filled
from kafkalab.checks.wording import counted, quoted

__all__ = ["lab"]

SOURCE, DONE = "truck_position", "processed"
USUAL, BURST, LIMIT = 200, 2000, 400
EVENTS = 2 * (USUAL + BURST)
ROUNDING = 4  # Spark shares a limit out among the partitions, and rounds up where one has little

lab = Lab("11_back_pressure")

check = lab.add_check(
    "11_back_pressure",
    "Work off a burst in small batches",
    hints=(
        "start() hands options on to the Kafka source. Section 8 of the chapter names the one that limits a micro-batch.",
        "Another topic and another checkpoint make another stream. start() gives each topic a checkpoint of its own.",
        "processAllAvailable returns when a stream is done with what is there. You need it after the second burst, too.",
    ),
)


@check.requires("Trucks sent both bursts, once")
def bursts_were_sent(ctx: CheckContext) -> None:
    existing(ctx, SOURCE)
    found = ctx.given(SOURCE)
    if found < EVENTS:
        raise Unmet(
            f"{SOURCE} has {counted(found, 'event')}, not {EVENTS}. Each part of the lab sends {USUAL} events as usual, and a "
            f"burst of {BURST}. Which is missing?"
        )
    if found > EVENTS:
        raise Unmet(f"{SOURCE} has {counted(found, 'event')}, not {EVENTS}. Run each cell with drive() once. {RUN_AGAIN}")


@check.requires(f"{DONE} has each event", after=bursts_were_sent)
def nothing_is_lost(ctx: CheckContext) -> None:
    found = {key_of(record) for record in filled(ctx, DONE)}
    sent = {text_of(record): record for record in ctx.records(SOURCE)}
    if strange := sorted(found - sent.keys()):
        raise Unmet(f"{DONE} has a record with the key {quoted(strange[0])}. The key is an event of {SOURCE}, as it was sent.")
    if missing := [record for value, record in sent.items() if value not in found]:
        raise Unmet(
            f"{DONE} lacks {counted(len(missing), 'event')} of {len(sent)}: one is at offset {missing[0].offset()} of "
            f"partition {missing[0].partition()}. Where did the stream begin to read, and has it caught up? A limit below what "
            "usually comes in the time of a batch never lets it."
        )


@check.requires("Each event was processed once", after=nothing_is_lost)
def nothing_is_repeated(ctx: CheckContext) -> None:
    [(event, times)] = Counter(key_of(record) for record in filled(ctx, DONE)).most_common(1)
    if times > 1:
        raise Unmet(
            f"{DONE} has the event {quoted(event)} {times} times. Did two streams write there, or one without its checkpoint? "
            f"{RUN_AGAIN}"
        )


def _largest(ctx: CheckContext) -> tuple[str, int]:
    """The batch with most events, and how many it has."""
    [(batch, size)] = Counter(text_of(record) for record in filled(ctx, DONE)).most_common(1)
    return batch, size


@check.requires(f"No batch took more than {LIMIT} events", after=nothing_is_lost)
def batches_are_small(ctx: CheckContext) -> None:
    batch, size = _largest(ctx)
    if size > LIMIT + ROUNDING:
        raise Unmet(
            f"Batch {batch} of the stream to {DONE} took {size} events at once. Which option of the source limits that? "
            f"{RUN_AGAIN}"
        )


@check.requires("A batch can take more than what usually comes", after=nothing_is_lost)
def batches_are_large_enough(ctx: CheckContext) -> None:
    _, size = _largest(ctx)
    if size <= USUAL:
        raise Unmet(
            f"The largest batch took {counted(size, 'event')}, but {USUAL} come at a time, also when there's no burst. How "
            f"would the lag ever become smaller? {RUN_AGAIN}"
        )

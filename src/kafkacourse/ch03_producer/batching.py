"""Batches of four sizes under two loads, five codecs, and a fast way to send from Python."""

from __future__ import annotations

from collections.abc import Sequence

from confluent_kafka import KafkaError, KafkaException, Message

from kafkalab.checks.batches import CODECS, RecordBatch, some_batches
from kafkalab.checks.context import CheckContext, Unmet
from kafkalab.checks.couriers import Courier
from kafkalab.checks.lab import Lab
from kafkalab.checks.topics import existing
from kafkalab.checks.wording import counted

__all__ = ["lab"]

RUNGS = ("off", "16 KiB", "16 KiB, linger 10", "64 KiB, linger 50")
STEADY = tuple(f"steady-{number}" for number in range(1, 5))
FLOOD = tuple(f"flood-{number}" for number in range(1, 5))
MANY = 100_000
HEADROOM = 1.1  # librdkafka's count of a batch's bytes differs slightly from the bytes in the log

lab = Lab("03_batching")

check = lab.add_check(
    "03_batching",
    "Four rungs, five codecs and a fast producer",
    hints=(
        "The settings are batch.num.messages, batch.size and linger.ms: the first counts records, the second bytes. linger.ms "
        "is 5 unless you say otherwise.",
        "In kafka-dump-log's lines, re.search(r' count: (\\d+) .* size: (\\d+) .* compresscodec: (\\w+)', line) finds all "
        "three. A line that begins with 'Dumping ' names the file of those that follow.",
        "measure({**cluster.client_config(), 'acks': 'all', **RUNGS[…], 'compression.type': codec}, topic, values, every=20).",
        "A BufferError means that the queue didn't take this one record. Poll until there is room (len(producer) says how many "
        "wait), and produce it again. flush returns 0 for failed records, too: pass on_delivery to produce, keep the errors, "
        "and raise the first after flush.",
    ),
)


def _mean(batches: Sequence[RecordBatch]) -> float:
    return sum(b.count for b in batches) / len(batches)


@check.requires("With batching off, each batch holds one record")
def off_is_off(ctx: CheckContext) -> None:
    for topic, batches in some_batches(ctx, "steady-1", "flood-1").items():
        if (most := max(b.count for b in batches)) > 1:
            raise Unmet(
                f"{topic} has a batch of {most} records, though batching is off there. Which of librdkafka's settings limits "
                "the number of records in a batch?"
            )


@check.requires("Under a steady load, the last rung has by far the largest batches")
def last_is_largest(ctx: CheckContext) -> None:
    means = dict(zip(RUNGS, [_mean(batches) for batches in some_batches(ctx, *STEADY).values()], strict=True))
    # On a busy machine, a rung that waits 10 ms is like one that doesn't wait: the sender is held up for as long. But a
    # burst has ten records, so a rung that waits has more than one in a batch. And 50 ms are longer than most delays.
    for more, than in (("16 KiB, linger 10", "off"), *((RUNGS[-1], rung) for rung in RUNGS[:-1])):
        if means[more] < 1.3 * means[than]:
            raise Unmet(
                f"Under the steady load {more!r} has batches of {means[more]:.1f} records, and {than!r} of {means[than]:.1f}. "
                "How long does each wait for more records? (The default is not 0.)"
            )


@check.requires("In a flood, batches are as large as they may be")
def flood_fills(ctx: CheckContext) -> None:
    largest = {topic: max(b.size for b in batches) for topic, batches in some_batches(ctx, *FLOOD).items()}
    for topic, limit in (("flood-2", 16384), ("flood-3", 16384), ("flood-4", 65536)):
        if largest[topic] > HEADROOM * limit:
            raise Unmet(f"{topic} has a batch of {largest[topic]} bytes. What limits a batch to {limit} bytes?")
    if largest["flood-4"] <= HEADROOM * 16384:
        raise Unmet(
            f"The largest batch of flood-4 has {largest['flood-4']} bytes, and more records were waiting. How many bytes may a "
            "batch of the last rung have?"
        )


@check.requires("You read each batch from the log", after=(last_is_largest, flood_fills))
def batches_were_read(ctx: CheckContext) -> None:
    given = ctx.answer("batches", dict[str, list[tuple[int, int, str]]], "{topic: [(count, size, codec), …]}")
    for topic, there in some_batches(ctx, *STEADY, *FLOOD).items():
        if topic not in given:
            raise Unmet(f"`batches` has no {topic!r}.")
        rows = given[topic]
        if len(rows) != len(there):
            found = f"{counted(len(rows), 'row')} for {topic}, and its log {len(there)}"
            raise Unmet(f"`batches` has {found}. Did you read before you sent again?")
        for number, (row, batch) in enumerate(zip(rows, there, strict=True), 1):
            if row != (batch.count, batch.size, batch.codec):
                raise Unmet(f"Batch {number} of {topic} is {row!r} in `batches`, but not in the log. Which number is which?")


@check.requires("Codecs make prices smaller, but not noise")
def codecs_are_used(ctx: CheckContext) -> None:
    found = some_batches(ctx, *[f"{kind}-{codec}" for kind in ("prices", "noise") for codec in CODECS])
    for codec in CODECS:
        there = {b.codec for b in found[f"prices-{codec}"]}
        # librdkafka sends a batch as it is if the codec doesn't make it smaller, as with the last record of a flood.
        if others := there - ({codec, "none"} if codec in there else {codec}):
            raise Unmet(f"prices-{codec} has batches with the codec {min(others)!r}. Which setting did its producer get?")
    size = {topic: sum(b.size for b in batches) / sum(b.count for b in batches) for topic, batches in found.items()}
    for codec in CODECS[1:]:
        if size[f"prices-{codec}"] > 0.75 * size["prices-none"]:
            raise Unmet(f"{codec} takes almost nothing off the prices. Did you send them in batches of many?")
        if size[f"noise-{codec}"] < 0.75 * size["noise-none"]:
            raise Unmet(f"{codec} makes the records of noise-{codec} smaller. Which values did you send there?")


@check.requires("The fast way sent each of 100,000 prices once")
def fast_has_all(ctx: CheckContext) -> None:
    existing(ctx, "fast")
    records = ctx.given("fast")
    if records < MANY:
        raise Unmet(
            f"fast has {counted(records, 'record')}, not {MANY}. What happens to a record that finds the queue full, and of "
            "those that still wait when your function returns?"
        )
    if records > MANY:
        raise Unmet(f"fast has {counted(records, 'record')}, not {MANY}. Which ones do you send again when the queue is full?")


@check.requires("The fast way raises an error if a record fails")
def fast_tells_of_failures(ctx: CheckContext) -> None:
    send = ctx.function("send_fast", "your function")
    record = Message(topic="fast", partition=0, value=b"{}")
    failure = KafkaError(KafkaError._MSG_TIMED_OUT)
    courier = Courier(ctx.cluster.client_config(), record, failure)
    try:
        send(courier, "fast", [b"{}", b"{}"])
    except KafkaException:
        return
    except Exception as error:
        if failure.name() in str(error) or failure.str() in str(error):  # in an exception of the learner's choice
            return
        said = f"Two records failed, and send_fast raised {type(error).__name__}: {error}"
        raise Unmet(f"{said}. Which error did the delivery report have?") from error
    if not courier.sent:
        raise Unmet("Given two values, send_fast produced nothing.")
    raise Unmet("Two records failed, and send_fast returned as if Kafka had them. Who tells a program that a record failed?")

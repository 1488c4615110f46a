"""A topic on disk: folders of partitions, replicas on each broker, and segments."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from kafkacourse.datasets import customers
from kafkalab.checks.context import CheckContext, Unmet, text_of
from kafkalab.checks.lab import Lab
from kafkalab.checks.topics import existing, has_shape, in_sync
from kafkalab.checks.wording import counted

__all__ = ["lab"]

EACH = 2  # records in each partition of topic1
COPIES = "customers-new"
WANTED = 32  # index in the data set of the customer whose address the lab asks for: C00033
SOUGHT_PARTITION, SOUGHT_OFFSET = 2, 7
WEEK = str(7 * 24 * 3600 * 1000)
GIBIBYTE = str(1 << 30)

lab = Lab("02_storage")

# -- one copy ---------------------------------------------------------------------------------------------------------

folders = lab.add_check(
    "02_topic1",
    "Find one folder per partition",
    hints=(
        "Give the number of partitions and the replication factor, and leave the choice of brokers to Kafka.",
        "Without a key, confluent-kafka sends the records of 10 ms to one partition. produce() takes partition=.",
    ),
)
one_copy = folders.requires("topic1 has 3 partitions with 1 replica each")(has_shape("topic1", 3, 1))


@folders.requires("Each of them is on another broker", after=one_copy)
def partitions_are_spread(ctx: CheckContext) -> None:
    [(broker, number), *_] = Counter(p.replicas[0] for p in existing(ctx, "topic1")).most_common(1)
    if number > 1:
        raise Unmet(
            f"Broker {broker} has {number} of the 3 partitions. Did you assign the replicas yourself? Kafka spreads them."
        )


@folders.requires("Each of them has two of the six records", after=one_copy)
def partitions_are_used(ctx: CheckContext) -> None:
    if other := [(p, end) for p, end in sorted(ctx.end_offsets("topic1").items()) if end != EACH]:
        partition, number = other[0]
        raise Unmet(
            f"Partition {partition} got {counted(number, 'record')}. What decides where a record goes, and can you decide it "
            "yourself?"
        )


# -- three copies, in segments ----------------------------------------------------------------------------------------

segments = lab.add_check(
    "02_storage",
    "Find replicas and segments on disk",
    hints=(
        "A segment is closed when it has 1 GiB, or when a record arrives that is a week younger than the segment's first one.",
        "produce() takes timestamp=, in milliseconds since 1970. It may be weeks ago, but not tomorrow.",
        "NewTopic takes config=, a dictionary of settings. A retention of -1 means for ever.",
        "A segment's name is the offset of its first record. Consumers and kafka-dump-log.sh both show offsets.",
    ),
)
is_shaped = segments.requires("customers-new has 3 partitions with 3 replicas each")(has_shape(COPIES, 3, 3))
segments.requires("All replicas are in sync", after=is_shaped)(in_sync(COPIES))


@segments.requires("Old records are kept", after=is_shaped)
def old_records_are_kept(ctx: CheckContext) -> None:
    if (found := ctx.topic_config(COPIES)["retention.ms"]) != "-1":
        raise Unmet(
            f"retention.ms is {found}, so Kafka may delete older records at any moment, and some of yours are. How do you let "
            "a topic keep them without a limit?"
        )


@segments.requires("Each partition has 3 segments, with Kafka's own segment settings", after=is_shaped)
def segments_are_rolled_by_age(ctx: CheckContext) -> None:
    config = ctx.topic_config(COPIES)
    for name, default in (("segment.ms", WEEK), ("segment.bytes", GIBIBYTE)):
        if config[name] != default:
            raise Unmet(
                f"{name} is {config[name]}. Leave it at Kafka's default, {default}: change the records' timestamps instead."
            )
    for p, names in sorted(ctx.log_files(COPIES).items()):
        if len(names) != 3:
            raise Unmet(
                f"Partition {p} has {counted(len(names), 'segment')}; the lab asks for three. Which two times does Kafka "
                "compare with segment.ms?"
            )


@segments.requires(
    f"You know which segment holds offset {SOUGHT_OFFSET} of partition {SOUGHT_PARTITION}", after=segments_are_rolled_by_age
)
def segment_is_named(ctx: CheckContext) -> None:
    what = f"the name of the file with offset {SOUGHT_OFFSET} of partition {SOUGHT_PARTITION}"
    given = ctx.answer("segment", Path, what).name
    if ctx.end_offsets(COPIES)[SOUGHT_PARTITION] <= SOUGHT_OFFSET:
        raise Unmet(f"Partition {SOUGHT_PARTITION} doesn't reach offset {SOUGHT_OFFSET} yet.")
    names = ctx.log_files(COPIES)[SOUGHT_PARTITION]
    if given not in names:
        raise Unmet(
            f"Partition {SOUGHT_PARTITION} has no file {given!r}. Look into its folder, and give the file's whole name."
        )
    if given != [name for name in names if int(name.removesuffix(".log")) <= SOUGHT_OFFSET][-1]:
        raise Unmet(f"Offset {SOUGHT_OFFSET} isn't in that file. What does the number in a segment's name stand for?")


@segments.requires("You know one customer's topic, partition and offset", after=is_shaped)
def address_is_right(ctx: CheckContext) -> None:
    topic, partition, offset = ctx.answer("address", tuple[str, int, int], "topic, partition and offset of the customer")
    if topic != COPIES:
        raise Unmet(f"The lab asks for a record in {COPIES}, not in {topic}.")
    values = {(m.partition(), m.offset()): text_of(m) for m in ctx.records(COPIES)}
    if (partition, offset) not in values:
        raise Unmet(f"There is no record in partition {partition} at offset {offset}.")
    if not (value := values[partition, offset]).startswith(customers()[WANTED].customer_id):
        raise Unmet(f"The record at that address is another customer: {value!r}.")

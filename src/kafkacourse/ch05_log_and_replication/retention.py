"""Segments, what their indexes contain, and records that are deleted because of their age."""

from __future__ import annotations

from pathlib import Path

from kafkalab.checks.context import CheckContext, Unmet
from kafkalab.checks.lab import Lab
from kafkalab.checks.logs import view_of
from kafkalab.checks.topics import existing, has_shape, in_sync
from kafkalab.checks.wording import counted
from kafkalab.cluster.log_files import Segment
from kafkalab.cluster.offsets import watermarks

__all__ = ["lab"]

TOPIC, PARTITION, SOUGHT = "readings", 1, 7
RECORDS = 10  # in each partition
EVENTS = "events"
OLDEST, ROLLED = 3000, 1000  # milliseconds
AGAIN = "Run the cells again from the one that sends the records on: it begins with a new topic."

lab = Lab("05_retention")


def segments_of(ctx: CheckContext, partition: int) -> tuple[Segment, ...]:
    """Return the segments that are part of a partition's log, from its leader's disk."""
    view = view_of(ctx, TOPIC, partition=partition)
    if view.files is None:
        raise Unmet(f"The files of partition {partition} can't be seen: {view.unseen}.")
    return view.segments


# -- segments ---------------------------------------------------------------------------------------------------------

segments = lab.add_check(
    "05_segments",
    "Find a record in its segment",
    hints=(
        "With segment.ms=1000, a segment is closed when a record comes that is a second younger than the segment's first one.",
        "produce() takes timestamp=, in milliseconds since 1970, and partition=. Flush after each record.",
        "A segment is named after its first offset. Which is the last name that isn't greater than the offset you look for?",
        "kafka-dump-log.sh --files NAME.index prints the entries of an index: an offset, and a position in the file.",
    ),
)
is_shaped = segments.requires("readings has 3 partitions with 3 replicas each")(has_shape(TOPIC, 3, 3))
segments.requires("All replicas are in sync", after=is_shaped)(in_sync(TOPIC))


@segments.requires("Each partition has 10 records, in 3 segments at least", after=is_shaped)
def segments_are_rolled(ctx: CheckContext) -> None:
    for partition, (_, end) in sorted(watermarks(ctx.cluster, TOPIC).items()):
        if end != RECORDS:
            raise Unmet(f"Partition {partition} has {counted(end, 'record')}. How many does each partition get? {AGAIN}")
    for p in existing(ctx, TOPIC):
        if (number := len(segments_of(ctx, p.partition))) < 3:
            raise Unmet(
                f"Partition {p.partition} has {counted(number, 'segment')}; the lab asks for three. Which two timestamps does "
                f"the broker compare when a batch comes? {AGAIN}"
            )


@segments.requires(f"You know the names of the segments of partition {PARTITION}", after=segments_are_rolled)
def names_are_known(ctx: CheckContext) -> None:
    answer = ctx.answer("names", list[str | Path], f"names of the .log files of partition {PARTITION}, in order")
    given = [Path(name).name for name in answer]
    found = [f"{segment.base_offset:020d}.log" for segment in segments_of(ctx, PARTITION)]
    if unknown := [name for name in given if name not in found]:
        raise Unmet(f"Partition {PARTITION} has no file {unknown[0]!r}. The lab asks for the whole names of its .log files.")
    if missing := [name for name in found if name not in given]:
        raise Unmet(f"The leader of partition {PARTITION} also has a file {missing[0]}. Did you look at all of its .log files?")
    if given != found:
        raise Unmet("These are the right names in another order. In which order does the log continue from file to file?")


@segments.requires(f"You know where in its file offset {SOUGHT} of partition {PARTITION} begins", after=segments_are_rolled)
def position_is_known(ctx: CheckContext) -> None:
    given = ctx.answer("position", int, f"the position of the batch with offset {SOUGHT}, in bytes")
    there = segments_of(ctx, PARTITION)
    segment = [segment for segment in there if segment.base_offset <= SOUGHT][-1]
    places = {batch.base_offset: batch.position for batch in segment.batches}
    if SOUGHT not in places:
        raise Unmet(f"Offset {SOUGHT} is inside a batch, so no index names it. Did you flush after each record? {AGAIN}")
    if given != places[SOUGHT]:
        others = [offset for offset, place in places.items() if place == given]
        what = f"offset {others[0]} begins" if others else "no batch of that segment begins"
        raise Unmet(f"At position {given} {what}. Which segment's index did you read, and which of its entries?")


# -- retention --------------------------------------------------------------------------------------------------------

retention = lab.add_check(
    "05_retention",
    "Let records expire",
    hints=(
        "One setting of the topic says after how long a segment is closed, another how old its youngest record may get.",
        "retention.ms and segment.ms are in milliseconds. The text says how many seconds they should be.",
        "The broker looks at its own time. cluster and clients needn't do anything but wait.",
    ),
)


@retention.requires("events deletes records that are older than 3 s, and closes a segment after 1 s")
def age_is_limited(ctx: CheckContext) -> None:
    existing(ctx, EVENTS)
    config = ctx.topic_config(EVENTS)
    if "delete" not in config["cleanup.policy"]:
        raise Unmet(f"The cleanup.policy of {EVENTS} is {config['cleanup.policy']}. Does that policy look at a record's age?")
    if (age := int(config["retention.ms"])) != OLDEST:
        raise Unmet(f"The retention.ms of {EVENTS} is {age}. How many milliseconds old does the lab let records get?")
    if (rolled := int(config["segment.ms"])) != ROLLED:
        raise Unmet(f"The segment.ms of {EVENTS} is {rolled}. After how many milliseconds does the lab close a segment?")


@retention.requires("It held records, and every one of them has expired", after=age_is_limited)
def records_have_expired(ctx: CheckContext) -> None:
    for partition, (start, end) in sorted(watermarks(ctx.cluster, EVENTS).items()):
        if not end:
            raise Unmet(f"Partition {partition} of {EVENTS} never got a record.")
        if start < end:
            raise Unmet(
                f"Partition {partition} still holds offsets {start} to {end - 1}. How old are they now, and is retention.ms "
                "over for the youngest record of their segment?"
            )

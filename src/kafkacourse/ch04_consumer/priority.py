"""More workers for an important partition, and a consumer that pauses the others."""

from __future__ import annotations

from kafkalab.checks.context import CheckContext, Unmet
from kafkalab.checks.groups import Place, existing_group, has_read_everything, places, read_everything, read_once
from kafkalab.checks.lab import Lab
from kafkalab.checks.records import partitions_of_keys
from kafkalab.checks.topics import existing, filled
from kafkalab.checks.wording import counted

__all__ = ["lab"]

PRICES, READERS, FIRST = "stock-prices", "partition-readers", "important-first"
IMPORTANT = {"IBM", "UBER"}

lab = Lab("04_priority")

# -- 1: a reader for each partition ---------------------------------------------------------------------------------

priority = lab.add_check(
    "04_priority",
    "More workers for important stocks",
    hints=(
        "`consumer.assign([TopicPartition(topic, partition)])` replaces `subscribe`. Without an offset it starts at the "
        "committed one. Nothing comes? Look at the `error()` of what `consume` returns: after one out of `NOT_READY`, assign "
        "again.",
        "Put the records of a batch into lists by key. `ThreadPoolExecutor(workers)` and its `map` give each list to a worker.",
        "`list(pool.map(…))` returns when all are done. Then `consumer.commit(offsets=following(records), "
        "asynchronous=False)`.",
        "`partition_count(consumer, topic)` says how many readers there are. The last of them gets more workers.",
    ),
)


@priority.requires("IBM and UBER are alone on the last partition")
def important_are_alone(ctx: CheckContext) -> None:
    where = partitions_of_keys(filled(ctx, PRICES))
    last = len(existing(ctx, PRICES)) - 1
    if (found := {key for key, partitions in where.items() if last in partitions}) != IMPORTANT:
        raise Unmet(f"The last partition holds {', '.join(sorted(found)) or 'nothing'}.")
    for key in sorted(IMPORTANT):
        if elsewhere := sorted(where[key] - {last}):
            raise Unmet(f"Partition {elsewhere[0]} holds {key}, too.")


@priority.requires("Each partition has a reader")
def a_reader_each(ctx: CheckContext) -> None:
    started, partitions = ctx.answer("readers", list[object], "the readers that you started"), len(existing(ctx, PRICES))
    if len(started) != partitions:
        raise Unmet(
            f"You started {counted(len(started), 'reader')} for {partitions} partitions. What does the topic's metadata say?"
        )


@priority.requires("Every price was read once", after=a_reader_each)
def every_price_was_read(ctx: CheckContext) -> None:
    read = ctx.answer("read", list[Place], "(partition, offset) of each price that was processed")
    read_once(read, places(ctx, PRICES), "The readers")


@priority.requires("All that was read is committed", after=every_price_was_read)
def all_is_committed(ctx: CheckContext) -> None:
    read_everything(ctx, READERS, PRICES)


@priority.requires("Nobody joined a group", after=a_reader_each)
def nobody_joined(ctx: CheckContext) -> None:
    if members := len(existing_group(ctx, READERS).members):
        raise Unmet(f"The group {READERS} has {counted(members, 'member')}. Who assigns the partitions here?")


@priority.requires("The last partition had two workers at once, the others one")
def last_has_more_workers(ctx: CheckContext) -> None:
    most = ctx.answer("at_once", dict[int, int], "partition → how many of its records were processed at once, at most")
    last = len(existing(ctx, PRICES)) - 1
    for partition, number in sorted(most.items()):
        if partition != last and number > 1:
            raise Unmet(f"Partition {partition} had {number} workers at once. It isn't important, so it should have one.")
    if most.get(last, 0) < 2:
        raise Unmet("No two prices of the last partition were processed at once. How do the workers share a batch?")
    if most[last] > 2:
        raise Unmet(
            f"{most[last]} prices of the last partition were processed at once. It holds two stocks, so two prices of the "
            "same stock were, and their order is left to chance."
        )


# -- 2: important first ---------------------------------------------------------------------------------------------

pause = lab.add_check(
    "04_pause",
    "Others wait while the important partition has data",
    hints=(
        "Start with the others paused. `consumer.pause` and `consumer.resume` take lists of partitions.",
        "With `enable.partition.eof`, a message whose error code is `KafkaError._PARTITION_EOF` says that its partition was "
        "read to the end, `message.offset()`. If that's the last partition, resume the others.",
        "`consumer.get_watermark_offsets(important, cached=True)[1]` is the end as far as the client knows, without asking a "
        "broker. Is it beyond the end that you have read? Then pause the others again.",
    ),
)


def _handled(ctx: CheckContext) -> list[Place]:
    return ctx.answer("handled", list[Place], "(partition, offset) of each price, in the order handled")


def _late(ctx: CheckContext) -> int:
    return ctx.answer("late", int, "the offset of the first price that was sent in the middle")


@pause.requires("Every price was handled once")
def all_is_handled(ctx: CheckContext) -> None:
    read_once(_handled(ctx), places(ctx, PRICES), "The consumer")


pause.requires("Every price is committed")(has_read_everything(FIRST, PRICES))


@pause.requires("Important prices came first")
def important_came_first(ctx: CheckContext) -> None:
    handled, late = _handled(ctx), _late(ctx)
    last = len(existing(ctx, PRICES)) - 1
    begun = [p for p, _ in handled[:late]]
    if begun != [last] * late:
        other = next((n for n, p in enumerate(begun) if p != last), len(begun))
        raise Unmet(
            f"{late} important prices were waiting, and you handled {other} of them before another one. What is paused at the "
            "start?"
        )


@pause.requires("Important prices that were sent in the middle came before the rest", after=important_came_first)
def important_came_between(ctx: CheckContext) -> None:
    handled, late = _handled(ctx), _late(ctx)
    last = len(existing(ctx, PRICES)) - 1
    at = [n for n, (p, offset) in enumerate(handled) if p == last and offset >= late]
    if not at:
        raise Unmet("None of the important prices that were sent in the middle was handled.")
    if any(p != last for p, _ in handled[at[0] : at[-1]]):
        raise Unmet("Others were handled between the important prices that came in the middle. Do you pause them again?")
    if all(p == last for p, _ in handled[at[-1] :]):
        raise Unmet(
            "The important prices that came in the middle were handled last, after all the others. Fetched records wait in the "
            "client's queue. How can you know, before it's their turn, that important ones are there?"
        )


@pause.requires("Paused partitions don't move", after=important_came_first)
def paused_stay(ctx: CheckContext) -> None:
    positions = ctx.answer("positions", list[list[int]], "the positions of the other partitions at each important price")
    late, others = _late(ctx), len(existing(ctx, PRICES)) - 1
    if len(positions) != (important := sum(p == others for p, _ in _handled(ctx))):
        raise Unmet(
            f"`positions` has {len(positions)} of the {important} entries that it should have: one for each important price "
            "that you handled."
        )
    if wrong := [position for position in positions if len(position) != others]:
        raise Unmet(
            f"An entry of `positions` holds {counted(len(wrong[0]), 'position')}. How many other partitions does {PRICES} have?"
        )
    for phase in (positions[:late], positions[late:]):
        if any(position != phase[0] for position in phase):
            raise Unmet("The position of another partition changed between two important prices. Were all the others paused?")

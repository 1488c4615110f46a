"""Retries that a leader recognizes, and those it can't recognize: producer ids, sequences and epochs in the log."""

from __future__ import annotations

from kafkalab.checks.brokers import faulted
from kafkalab.checks.context import CheckContext, Unmet
from kafkalab.checks.lab import Lab
from kafkalab.checks.topics import filled
from kafkalab.checks.transactions import log_of, text, transactions
from kafkalab.checks.wording import counted
from kafkalab.cluster.record_batches import RecordBatch

__all__ = ["lab"]

PLAIN, NUMBERED = "plain", "numbered"
JAVA, LIBRDKAFKA = "by-java", "by-librdkafka"
RETRIED, RESENT = "order 2", "order 3"
AGAIN = "Correct the cell that sends them, and run it again: it begins with new topics."
FEWEST = {JAVA: 2, LIBRDKAFKA: 3}  # depends on timing: the number of transactions that the tool needs for six records

lab = Lab("05_idempotence")

# -- producer ids and sequences ---------------------------------------------------------------------------------------

retry = lab.add_check(
    "05_idempotence",
    "Tell a retry from a new record",
    hints=(
        "send_orders passes keywords on to the producer, with underscores for dots. `enable.idempotence` is the setting.",
        "The sequence counts records from 0, in each partition. The dump has the last one of a batch as lastSequence.",
        "A producer gets its id when it starts. For part 2, make another one.",
    ),
)


def written(ctx: CheckContext, topic: str) -> list[RecordBatch]:
    """Return the batches of a topic, without control batches. Raise `Unmet` if it has none."""
    filled(ctx, topic)
    return [batch for batch in log_of(ctx, topic) if not batch.control]


def writers_of(batches: list[RecordBatch], value: str) -> list[int]:
    """Return the producer id of each record with that value."""
    return [batch.producer_id for batch in batches for record in batch.records or () if text(record.value) == value]


@retry.requires(f"{PLAIN} holds {RETRIED} more than once, from a producer without an id")
def plain_has_copies(ctx: CheckContext) -> None:
    batches = written(ctx, PLAIN)
    if ids := {batch.producer_id for batch in batches} - {-1}:
        raise Unmet(f"{PLAIN} has records of producer id {min(ids)}. Its producer should have no idempotence. {AGAIN}")
    if (copies := len(writers_of(batches, RETRIED))) < 2:
        held = "once" if copies else "not at all"
        frozen = "A follower" if faulted(ctx, "pause") else "No follower"
        raise Unmet(f"{PLAIN} holds {RETRIED} {held}. {frozen} was frozen so far. What makes a producer send it again?")


@retry.requires(f"{NUMBERED} holds {RETRIED} once, from an idempotent producer")
def numbered_is_not(ctx: CheckContext) -> None:
    batches = written(ctx, NUMBERED)
    anonymous = {text(record.value) for batch in batches if batch.producer_id < 0 for record in batch.records or ()}
    if anonymous - {RESENT}:  # what part 2 sends is looked at there
        raise Unmet(f"{NUMBERED} has records without a producer id. Which setting gives a producer one? {AGAIN}")
    if (copies := len(writers_of(batches, RETRIED))) != 1:
        raise Unmet(f"{NUMBERED} holds {RETRIED} {copies} times. How many producers sent it? {AGAIN}")


@retry.requires("You know the sequence that comes next, and what stands in place of a producer id", after=numbered_is_not)
def answers_are_right(ctx: CheckContext) -> None:
    batches = written(ctx, NUMBERED)
    [first] = writers_of(batches, RETRIED)
    wanted = sum(batch.count for batch in batches if batch.producer_id == first)
    if (given := ctx.answer("expected", int, "the next sequence of the first producer")) != wanted:
        raise Unmet(f"The leader doesn't expect sequence {given} next. What is the last one that it has from that producer?")
    if (given := ctx.answer("unknown", int, "what the dump shows for a producer without an id")) != -1:
        raise Unmet(f"`unknown` is {given}. Which producerId does the dump of {PLAIN} show?")


@retry.requires(f"{NUMBERED} holds {RESENT} twice, from two idempotent producers", after=numbered_is_not)
def resent_is_there_twice(ctx: CheckContext) -> None:
    ids = writers_of(written(ctx, NUMBERED), RESENT)
    if len(ids) < 2:
        held = "only once" if ids else "not at all"
        raise Unmet(f"{NUMBERED} holds {RESENT} {held}. Has the restarted application sent it again?")
    if -1 in ids:
        raise Unmet(
            f"{NUMBERED} has a copy of {RESENT} without a producer id. Which setting gives a producer one? Correct the cell "
            "that sends it. Then run the cell that begins with new topics, and that one."
        )
    if len(set(ids)) < 2:
        raise Unmet(f"All copies of {RESENT} are from producer id {ids[0]}. A restarted application makes a new producer.")


# -- producer epochs --------------------------------------------------------------------------------------------------

rising = lab.add_check(
    "05_epochs",
    "See whose epoch rises",
    hints=(
        "Make one producer, call init_transactions() once, and begin and commit three times.",
        "In dump(topic), a line of a batch has isControl and producerEpoch, both as text.",
    ),
)


@rising.requires("Both topics have transactions, all of them committed")
def both_are_committed(ctx: CheckContext) -> None:
    for topic, fewest in FEWEST.items():
        ends = [transaction.end for transaction in transactions(ctx, topic)]
        if len(ends) < fewest:
            raise Unmet(
                f"{topic} has {counted(len(ends), 'transaction')} so far, and should have {fewest} or more. Its cell may run "
                "again: it begins with a new topic."
            )
        if any(end != "commit" for end in ends):
            raise Unmet(f"A transaction in {topic} is {'open' if '' in ends else 'aborted'}. Commit each of them.")


@rising.requires("Each topic's transactions are the work of one producer", after=both_are_committed)
def each_has_one_producer(ctx: CheckContext) -> None:
    for topic in FEWEST:
        if len(ids := {batch.producer_id for batch in written(ctx, topic)}) > 1:
            raise Unmet(f"{topic} has records of {len(ids)} producer ids. Use one transactional id. {AGAIN}")
    if len(epochs := {batch.producer_epoch for batch in written(ctx, LIBRDKAFKA)}) > 1:
        raise Unmet(
            f"{LIBRDKAFKA} has records of {len(epochs)} epochs. init_transactions() raises the epoch, too: how often did you "
            f"call it? {AGAIN}"
        )


@rising.requires("You read the epochs from the log", after=each_has_one_producer)
def epochs_are_right(ctx: CheckContext) -> None:
    given = ctx.answer("epochs", dict[str, list[int]], "{topic: producer epochs of its batches of records}")
    for topic in FEWEST:
        if topic not in given:
            raise Unmet(f"`epochs` has no {topic!r}.")
        by_batch = [batch.producer_epoch for batch in written(ctx, topic)]
        by_transaction = [transaction.epoch for transaction in transactions(ctx, topic)]
        if given[topic] not in (by_batch, by_transaction):
            raise Unmet(
                f"`epochs[{topic!r}]` is {given[topic]}. That isn't what its log says. Did you take the epoch of each batch, "
                "in their order, and leave the markers out?"
            )

"""Questions about topics: whether they exist, their partitions, replicas, leaders, ISR, and what they hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from confluent_kafka import Message

from kafkalab.checks.context import CheckContext, Unmet, text_of
from kafkalab.checks.probes import parametrized
from kafkalab.checks.wording import START_OVER, counted, listed_brokers, quoted
from kafkalab.cluster.view import ClusterView, PartitionView

__all__ = [
    "asks_for_copies",
    "each_once",
    "existing",
    "filled",
    "has_shape",
    "holds",
    "holds_each_once",
    "holds_exactly",
    "in_sync",
    "isr_lacks_only",
    "led_by_others",
    "shaped",
    "still_names",
    "was_given",
]


def existing(ctx: CheckContext, topic: str) -> tuple[PartitionView, ...]:
    """Return the partitions of a topic. Raise `Unmet` if it doesn't exist."""
    view: ClusterView = ctx.cluster.describe(groups=False)
    if topic not in view.topics:
        raise Unmet(f"There is no topic {topic!r} yet. The cluster's topics: {', '.join(view.topics) or 'none'}.")
    return view.topics[topic]


def filled(ctx: CheckContext, topic: str, question: str = "Did the producer wait until everything was sent?") -> list[Message]:
    """Return the records of a topic. Raise `Unmet`, with the question, if it holds none."""
    existing(ctx, topic)
    records = ctx.records(topic)
    if not records:
        raise Unmet(f"The topic {topic} is empty. {question}")
    return records


def was_given(ctx: CheckContext, topic: str, number: int, noun: str, advice: str, *, or_more: bool = False) -> None:
    """Raise `Unmet`, with the advice, unless a topic ever got this many records."""
    existing(ctx, topic)
    records = ctx.record_count(topic)
    if records < number or (records > number and not or_more):
        raise Unmet(f"{topic} was given {counted(records, noun)}, not {number}. {advice}")


@parametrized
def holds(ctx: CheckContext, topic: str, at_least: int) -> None:
    """A topic must have got at least this many records."""
    existing(ctx, topic)
    if (records := ctx.record_count(topic)) < at_least:
        raise Unmet(
            f"{topic} holds {counted(records, 'record')}, not {at_least}. Did the producer wait until everything was sent?"
        )


def shaped(ctx: CheckContext, topic: str, partitions: int, copies: int) -> tuple[PartitionView, ...]:
    """Return the partitions of a topic. Raise `Unmet` if it has another number of partitions or replicas."""
    parts = existing(ctx, topic)
    if len(parts) != partitions:
        raise Unmet(
            f"{topic} has {counted(len(parts), 'partition')}. How many does the text ask for? (You can add partitions but not "
            "remove them: delete the topic and create it again.)"
        )
    if differ := sorted({len(p.replicas) for p in parts} - {copies}):
        raise Unmet(
            f"Each partition of {topic} has {counted(differ[0], 'replica')}, not {copies}. Which setting decides how many "
            "brokers keep a copy?"
        )
    return parts


has_shape = parametrized(shaped)


@parametrized
def asks_for_copies(ctx: CheckContext, topic: str, number: int) -> None:
    """A write to a topic with ``acks=all`` must need this many replicas in sync."""
    if (needed := ctx.topic_config(topic)["min.insync.replicas"]) != str(number):
        setting = f"The effective min.insync.replicas of {topic} is {needed}"
        raise Unmet(f"{setting}. You can set it when you create the topic, or later with kafka-configs.sh.")


@parametrized
def in_sync(ctx: CheckContext, topic: str) -> None:
    """All replicas of a topic must be in the ISR."""
    for p in existing(ctx, topic):
        if missing := sorted(set(p.replicas) - set(p.isr)):
            raise Unmet(
                f"The ISR of partition {p.partition} lacks {listed_brokers(missing)}. Is every broker running, and did it "
                "have time to catch up?"
            )


@parametrized
def led_by_others(ctx: CheckContext, topic: str, broker: int) -> None:
    """Every partition of a topic must have a leader other than this broker."""
    for p in existing(ctx, topic):
        if p.leader == broker:
            raise Unmet(f"Broker {broker} still leads partition {p.partition}. Did the controller have time to notice?")
        if p.leader is None:
            raise Unmet(f"Partition {p.partition} has no leader. Are enough brokers left?")


@parametrized
def isr_lacks_only(ctx: CheckContext, topic: str, broker: int) -> None:
    """Only this broker must have left the ISR of each partition of a topic it has a replica of."""
    for p in existing(ctx, topic):
        if broker in p.isr:
            raise Unmet(
                f"Broker {broker} is still in the ISR of partition {p.partition}. Did the controller have time to notice?"
            )
        if missing := sorted(set(p.replicas) - {broker} - set(p.isr)):
            raise Unmet(
                f"The ISR of partition {p.partition} lacks {listed_brokers(missing)}, too. Only broker {broker} should be down."
            )


@parametrized
def still_names(ctx: CheckContext, topic: str, broker: int) -> None:
    """Each partition of a topic must still have a replica assigned to this broker."""
    if moved := [p.partition for p in existing(ctx, topic) if broker not in p.replicas]:
        raise Unmet(
            f"The replicas of partition {moved[0]} don't include broker {broker}. Did you reassign them? A failover leaves "
            "the assignment as it is."
        )


def each_once(ctx: CheckContext, topic: str, wanted: Sequence[str]) -> list[Message]:
    """Return the records with these values. Raise `Unmet` unless each is there exactly once. There may be others, too."""
    existing(ctx, topic)
    records = [m for m in ctx.records(topic) if text_of(m) in wanted]
    counts = Counter(text_of(m) for m in records)
    if not counts:
        raise Unmet(f"None of {quoted(wanted[0])} … {quoted(wanted[-1])} is in {topic} yet.")
    if missing := [value for value in wanted if value not in counts]:
        raise Unmet(f"{quoted(missing[0])} isn't in {topic}.")
    if twice := [value for value in wanted if counts[value] > 1]:
        raise Unmet(
            f"{quoted(twice[0])} is in {topic} {counts[twice[0]]} times. Did you run the cell more than once? Delete the "
            f"topic, create it again, and send each value once. {START_OVER}"
        )
    return records


holds_each_once = parametrized(each_once)


@parametrized
def holds_exactly(ctx: CheckContext, topic: str, wanted: Sequence[str]) -> None:
    """A topic must hold each of these values exactly once, and nothing else."""
    each_once(ctx, topic, wanted)
    if others := [value for value in ctx.values(topic) if value not in wanted]:
        raise Unmet(f"{topic} also holds {quoted(others[0])}, which the lab doesn't ask for.")

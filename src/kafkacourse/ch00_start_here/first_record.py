"""A record that the learner writes among those of others, and finds again by its address."""

from __future__ import annotations

from kafkalab.checks.context import CheckContext, Unmet
from kafkalab.checks.lab import Lab
from kafkalab.checks.topics import existing

__all__ = ["lab"]

TOPIC = "greetings"
VALUE = b"My first record"

lab = Lab("00_first_record")

check = lab.add_check(
    "00_first_record",
    "Find your first record",
    hints=(
        "The producer doesn't wait for the broker unless you tell it to. It reports what became of a record to a function "
        "that you pass.",
        "produce(…, on_delivery=function) calls function(error, record) during flush(). The record has topic(), "
        "partition() and offset().",
        "consumer.assign([TopicPartition(topic, partition, offset)]) starts at exactly that record; poll(30) returns it.",
    ),
)


@check.requires("greetings holds a record with the value 'My first record'")
def record_is_there(ctx: CheckContext) -> None:
    existing(ctx, TOPIC)
    if VALUE not in [m.value() for m in ctx.records(TOPIC)]:
        raise Unmet(
            f"No record in {TOPIC} has exactly the value {VALUE.decode()!r}. produce() only puts it into the producer's own "
            "queue: did you wait until it was sent?"
        )


@check.requires("You can say where it stands", after=record_is_there)
def coordinates_are_right(ctx: CheckContext) -> None:
    what = "the record's address, which has three parts in this order: the topic's name and two numbers"
    topic, partition, offset = ctx.answer("coordinates", tuple[str, int, int], what)
    if topic != TOPIC:
        raise Unmet(f"The lab asks for a record in {TOPIC}, not in {topic}.")
    ends = ctx.end_offsets(topic)
    if partition not in ends:
        raise Unmet(f"{topic} has no partition {partition}: they are numbered from 0 to {len(ends) - 1}.")
    if offset == ends[partition]:
        raise Unmet(f"There is no record at offset {offset} yet: it's the next one to be written in partition {partition}.")
    values = {(m.partition(), m.offset()): m.value() for m in ctx.records(topic)}
    if (partition, offset) not in values:
        raise Unmet(f"Partition {partition} has no offset {offset}.")
    if (there := values[partition, offset]) != VALUE:
        raise Unmet(
            f"The record at this address is {(there or b'').decode()!r}. Who knows where yours is? The delivery report does."
        )


@check.requires("You read its bytes from there")
def bytes_were_read(ctx: CheckContext) -> None:
    given = ctx.answer("read_back", bytes, "the value at that address as the consumer returned it")
    if given != VALUE:
        raise Unmet(f"You read {given!r}. A consumer that is assigned a partition starts at the offset of its TopicPartition.")

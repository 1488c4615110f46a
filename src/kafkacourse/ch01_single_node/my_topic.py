"""Seven messages in thirteen partitions, read by a group."""

from __future__ import annotations

from kafkalab.checks.context import CheckContext, Unmet, text_of
from kafkalab.checks.groups import has_read_everything
from kafkalab.checks.lab import Lab
from kafkalab.checks.topics import has_shape, holds_exactly
from kafkalab.checks.wording import counted

__all__ = ["SEVEN", "lab"]

TOPIC, GROUP = "my-topic", "my-readers"
SEVEN = (*(f"This is message {n}" for n in (1, 2, 3)), *(f"Message {n}" for n in (4, 5, 6, 7)))

lab = Lab("01_my_topic")

check = lab.add_check(
    "01_my_topic",
    "Send seven messages to my-topic and find each of them",
    hints=(
        "kafka-topics.sh has an option for each of the topic's properties. The producer of confluent-kafka has a setting for "
        "how many milliseconds records without a key stay with one partition; the chapter used it.",
        'With "sticky.partitioning.linger.ms": 0 and a flush() after each produce(), the producer chooses a partition anew '
        "for each message.",
        "A consumer with group_id, auto_offset_reset='earliest' and subscribe([…]) gets all messages; consume(7, timeout=30) "
        "returns them; commit(asynchronous=False) commits.",
        "Each record that a consumer returns has value(), partition() and offset().",
    ),
)
is_shaped = check.requires(f"{TOPIC} has 13 partitions with 1 replica each")(has_shape(TOPIC, 13, 1))
seven_are_there = check.requires("It holds the seven messages, each once", after=is_shaped)(holds_exactly(TOPIC, SEVEN))


@check.requires("They are in several partitions", after=seven_are_there)
def messages_are_spread(ctx: CheckContext) -> None:
    if len({m.partition() for m in ctx.records(TOPIC)}) == 1:
        raise Unmet(
            "They are all in one partition. Without a key, a producer stays with one for a while. What makes it choose again "
            "for each message? To send again, delete the topic and create it again."
        )


check.requires(f"The group {GROUP} has read them all and committed that", after=seven_are_there)(
    has_read_everything(GROUP, TOPIC)
)


@check.requires("You know where each message is", after=seven_are_there)
def places_are_right(ctx: CheckContext) -> None:
    what = "message → (partition, offset)"
    given = {
        key.decode(errors="replace") if isinstance(key, bytes) else key: place
        for key, place in ctx.answer("where", dict[str | bytes, tuple[int, int]], what).items()
    }
    true = {text_of(m): (m.partition(), m.offset()) for m in ctx.records(TOPIC)}
    if missing := [value for value in SEVEN if value not in given]:
        raise Unmet(f"`where` lacks {missing[0]!r}.")
    if wrong := [value for value in SEVEN if given[value] != true[value]]:
        partition, offset = given[wrong[0]]
        raise Unmet(
            f"{counted(len(wrong), 'message')} can't be found at the place you give. For example, {wrong[0]!r} isn't in "
            f"partition {partition} at offset {offset}."
        )

"""Questions about a topic's records: which partition holds which key."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable

from confluent_kafka import Message

from kafkalab.checks.context import CheckContext, Unmet
from kafkalab.checks.topics import filled

__all__ = [
    "FROM_SECTION_1",
    "SEND_AGAIN",
    "keeps_each_key_in_one_partition",
    "key_of",
    "partitions_of_keys",
]

SEND_AGAIN = "To send again, run the cell that sends: it begins with an empty topic."
FROM_SECTION_1 = "Correct it, and run the lab's cells again from section 1 on: they create the topics again."


def key_of(message: Message) -> str:
    """Return a record's key as text."""
    key = message.key()
    return "(no key)" if key is None else key.decode(errors="replace")


def partitions_of_keys(records: Iterable[Message]) -> dict[str, set[int]]:
    """Return the partitions that hold records of each key."""
    where: dict[str, set[int]] = defaultdict(set)
    for message in records:
        partition = message.partition()
        assert partition is not None  # because it was read
        where[key_of(message)].add(partition)
    return where


def keeps_each_key_in_one_partition(topic: str) -> Callable[[CheckContext], None]:
    """Return a probe: all records of a key must be in the same partition."""

    def probe(ctx: CheckContext) -> None:
        for key, partitions in partitions_of_keys(filled(ctx, topic)).items():
            if len(partitions) > 1:
                found = " and ".join(map(str, sorted(partitions)))
                raise Unmet(f"Records of {key} are in partitions {found}, so nobody can read them in order. {SEND_AGAIN}")

    return probe

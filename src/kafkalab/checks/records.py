"""Questions about a topic's records: which partition holds which key."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from confluent_kafka import Message

from kafkalab.checks.context import CheckContext, Unmet, text_of
from kafkalab.checks.probes import parametrized
from kafkalab.checks.topics import filled

__all__ = [
    "FROM_SECTION_1",
    "SEND_AGAIN",
    "json_object",
    "keeps_each_key_in_one_partition",
    "key_of",
    "last_values",
    "partitions_of_keys",
]

SEND_AGAIN = "To send again, run the cell that sends: it begins with an empty topic."
FROM_SECTION_1 = "Correct it, and run the lab's cells again from section 1 on: they create the topics again."


def key_of(message: Message) -> str:
    """Return a record's key as text."""
    key = message.key()
    return "(no key)" if key is None else key.decode(errors="replace")


def last_values(records: Iterable[Message]) -> dict[str, str]:
    """Return the value of each key's last record, as a table has it."""
    return {key_of(record): text_of(record) for record in records}


def json_object(value: str | bytes) -> dict[str, Any] | None:
    """Return the JSON object that a value is, or None if it's something else."""
    try:
        decoded = json.loads(value)
    except ValueError:
        return None
    return decoded if isinstance(decoded, dict) else None


def partitions_of_keys(records: Iterable[Message]) -> dict[str, set[int]]:
    """Return the partitions that hold records of each key."""
    where: dict[str, set[int]] = defaultdict(set)
    for message in records:
        partition = message.partition()
        assert partition is not None  # because it was read
        where[key_of(message)].add(partition)
    return where


@parametrized
def keeps_each_key_in_one_partition(ctx: CheckContext, topic: str) -> None:
    """All records of a key must be in the same partition."""
    for key, partitions in partitions_of_keys(filled(ctx, topic)).items():
        if len(partitions) > 1:
            named = " and ".join(map(str, sorted(partitions)))
            raise Unmet(f"Records of {key} are in partitions {named}, so nobody can read them in order. {SEND_AGAIN}")

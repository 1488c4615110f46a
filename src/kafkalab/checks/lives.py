"""Questions about the lives of an application, from the batches that it wrote."""

from __future__ import annotations

from confluent_kafka import Message

from kafkalab.checks.context import CheckContext, Unmet
from kafkalab.checks.topics import existing, filled
from kafkalab.checks.transactions import log_of
from kafkalab.cluster.record_batches import RecordBatch

__all__ = ["batches_written", "in_transactions", "lived_twice", "passed_on", "writers"]


def passed_on(ctx: CheckContext, topic: str) -> list[Message]:
    """Return the records that an application wrote to a topic. Raise `Unmet` if there are none."""
    return filled(ctx, topic, "Does the application that writes it run? If it ended, its `state` and `logs()` say how.")


def batches_written(ctx: CheckContext, topic: str) -> list[RecordBatch]:
    """Return the batches of records in all partitions of a topic. Raise `Unmet` if there are none."""
    batches = [b for p in existing(ctx, topic) for b in log_of(ctx, topic, p.partition) if not b.control]
    if not batches:
        raise Unmet(f"The topic {topic} is empty. Is the application that writes it RUNNING?")
    return batches


def writers(ctx: CheckContext, topic: str) -> set[int]:
    """Return the ids of the producers that wrote to a topic. Each life of a Streams application has one of its own.

    Epochs don't tell lives apart: since Kafka 4 each transaction of a Java producer has a new one.
    """
    return {batch.producer_id for batch in batches_written(ctx, topic)}


def lived_twice(ctx: CheckContext, topic: str) -> None:
    """Raise `Unmet` unless the application that writes this topic did so in two lives."""
    if len(writers(ctx, topic)) < 2:
        raise Unmet(
            f"Everything in {topic} comes from one producer, and each life of an application has a new one. Was something "
            "passed on before the kill, and did you start the application again?"
        )


def in_transactions(ctx: CheckContext, topic: str) -> None:
    """Raise `Unmet` unless every record of a topic without duplicates belongs to a transaction."""
    if not all(batch.transactional for batch in batches_written(ctx, topic)):
        raise Unmet(
            f"{topic} has no duplicates, but some of its records belong to no transaction: that was luck. Which guarantee "
            "makes it sure?"
        )

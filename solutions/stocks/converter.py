# Written in the lab 04_delivery.
"""Reads a topic, writes another one, and has Kafka take both as one: exactly once between topics."""

from __future__ import annotations

from collections.abc import Sequence

from confluent_kafka import Consumer, KafkaException, Message, Producer

from stocks.book import following

__all__ = ["convert"]


def convert(consumer: Consumer, producer: Producer, target: str, records: Sequence[Message]) -> None:
    """Copy a batch into `target`, in one transaction with the consumer's offsets.

    The producer has a ``transactional.id``, and ``init_transactions`` was called once. Who reads `target` with
    ``isolation.level=read_committed`` sees all of the batch or nothing.

    Raises
    ------
    KafkaException
        When the transaction could not be committed. It was aborted, if that was possible: read the batch again.
    """
    producer.begin_transaction()
    try:
        for record in records:
            producer.produce(target, key=record.key(), value=record.value())
        producer.send_offsets_to_transaction(following(records), consumer.consumer_group_metadata())
        producer.commit_transaction()
    except KafkaException as error:
        if error.args[0].txn_requires_abort():
            producer.abort_transaction()
        raise

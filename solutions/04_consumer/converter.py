# Written in the lab 04_delivery.
"""Reads a topic, writes another one, and has Kafka take both as one: exactly once between topics."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from confluent_kafka import Consumer, KafkaException, Message, Producer

from stocks.book import following

__all__ = ["convert"]


def convert(consumer: Consumer, producer: Producer, target: str, records: Sequence[Message]) -> None:
    """Copy a batch into a topic, in one transaction with the consumer's offsets.

    Who reads the topic with ``isolation.level=read_committed`` sees all of the batch or nothing.

    Parameters
    ----------
    consumer
        Has read the batch. It commits nothing by itself (``enable.auto.commit=false``).
    producer
        Has a ``transactional.id``, and ``init_transactions`` was called once.
    target
        The topic.
    records
        The batch.

    Raises
    ------
    KafkaException
        When the transaction was not committed. With the code ``_FENCED`` somebody else goes on under this ``transactional.id``.
    BaseException
        Whatever else ended it. The transaction was aborted, in any case, if there still was one. The consumer has gone past the
        batch all the same: to read it again, close it and start anew, or seek back to what is committed.
    """
    producer.begin_transaction()
    try:
        for record in records:
            _produce(producer, target, record)
        producer.send_offsets_to_transaction(following(records), consumer.consumer_group_metadata())
        producer.commit_transaction()
    except BaseException:  # a transaction that was left open would keep all readers waiting
        with suppress(KafkaException):  # who is fenced has nothing left to abort
            producer.abort_transaction()
        raise


def _produce(producer: Producer, target: str, record: Message) -> None:
    while True:
        try:
            producer.produce(target, key=record.key(), value=record.value())
            return
        except BufferError:
            producer.poll(0.1)  # the queue is full: wait until something has left it

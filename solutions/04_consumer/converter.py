# Written in the lab 04_delivery.
"""Read a topic and write another one in Kafka transactions: exactly once between topics."""

from __future__ import annotations

from collections.abc import Sequence

from confluent_kafka import Consumer, KafkaException, Message, Producer

from kafkacourse.stocks.book import following
from kafkacourse.stocks.transactions import until_done

__all__ = ["convert"]


def convert(consumer: Consumer, producer: Producer, target: str, records: Sequence[Message]) -> None:
    """Copy a batch into a topic, in one transaction with the consumer's offsets.

    A consumer with ``isolation.level=read_committed`` gets records of the batch only if the transaction was committed.

    Parameters
    ----------
    consumer
        The consumer that read the batch. It commits nothing by itself (``enable.auto.commit=false``).
    producer
        A producer with a ``transactional.id``. Call its ``init_transactions`` once before.
    target
        The topic to write to.
    records
        The batch.

    Raises
    ------
    KafkaException
        If the transaction wasn't committed. If the error is ``fatal()``, this producer can do nothing more, not even
        abort: close it. With the code ``_FENCED``, another producer now uses this ``transactional.id``. After any other
        error the transaction is aborted. If the abort fails, its own error is raised.
    BaseException
        Any other error, such as one from the records. The transaction is aborted.

    Notes
    -----
    After an error, the consumer's position is already past the batch. To read it again, close the consumer and start a
    new one, or seek back to the committed offsets.
    """
    producer.begin_transaction()
    try:
        for record in records:
            _produce(producer, target, record)
        until_done(producer.send_offsets_to_transaction, following(records), consumer.consumer_group_metadata())
        until_done(producer.commit_transaction)
    except BaseException as error:  # an open transaction would hold up all read_committed consumers
        if not (isinstance(error, KafkaException) and error.args[0].fatal()):
            until_done(producer.abort_transaction)
        raise


def _produce(producer: Producer, target: str, record: Message) -> None:
    while True:
        try:
            producer.produce(target, key=record.key(), value=record.value())
            return
        except BufferError:
            producer.poll(0.1)  # the queue is full: wait until a record has left it

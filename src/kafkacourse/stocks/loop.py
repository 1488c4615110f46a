"""The loop of a consumer that works in batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from kafkacourse.stocks.records import place

__all__ = ["begin", "leave", "read_batches"]


def begin(consumer: Consumer, partitions: Sequence[TopicPartition]) -> None:
    """Assign partitions at the offsets they carry. Call this in ``on_assign``.

    An eager rebalance (the default) tells a member its whole new assignment. A cooperative one (``cooperative-sticky``
    and ``group.protocol=consumer``) tells it only the added partitions. Each kind has its own call and rejects the
    other's.

    Parameters
    ----------
    consumer
        The consumer that got the partitions.
    partitions
        The partitions that ``on_assign`` got, with offsets.

    Raises
    ------
    KafkaException
        If the partitions can't be assigned.
    """
    try:
        consumer.assign(list(partitions))
    except KafkaException as error:
        if error.args[0].code() != KafkaError._STATE:
            raise
        consumer.incremental_assign(list(partitions))


def leave(consumer: Consumer) -> None:
    """Leave the group and close the consumer. When this returns, the coordinator knows.

    ``close`` alone leaves the group, too. But it can hang while the client waits for an answer in a rebalance
    (librdkafka's issue 4884): the group ends while ``on_assign`` or ``on_revoke`` still talks to it. So this function
    answers the rebalance first. A static member leaves, too: it keeps its place after a kill, but not after this call.

    Parameters
    ----------
    consumer
        The consumer that leaves. Its ``on_revoke`` is called if it has partitions.

    Raises
    ------
    KafkaException
        If the consumer can't be closed.
    """
    try:
        consumer.unsubscribe()
        consumer.poll(0)
    except KafkaException as error:
        if error.args[0].code() != KafkaError._FATAL:  # a fenced consumer has no place left to give up
            raise
    finally:
        consumer.close()


def read_batches(
    consumer: Consumer,
    topic: str,
    handle: Callable[[Sequence[Message]], None],
    *,
    batch: int = 20,
    until_end: bool = False,
    stopping: Callable[[], bool] = lambda: False,
    start_at: Callable[[Sequence[TopicPartition]], list[TopicPartition]] | None = None,
    on_revoke: Callable[[], None] = lambda: None,
) -> None:
    """Read a topic in batches and pass each to `handle`, until `stopping` says True; then leave the group.

    Parameters
    ----------
    consumer
        A consumer that commits nothing by itself (``enable.auto.commit=false``), with any group protocol. Closed at the
        end.
    topic
        What to read.
    handle
        Called with each batch. An exception from it ends the loop.
    batch
        The largest number of records in a batch.
    until_end
        Stop at the end of the topic. Needs a consumer with ``enable.partition.eof=true``.
    stopping
        Called after each batch. A signal handler can make it return True.
    start_at
        Gets the assigned partitions and returns them with start offsets. Without it, the loop starts at the committed
        ones.
    on_revoke
        Called when partitions are revoked. No batch is in progress then: this happens inside ``consume``.

    Raises
    ------
    KafkaException
        If the client can't recover from an error by itself.
    """
    at_end: set[tuple[str, int]] = set()

    def on_assign(consumer: Consumer, partitions: list[TopicPartition]) -> None:
        at_end.difference_update((p.topic, p.partition) for p in partitions)
        begin(consumer, start_at(partitions) if start_at else partitions)

    def revoked(consumer: Consumer, partitions: list[TopicPartition]) -> None:
        on_revoke()

    consumer.subscribe([topic], on_assign=on_assign, on_revoke=revoked)
    try:
        while not stopping():
            records = []
            for message in consumer.consume(batch, timeout=0.5):
                error = message.error()
                if error is None:
                    records.append(message)
                    at_end.discard(place(message)[:2])  # no longer at the end: a record has arrived since
                elif error.code() == KafkaError._PARTITION_EOF:
                    at_end.add(place(message)[:2])
                elif not error.retriable():
                    raise KafkaException(error)
            if records:
                handle(records)
            assigned = {(p.topic, p.partition) for p in consumer.assignment()}
            if until_end and assigned and assigned <= at_end:
                break
    finally:
        leave(consumer)

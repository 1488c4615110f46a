"""The loop of a consumer that works in batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from stocks.records import place

__all__ = ["begin", "leave", "read_batches"]


def begin(consumer: Consumer, partitions: Sequence[TopicPartition]) -> None:
    """Take partitions over, at the offsets that stand in them; to be called in ``on_assign``.

    A group rebalances eagerly (the default: a member is told all that it has from now on) or cooperatively (with
    ``cooperative-sticky`` and ``group.protocol=consumer``: only what is added). Each has its own call and refuses the other's.

    Parameters
    ----------
    consumer
        The consumer that they were assigned to.
    partitions
        What ``on_assign`` was given, with offsets.

    Raises
    ------
    KafkaException
        When they cannot be taken over.
    """
    try:
        consumer.assign(list(partitions))
    except KafkaException as error:
        if error.args[0].code() != KafkaError._STATE:
            raise
        consumer.incremental_assign(list(partitions))


def leave(consumer: Consumer) -> None:
    """Leave the group and close; on return the group knows.

    ``close`` alone leaves the group as well. But while the client waits for an answer to a rebalance, ``close`` may wait for
    ever (librdkafka's issue 4884): the group ends while ``on_assign`` or ``on_revoke`` still talks to it. So this answers the
    rebalance first. A static member leaves, too: it keeps its place when it is killed, not when it is told to end.

    Parameters
    ----------
    consumer
        Who leaves. Its ``on_revoke`` is called, if partitions are assigned to it.

    Raises
    ------
    KafkaException
        When it cannot be closed.
    """
    try:
        consumer.unsubscribe()
        consumer.poll(0)
    except KafkaException as error:
        if error.args[0].code() != KafkaError._FATAL:  # who is fenced has no place any more that it could leave
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
    """Read a topic in batches, each given to `handle`, until told to stop; then leave the group in good order.

    Parameters
    ----------
    consumer
        A consumer that commits nothing by itself (``enable.auto.commit=false``), with any group protocol; closed at the end.
    topic
        What to read.
    handle
        Called with each batch. What it raises ends the loop.
    batch
        How many records it gets at most.
    until_end
        End where the topic ends; needs a consumer with ``enable.partition.eof=true``.
    stopping
        Asked after each batch. A signal handler can have it say True.
    start_at
        Told the partitions that were assigned; says where to begin. Without it, where the group has committed.
    on_revoke
        Called when partitions are taken away. No batch is being handled at that moment: this happens inside ``consume``.

    Raises
    ------
    KafkaException
        For an error that the client cannot mend by itself.
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
                    at_end.discard(place(message)[:2])  # it was; something has come since
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

"""The loop of a consumer that works in batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

__all__ = ["read_batches"]


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
        A consumer that commits nothing by itself (``enable.auto.commit=false``); closed at the end.
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
        at_end.clear()
        consumer.assign(start_at(partitions) if start_at else partitions)

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
                elif error.code() == KafkaError._PARTITION_EOF:
                    at_end.add((message.topic(), message.partition()))
                elif not error.retriable():
                    raise KafkaException(error)
            if records:
                handle(records)
            assigned = {(p.topic, p.partition) for p in consumer.assignment()}
            if until_end and assigned and assigned <= at_end:
                break
    finally:
        consumer.close()

# Written in the lab 04_priority.
"""Make one consumer pause all other partitions while the important one has something to read."""

from __future__ import annotations

from collections.abc import Callable

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from kafkacourse.stocks.coordinator import NOT_READY
from kafkacourse.stocks.topics import partition_count

__all__ = ["read_important_first"]


def read_important_first(
    consumer: Consumer, topic: str, handle: Callable[[Message], None], stopping: Callable[[], bool] = lambda: False
) -> None:
    """Read all partitions of a topic, each record at least once, and the last partition first whenever it has records.

    Parameters
    ----------
    consumer
        A consumer with ``enable.partition.eof=True`` and ``enable.auto.offset.store=False``. The first setting reports
        the end of a partition. With the second, the regular commit covers only offsets that this function stored, after
        the record was handled. This function closes the consumer at the end.
    topic
        What to read, from the committed offsets. Commit an offset for each partition before you call this. Otherwise
        librdkafka 2.16 goes back to the start of a partition if it is resumed while the client still looks up that
        start, and reads records twice.
    handle
        Called with each record. An exception from it ends the loop.
    stopping
        Called after each record, and several times a second when there is none.

    Raises
    ------
    KafkaException
        If the client can't recover from an error by itself.
    """
    with consumer:
        last = partition_count(consumer, topic) - 1
        important = TopicPartition(topic, last)
        others = [TopicPartition(topic, p) for p in range(last)]

        def begin() -> None:
            consumer.assign([*others, important])
            consumer.pause(others)

        begin()
        read_up_to: int | None = None  # the end of the important partition, while it has nothing to read
        while not stopping():
            message = consumer.poll(0.1)
            # Fetched records that aren't read yet count, too: the end moves when records arrive, not when they're
            # polled.
            if read_up_to is not None and consumer.get_watermark_offsets(important, cached=True)[1] > read_up_to:
                consumer.pause(others)
                read_up_to = None
            if message is None:
                continue
            error = message.error()
            if error is None:
                handle(message)
                consumer.store_offsets(message)
            elif error.code() == KafkaError._PARTITION_EOF:
                if message.partition() == last:
                    read_up_to = message.offset()
                    consumer.resume(others)
            elif error.code() in NOT_READY:
                begin()
            else:
                raise KafkaException(error)

# Written in the lab 04_priority.
"""One consumer that lets all other partitions wait while the important one has something to read."""

from __future__ import annotations

from collections.abc import Callable

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from stocks.coordinator import NOT_READY
from stocks.topics import partition_count

__all__ = ["read_important_first"]


def read_important_first(
    consumer: Consumer, topic: str, handle: Callable[[Message], None], stopping: Callable[[], bool] = lambda: False
) -> None:
    """Read all partitions of a topic, at least once each record; the last partition first, whenever it has anything.

    Parameters
    ----------
    consumer
        A consumer with ``enable.partition.eof=True``, which tells when a partition has been read to its end, and with
        ``enable.auto.offset.store=False``: what is committed every few seconds is then what was stored here, after it was
        handled. Closed at the end.
    topic
        What to read, from where it was committed. Commit an offset for each partition before: librdkafka 2.16 goes back to the
        start of a partition that is resumed while the client is still looking that start up, and reads records twice.
    handle
        Called with each record. What it raises ends the loop.
    stopping
        Asked after each record, and several times a second when there is none.

    Raises
    ------
    KafkaException
        For an error that the client cannot mend by itself.
    """
    with consumer:
        last = partition_count(consumer, topic) - 1
        important = TopicPartition(topic, last)
        others = [TopicPartition(topic, p) for p in range(last)]

        def begin() -> None:
            consumer.assign([*others, important])
            consumer.pause(others)

        begin()
        read_up_to: int | None = None  # the end of the important partition, while there is nothing to read
        while not stopping():
            message = consumer.poll(0.1)
            # What was fetched but not read yet counts, too: the end moves when records have come, not when their turn has.
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

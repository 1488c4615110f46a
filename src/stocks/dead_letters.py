"""A topic for records that are no stock price: none is lost, and none stops the consumer."""

from __future__ import annotations

from confluent_kafka import Message, Producer

__all__ = ["DeadLetters", "NotSetAside"]

_LONGEST = 200  # a reason may quote what is wrong, however long that is


class NotSetAside(RuntimeError):
    """A record that cannot be processed is not with Kafka either. Do not commit."""


class DeadLetters:
    """Sends what cannot be processed to a topic, as it came: same key, same bytes. Headers say why, and where it stood.

    Parameters
    ----------
    producer
        Sends it.
    topic
        Where to.
    """

    def __init__(self, producer: Producer, topic: str) -> None:
        self._producer = producer
        self._topic = topic
        self._failed: list[str] = []

    def add(self, record: Message, why: str) -> None:
        """Set a record aside; `flush` tells whether it is there.

        Parameters
        ----------
        record
            What cannot be processed.
        why
            What is wrong with it, in words.
        """
        place = {"topic": record.topic(), "partition": str(record.partition()), "offset": str(record.offset())}
        self._producer.produce(
            self._topic,
            key=record.key(),
            value=record.value(),
            headers={"reason": why[:_LONGEST], **place},
            on_delivery=lambda error, _: self._failed.append(error.str()) if error else None,
        )

    def flush(self) -> None:
        """Wait until all that was set aside is with Kafka.

        Raises
        ------
        NotSetAside
            When some of it is not.
        """
        waiting = self._producer.flush(10)
        failed, self._failed = self._failed, []
        if waiting or failed:
            raise NotSetAside(f"not set aside: {', '.join(failed) or 'no answer within 10 s'}")

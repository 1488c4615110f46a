"""Send malformed records to a dead-letter topic: none is lost, and none stops the consumer."""

from __future__ import annotations

from confluent_kafka import Message, Producer

__all__ = ["DeadLetters", "NotSetAside"]

_LONGEST = 200  # characters of a reason: it may quote the malformed value, which can be long


class NotSetAside(RuntimeError):
    """A record that can't be processed isn't in the dead-letter topic either. Don't commit."""


class DeadLetters:
    """Send records that can't be processed to a topic, with key and value unchanged. Headers hold the reason and position.

    Parameters
    ----------
    producer
        Sends the records.
    topic
        The dead-letter topic.
    """

    def __init__(self, producer: Producer, topic: str) -> None:
        self._producer = producer
        self._topic = topic
        self._failed: list[str] = []

    def add(self, record: Message, why: str) -> None:
        """Send a dead letter. `flush` waits for its acknowledgement.

        Parameters
        ----------
        record
            The record that can't be processed.
        why
            What's wrong with it, in words.
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
        """Wait until Kafka has acknowledged every dead letter.

        Raises
        ------
        NotSetAside
            If at least one wasn't acknowledged.
        """
        waiting = self._producer.flush(10)
        failed, self._failed = self._failed, []
        if waiting or failed:
            raise NotSetAside(f"not set aside: {', '.join(failed) or 'no answer within 10 s'}")

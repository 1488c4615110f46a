"""Interceptors: hooks that see each record on its way out, and each acknowledgement on its way back.

Java's producer takes them as classes (``interceptor.classes``). The Python client has no interceptors, so this producer
wraps another one and keeps Java's contract. It calls hooks in order, and each gets what the one before it returned. If
a hook raises, the producer logs a line, skips that hook and still sends the record.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from confluent_kafka import KafkaError, Message, Producer

__all__ = ["CountingInterceptor", "InterceptedProducer", "Interceptor", "Record"]

_LOG = logging.getLogger(__name__)

Report = Callable[[KafkaError | None, Message], None]


@dataclass(frozen=True, slots=True)
class Record:
    """A record before it's sent."""

    topic: str
    value: bytes | str | None = None
    key: bytes | str | None = None
    partition: int = -1
    timestamp: int = 0
    headers: Sequence[tuple[str, bytes]] = field(default=())


class Interceptor(Protocol):
    """The two hooks. Many threads may call both at once, so a counter in them needs a lock."""

    def on_send(self, record: Record) -> Record:
        """Change or replace a record. Called before the partition is chosen.

        Parameters
        ----------
        record
            The record that the producer got, or that the interceptor before returned.

        Returns
        -------
        Record
            The record to send: the same one, or another.
        """
        ...

    def on_acknowledgement(self, error: KafkaError | None, message: Message) -> None:
        """Note an acknowledgement or a failure. Called before the sender's delivery report, so be quick.

        Parameters
        ----------
        error
            Why the record failed, or None if it was acknowledged.
        message
            The record, with its partition and offset if it was acknowledged.
        """
        ...


class InterceptedProducer:
    """A producer that calls interceptors for each record and acknowledgement.

    Parameters
    ----------
    producer
        The producer that sends.
    interceptors
        Called in this order, for records and for acknowledgements.
    """

    def __init__(self, producer: Producer, interceptors: Sequence[Interceptor]) -> None:
        self._producer = producer
        self._interceptors = tuple(interceptors)

    def produce(
        self,
        topic: str,
        value: bytes | str | None = None,
        key: bytes | str | None = None,
        *,
        partition: int = -1,
        timestamp: int = 0,
        headers: Sequence[tuple[str, bytes]] = (),
        on_delivery: Report | None = None,
    ) -> None:
        """Call the hooks for a record, then send it.

        Parameters
        ----------
        topic, value, key, partition, timestamp, headers, on_delivery
            As for `Producer.produce`.

        Raises
        ------
        BufferError
            If the queue is full. If you send the record again, it goes through the hooks again.
        """
        record = Record(topic, value, key, partition, timestamp, headers)
        for interceptor in self._interceptors:
            try:
                record = interceptor.on_send(record)
            except Exception:
                _LOG.exception("%s.on_send failed; the record goes on as it was", type(interceptor).__name__)

        def report(error: KafkaError | None, message: Message) -> None:
            for interceptor in self._interceptors:
                try:
                    interceptor.on_acknowledgement(error, message)
                except Exception:
                    _LOG.exception("%s.on_acknowledgement failed", type(interceptor).__name__)
            if on_delivery is not None:
                on_delivery(error, message)

        self._producer.produce(
            record.topic,
            value=record.value,
            key=record.key,
            partition=record.partition,
            timestamp=record.timestamp,
            headers=list(record.headers),
            on_delivery=report,
        )

    def poll(self, timeout: float = 0) -> int:
        """Serve delivery reports like `Producer.poll`: wait up to `timeout` seconds, and return the number of events."""
        return self._producer.poll(timeout)

    def flush(self, timeout: float = -1) -> int:
        """Wait like `Producer.flush`: up to `timeout` seconds (-1: no limit). Return the number of records still waiting."""
        return self._producer.flush(timeout)


class CountingInterceptor:
    """Count records that were sent, acknowledged and failed, and log every n-th one on request.

    Parameters
    ----------
    every
        Log every n-th sent record and every n-th acknowledged one (level INFO). Without it, log nothing.

    Attributes
    ----------
    sent, acknowledged, failed
        Counts so far.
    """

    def __init__(self, every: int | None = None) -> None:
        self.sent = self.acknowledged = self.failed = 0
        self._every = every
        self._counting = threading.Lock()

    def on_send(self, record: Record) -> Record:
        """Count a record and return it unchanged."""
        with self._counting:
            self.sent += 1
            number = self.sent
        if self._is_due(number):
            _LOG.info("%d sent: %s %s", number, _text(record.key), _text(record.value))
        return record

    def on_acknowledgement(self, error: KafkaError | None, message: Message) -> None:
        """Count an acknowledgement or a failure."""
        with self._counting:
            if error is not None:
                self.failed += 1
                return
            self.acknowledged += 1
            number = self.acknowledged
        if self._is_due(number):
            _LOG.info("%d acknowledged: %s [%d] at %d", number, message.topic(), message.partition(), message.offset())

    def _is_due(self, number: int) -> bool:
        return self._every is not None and number % self._every == 0


def _text(value: bytes | str | None) -> str | None:
    return value.decode(errors="replace") if isinstance(value, bytes) else value

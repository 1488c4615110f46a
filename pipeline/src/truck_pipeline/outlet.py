"""Write records to Kafka from this process, and know that they're there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from truck_pipeline.librdkafka import as_librdkafka
from truck_pipeline.settings import Settings

__all__ = ["Outlet", "Record"]

# Kafka's default limit of 16 KB for a batch doubles the brokers' work for an alarm, compared with this one.
_IN_BATCHES = {"linger.ms": 20, "batch.size": 262_144, "enable.idempotence": True}

# It would log to standard error whenever a broker is away. What that means for a record, its report says.
_QUIET = {"log_level": 2}


class Record(NamedTuple):
    """A record for a topic.

    Attributes
    ----------
    key, value
        Bytes, or a text.
    headers
        Names and values.
    timestamp
        Milliseconds since 1970; 0 stands for now.
    """

    key: bytes | str | None
    value: bytes | str | None
    headers: list[tuple[str, str | bytes | None]] | None = None
    timestamp: int = 0


class Outlet:
    """A producer that lives as long as the stream, with the settings that Spark's Kafka source has.

    Parameters
    ----------
    settings
        Servers and their login, and the time that they may be away.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._producer: Producer | None = None

    def __getstate__(self) -> dict[str, object]:
        """Pickle no producer: each process has one of its own."""
        return {"_settings": self._settings, "_producer": None}

    def send(self, topic: str, records: Iterable[Record]) -> None:
        """Send records, and wait until Kafka has acknowledged all of them.

        Raises
        ------
        ConnectionError
            When Kafka doesn't take one of them within `Settings.wait` seconds, or the login isn't for librdkafka. Some may be
            in the topic.
        """
        problems: list[KafkaError] = []

        def note(error: KafkaError | None, _: Message) -> None:
            if error is not None:
                problems.append(error)

        try:
            producer = self._connected()
            for record in records:
                self._produce(producer, topic, record, note)
            producer.flush()  # each record is delivered or given up in time
        except KafkaException as error:
            problems.append(error.args[0])
        if problems:
            raise ConnectionError(f"Kafka hasn't taken {len(problems)} records for {topic}: {problems[0].str()}")

    def close(self) -> None:
        """End the producer. The next record starts another one."""
        self._producer = None

    def _produce(self, producer: Producer, topic: str, record: Record, note: Any) -> None:
        key, value, headers, timestamp = record
        while True:
            try:
                producer.produce(topic, value, key, headers=headers, timestamp=timestamp, on_delivery=note)
                return
            except BufferError:  # the queue is full: some must be delivered first
                producer.poll(0.1)

    def _connected(self) -> Producer:
        if self._producer is None:
            within = {"message.timeout.ms": max(1000, int(self._settings.wait * 1000))}
            self._producer = Producer({**as_librdkafka(self._settings.kafka_client()), **_IN_BATCHES, **_QUIET, **within})
        return self._producer

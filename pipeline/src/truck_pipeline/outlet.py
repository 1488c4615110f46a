"""Write records to Kafka from this process, and know that they're there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from truck_pipeline.librdkafka import as_librdkafka
from truck_pipeline.settings import Settings

__all__ = ["Outlet", "Record"]

# Kafka's default limit of 16 KB for a batch doubles the brokers' work for an alarm, compared with this one.
# Compression halves what is left of it.
_IN_BATCHES = {"linger.ms": 20, "batch.size": 262_144, "compression.type": "lz4", "enable.idempotence": True}

_ONLY_FAILURES = {"delivery.report.only.error": True}

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
        self._failed: list[str] = []

    def __getstate__(self) -> dict[str, object]:
        """Pickle no producer: each process has one of its own."""
        return {"_settings": self._settings, "_producer": None, "_failed": []}

    def send(self, topic: str, records: Iterable[Record]) -> None:
        """Begin to send records. `settle` tells whether they're there.

        Raises
        ------
        ConnectionError
            When the login isn't for librdkafka, or a record is larger than Kafka takes.
        """
        try:
            producer = self._connected()
            for record in records:
                _produce(producer, topic, record)
        except KafkaException as error:
            raise ConnectionError(_NOT_TAKEN.format(topic, error.args[0].str())) from error

    def settle(self) -> None:
        """Wait until Kafka has acknowledged all records.

        Raises
        ------
        ConnectionError
            When Kafka doesn't take one of them within `Settings.wait` seconds. Some may be in their topics.
        """
        if self._producer:
            self._producer.flush()  # each record is delivered or given up in time
        failed, self._failed = self._failed, []
        if failed:
            raise ConnectionError(failed[0])

    def close(self) -> None:
        """End the producer. The next record starts another one."""
        self._producer, self._failed = None, []

    def _connected(self) -> Producer:
        if self._producer is None:
            own = {"message.timeout.ms": max(1000, int(self._settings.wait * 1000)), "on_delivery": self._note}
            client = as_librdkafka(self._settings.kafka_client())
            self._producer = Producer({**client, **_IN_BATCHES, **_QUIET, **_ONLY_FAILURES, **own})
        return self._producer

    def _note(self, error: KafkaError, record: Message) -> None:
        self._failed.append(_NOT_TAKEN.format(record.topic(), error.str()))


def _produce(producer: Producer, topic: str, record: Record) -> None:
    key, value, headers, timestamp = record
    while True:
        try:
            producer.produce(topic, value, key, headers=headers, timestamp=timestamp)
            return
        except BufferError:  # the queue is full: some must be delivered first
            producer.poll(0.1)


_NOT_TAKEN = "Kafka hasn't taken a record for {}: {}"

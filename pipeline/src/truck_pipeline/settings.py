"""The settings of a pipeline."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

__all__ = ["Settings"]

_PREFIX = "kafka."

# Spark asks the leader of each partition for its end. Its Kafka client asks a dead leader until this time is over (60 s by
# default). Only then does Spark look for another leader.
_SHORT_TIMEOUTS = {"kafka.request.timeout.ms": "5000", "kafka.default.api.timeout.ms": "6000", "fetchOffset.numRetries": "10"}

# Records of an aborted transaction aren't reports.
_COMMITTED = {"kafka.isolation.level": "read_committed"}

# By default Spark's sink sends each row by itself, and each costs three brokers a request. Kafka's default limit of 16 KB for a
# batch doubles their work for an event, compared with this one. At the end of a task, the sink sends the rest without waiting.
_IN_BATCHES = {"kafka.linger.ms": "20", "kafka.batch.size": "262144"}


@dataclass(frozen=True)
class Settings:
    """Where the pipeline reads and writes, and how. Over Spark Connect, the server must reach the same addresses and folders.

    Attributes
    ----------
    kafka
        Options of Spark's Kafka source and sink: ``kafka.bootstrap.servers``, and any other client setting with ``kafka.`` in
        front. They may hold a password, so they aren't shown.
    registry
        URL of the schema registry.
    registry_settings
        More settings of the registry's client, such as ``basic.auth.user.info`` and ``ssl.ca.location``. They aren't shown.
    database
        URL of PostgreSQL. It may hold a password, so it isn't shown.
    checkpoint
        A folder for offsets and state, which outlives the process. The stream has a folder of its own in it.
    schema
        The schema in the database that holds the tables. Each version of the answers has its own.
    positions, drivers
        Topics to read.
    dangerous, dead_letters
        Topics to write.
    early
        A topic for alarms in real time, which `truck_pipeline.alarms.Alarms` writes.
    patience
        How late an event may come and still count: the watermark's delay.
    ahead
        How far a truck's clock may be ahead of Kafka's. What is further ahead becomes a dead letter.
    window
        The length of the windows in which events are counted.
    trigger
        Time between the starts of micro-batches, such as ``1 second``. A longer micro-batch delays the next one.
    most
        Largest number of records in a micro-batch. With `trigger` it caps the stream: 300,000 records a second by default.
    keep
        For how long the tables keep windows and alarms, such as ``400 days``. Without it they keep everything.
    refresh
        Seconds for which the names of drivers are taken as they are, before the topic of drivers is read again.
    wait
        Seconds that PostgreSQL or the registry may be away. After that the stream ends; another start loses nothing.
    """

    kafka: dict[str, str] = field(repr=False)
    registry: str
    database: str = field(repr=False)
    checkpoint: str
    schema: str = "live"
    positions: str = "truck_position"
    drivers: str = "driver"
    dangerous: str = "dangerous_driving_and_driver_s"
    dead_letters: str = "truck_position_dead"
    early: str = "dangerous_driving_early"
    patience: str = "5 minutes"
    ahead: str = "2 minutes"
    window: str = "1 minute"
    trigger: str = "1 second"
    most: int = 300_000
    keep: str | None = None
    refresh: float = 60
    wait: float = 60
    registry_settings: dict[str, str] = field(default_factory=dict, repr=False)

    def source(self, topic: str) -> dict[str, Any]:
        """Return options to read a topic from its beginning, in a batch or in a stream without a checkpoint."""
        return {**_SHORT_TIMEOUTS, **_COMMITTED, **self.kafka, "subscribe": topic, "startingOffsets": "earliest"}

    def kafka_client(self) -> dict[str, str]:
        """Return the settings of Kafka's own client, by the names that the Java client has."""
        return {name.removeprefix(_PREFIX): value for name, value in self.kafka.items() if name.startswith(_PREFIX)}

    def registry_client(self) -> dict[str, Any]:
        """Return settings of the registry's client."""
        return {"url": self.registry, **self.registry_settings}

    def sink(self, topic: str) -> dict[str, str]:
        """Return options to write to a topic."""
        return {**_IN_BATCHES, **self.kafka, "topic": topic}

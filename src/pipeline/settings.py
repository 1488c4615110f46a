"""Where the pipeline reads and writes, and how patient it is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

__all__ = ["Settings"]

# Spark asks the leader of each partition where it ends. Its Kafka client goes on asking a leader that died until this time is
# over, 60 s by default; then Spark asks anew.
_IMPATIENT = {"kafka.request.timeout.ms": "5000", "kafka.default.api.timeout.ms": "6000", "fetchOffset.numRetries": "10"}

# Spark's sink sends each row by itself otherwise, and three brokers have a request's work with every one. Kafka's own limit of
# 16 KB for a batch doubles what they work for an event (``tools/bench.py pipeline-rate``). At the end of a task the sink sends
# what is left without waiting.
_IN_BATCHES = {"kafka.linger.ms": "20", "kafka.batch.size": "262144"}


@dataclass(frozen=True)
class Settings:
    """The settings of a pipeline. Over Spark Connect, the server must reach the same addresses and folders.

    Attributes
    ----------
    kafka
        Options of Spark's Kafka source and sink: ``kafka.bootstrap.servers``, and any other client setting with ``kafka.`` in
        front.
    registry
        URL of the schema registry.
    database
        URL of PostgreSQL. It may hold a password, so it isn't shown.
    checkpoint
        A folder for offsets and state, which outlives the process. The stream has a folder of its own in it.
    schema
        The schema in the database that holds the tables. Another one is another version of the answers.
    positions, drivers
        Topics to read.
    dangerous, dead_letters
        Topics to write.
    patience
        How late an event may come and still count: the watermark's delay.
    window
        The length of the windows in which events are counted.
    trigger
        Time between the starts of micro-batches, such as ``1 second``. One that takes longer delays the next.
    most
        How many records a micro-batch reads at most. With `trigger` it caps the stream: 50,000 records a second by default.
    wait
        How many seconds PostgreSQL or the registry may be away. After that the stream ends; another start loses nothing.
    """

    kafka: dict[str, str]
    registry: str
    database: str = field(repr=False)
    checkpoint: str
    schema: str = "live"
    positions: str = "truck_position"
    drivers: str = "driver"
    dangerous: str = "dangerous_driving_and_driver_s"
    dead_letters: str = "truck_position_dead"
    patience: str = "5 minutes"
    window: str = "1 minute"
    trigger: str = "1 second"
    most: int = 50_000
    wait: float = 60

    def source(self, topic: str) -> dict[str, Any]:
        """Return options to read a topic from its beginning, in a batch or in a stream without a checkpoint."""
        return {**_IMPATIENT, **self.kafka, "subscribe": topic, "startingOffsets": "earliest"}

    def sink(self, topic: str) -> dict[str, str]:
        """Return options to write to a topic."""
        return {**_IN_BATCHES, **self.kafka, "topic": topic}

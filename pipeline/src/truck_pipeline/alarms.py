"""Alarms by Spark's real-time trigger: milliseconds after the event, and without a memory."""

from __future__ import annotations

from typing import Self

from pyspark.sql import SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming import StreamingQuery

from truck_pipeline import transform
from truck_pipeline.brokers import require_topic
from truck_pipeline.checkpoint import Checkpoint
from truck_pipeline.settings import Settings
from truck_pipeline.sink import alarms_of
from truck_pipeline.writers import Writers

__all__ = ["Alarms", "TooFewSlots"]

_STREAM = "alarms"  # its folder in the checkpoint
# How often it notes its position: after a crash, so much of the alarms comes again. To note it, Spark ends its tasks and plans
# anew. That takes a second or more, in which no record passes.
_POSITION_EVERY = "5 minutes"
_AT_ONCE = {"kafka.linger.ms": "0"}


class TooFewSlots(Exception):
    """Raised if Spark can't run as many tasks at a time as the topic has partitions. Nothing has started."""


class Alarms:
    """Sends each dangerous event to a topic of its own as soon as it's there. A `Pipeline` sends the same ones when it has
    counted them.

    A micro-batch plans, reads and stores, and an alarm waits for all of that. With the real-time trigger, Spark's tasks keep
    running, one for each partition, and each record passes through on its own. That has a price:

    - At least once: after an end or a crash, the alarms of up to 5 minutes come again. Spark 4.2 lets such a query have no
      state, so an event that was sent twice gives two alarms. Their key is the event's id.
    - It knows drivers and schemas as they were when it started. Events of a newer schema give no alarm here.
    - It holds its tasks' slots for itself. So it has a session of its own, with a slot for each partition.

    Parameters
    ----------
    spark
        A session with Spark's Kafka and Avro connectors, not of Spark Connect.
    settings
        Topics and servers.
    """

    def __init__(self, spark: SparkSession, settings: Settings) -> None:
        self._spark, self._settings = spark, settings
        self.query: StreamingQuery | None = None

    def start(self) -> Self:
        """Start the query. It goes on from its checkpoint, or begins with the topic.

        Raises
        ------
        TooFewSlots
            When the session can't run a task for each partition at a time. Spark would leave partitions unread, and not say so.
        ConnectionError, LookupError, CheckpointRefused
            As for `Pipeline.start`.
        """
        settings = self._settings
        topic = require_topic(settings.kafka_client(), settings.positions, settings.drivers, settings.early)
        facts = {"topic": settings.positions, "early alarms": settings.early}
        checkpoint = Checkpoint(self._spark, settings.checkpoint, _STREAM, facts, [_STREAM])
        resumes = checkpoint.require(topic.id)
        records = self._spark.readStream.format("kafka").options(**settings.source(settings.positions)).load()
        events = transform.events(transform.decoded(records, Writers(settings).ask(), settings.ahead))
        # As rows of this plan: a query that reads the topic of drivers, too, isn't one that Spark lets run in real time.
        source = self._spark.read.format("kafka").options(**settings.source(settings.drivers))
        drivers = self._spark.createDataFrame(transform.latest_drivers(source.load()).toArrow())
        self._require_slots(topic.partitions)  # now, because executors register before the first job
        if not resumes:
            checkpoint.note(topic.id, {})
        alarms = transform.with_names(alarms_of(events), drivers)
        rows = alarms.select(f.col("correlationId").alias("key"), f.to_json(f.struct("*")).alias("value"))
        writer = rows.writeStream.format("kafka").options(**{**settings.sink(settings.early), **_AT_ONCE})
        writer = writer.option("checkpointLocation", checkpoint.of(_STREAM)).outputMode("update")
        self.query = writer.trigger(realTime=_POSITION_EVERY).start()  # type: ignore[call-overload] # PySpark's types lack it
        checkpoint.note(topic.id, {_STREAM: str(self.query.id)})
        return self

    def stop(self) -> None:
        """Stop the query."""
        if self.query:
            self.query.stop()

    def wait_for_end(self) -> None:
        """Wait until the query ends.

        Raises
        ------
        StreamingQueryException
            Why it failed.
        """
        if self.query:
            self.query.awaitTermination()

    def _require_slots(self, partitions: int) -> None:
        if (slots := self._spark.sparkContext.defaultParallelism) < partitions:
            raise TooFewSlots(
                f"{self._settings.positions} has {partitions} partitions, and Spark can run {slots} tasks at a time. The "
                f"real-time trigger needs a task for each partition: give local[{partitions}], or executors with so many cores"
            )

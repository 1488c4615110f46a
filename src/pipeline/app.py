"""The pipeline: three streams over one topic, or the same as one batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

from pipeline import transform
from pipeline.brokers import require_brokers
from pipeline.events import written_schemas
from pipeline.settings import Settings
from pipeline.tables import Tables

__all__ = ["Pipeline"]

_COUNTS = ("starts", "driverId", "events", "dangerous")
_ALARMS = (
    *("correlationId", "time", "eventType", "truckId", "driverId"),
    *("first_name", "last_name", "latitude", "longitude", "sent"),
)


class Pipeline:
    """Reads what trucks report, and keeps topics and tables of answers up to date.

    Parameters
    ----------
    spark
        A session with Spark's Kafka and Avro connectors.
    settings
        Where everything is.

    Attributes
    ----------
    queries
        The streams by name, once started: ``dead_letters``, ``dangerous`` and ``counts``.
    tables
        The answers in PostgreSQL.
    """

    def __init__(self, spark: SparkSession, settings: Settings) -> None:
        self.settings = settings
        self.tables = Tables(settings.database, settings.schema)
        self.queries: dict[str, StreamingQuery] = {}
        self._spark = spark

    def start(self) -> Self:
        """Start the streams. With a checkpoint they go on from where they were, else at the beginning of the topic.

        Raises
        ------
        ConnectionError
            When Kafka doesn't answer.
        """
        require_brokers(self._spark, self.settings.kafka)
        self.tables.create()
        options = {**self.settings.source(self.settings.positions), "maxOffsetsPerTrigger": self.settings.most}
        decoded = self._decoded(self._spark.readStream.format("kafka").options(**options).load())
        once = transform.once(transform.events(decoded), self.settings.patience)
        dead = transform.dead_letters(decoded).writeStream.format("kafka")
        self._query("dead_letters", dead.options(**self.settings.sink(self.settings.dead_letters)))
        self._query("dangerous", self._dangerous(once).writeStream.foreachBatch(_each(self._store_dangerous)))
        counts = transform.per_window(once, self.settings.window)
        self._query("counts", counts.writeStream.outputMode("update").foreachBatch(_each(self._store_counts)))
        return self

    def stop(self) -> None:
        """Stop the streams; what they have not finished they do again after a start."""
        for query in self.queries.values():
            query.stop()

    def wait_for_end(self) -> None:
        """Wait until one of the streams ends.

        Raises
        ------
        StreamingQueryException
            Why it failed.
        """
        self._spark.streams.awaitAnyTermination()

    def catch_up(self) -> None:
        """Wait until all that is in the topic now has been processed.

        Raises
        ------
        StreamingQueryException
            When one of the streams has failed.
        """
        for query in self.queries.values():
            query.processAllAvailable()

    def run_batch(self) -> None:
        """Work out the tables from the whole topic at once, by the same functions. Topics are not written.

        Raises
        ------
        ConnectionError
            When Kafka doesn't answer.
        """
        require_brokers(self._spark, self.settings.kafka)
        self.tables.create()
        records = self._spark.read.format("kafka").options(**self.settings.source(self.settings.positions)).load()
        once = transform.once(transform.events(self._decoded(records)), self.settings.patience).persist()
        self._store_counts(transform.per_window(once, self.settings.window))
        self.tables.put_dangerous(self._dangerous(once).select(*_ALARMS).toLocalIterator())
        once.unpersist()

    def _decoded(self, records: DataFrame) -> DataFrame:
        return transform.decoded(records, written_schemas(self.settings.registry, self.settings.positions))

    def _dangerous(self, once: DataFrame) -> DataFrame:
        # Read anew with each micro-batch: a driver's new name counts from then on.
        drivers = self._spark.read.format("kafka").options(**self.settings.source(self.settings.drivers)).load()
        return transform.dangerous(once, transform.latest_drivers(drivers))

    def _store_dangerous(self, alarms: DataFrame) -> None:
        alarms = alarms.persist()
        values = alarms.selectExpr("correlationId AS key", "to_json(struct(*)) AS value")
        values.write.format("kafka").options(**self.settings.sink(self.settings.dangerous)).save()
        self.tables.put_dangerous(alarms.select(*_ALARMS).toLocalIterator())
        alarms.unpersist()

    def _store_counts(self, counts: DataFrame) -> None:
        self.tables.put_counts(counts.select(*_COUNTS).toLocalIterator())

    def _query(self, name: str, writer: DataStreamWriter) -> None:
        placed = writer.queryName(f"{self.settings.schema}_{name}").option(
            "checkpointLocation", f"{self.settings.checkpoint}/{name}"
        )
        self.queries[name] = placed.trigger(processingTime=self.settings.trigger).start()


def _each(store: Callable[[DataFrame], None]) -> Callable[[DataFrame, int], None]:
    """What `foreachBatch` calls. The number of the batch isn't needed: to store a batch again changes nothing."""
    return lambda batch, _: store(batch)

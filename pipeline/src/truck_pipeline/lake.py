"""The lake: everything that trucks ever reported, in three Delta tables in a folder, each made from the one before it.

It's an application beside `Pipeline`: a scheduler calls it every few minutes to add what is new. So the stream never waits for
it. Either of them can be down or replaced without the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from truck_pipeline import transform
from truck_pipeline.begin import begin
from truck_pipeline.brokers import require_topic
from truck_pipeline.checkpoint import Checkpoint, CheckpointRefused, stream_id
from truck_pipeline.settings import Settings
from truck_pipeline.writers import Writers

__all__ = ["Lake", "LakeGone"]

_TABLES: Mapping[str, str] = {
    # as it came from Kafka: the other tables can be computed again from it
    "bronze": "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP",
    # each event once, with columns of its own
    "silver": (
        "truckId INT, driverId INT, routeId BIGINT, eventType STRING, latitude DOUBLE, longitude DOUBLE, correlationId STRING, "
        "sent TIMESTAMP, time TIMESTAMP"
    ),
    # answers
    "gold": "starts TIMESTAMP, driverId INT, events BIGINT, dangerous BIGINT",
}


_VERSION = 2  # of the streams' state
_STREAMS = ("bronze", "silver")


_LOST = (
    "the checkpoint in {0} doesn't know how far {1} is, but that table in {2} isn't empty: it would get every row again. "
    "Nothing was changed; put the checkpoint back, or give an empty folder for the tables"
)


class LakeGone(Exception):
    """Raised if a table is missing."""


class Lake:
    """Three Delta tables: ``bronze`` has each record as it came, ``silver`` each event once, ``gold`` counts by window.

    Parameters
    ----------
    spark
        A session with Spark's Kafka and Avro connectors and Delta Lake.
    settings
        Topic, registry and checkpoint. The checkpoint may be the pipeline's: each has folders of its own in it.
    folder
        The tables' folder, which outlives this process.
    """

    def __init__(self, spark: SparkSession, settings: Settings, folder: str) -> None:
        self.folder = folder
        self._spark, self._settings = spark, settings
        facts = {"version": str(_VERSION), "topic": settings.positions, "folder": folder}
        self._checkpoint = Checkpoint(spark, settings.checkpoint, "lake", facts, _STREAMS)

    def create(self) -> None:
        """Create the tables that don't exist yet.

        Raises
        ------
        LakeGone
            When a table that was filled before is gone. Its records aren't read a second time, so a new table would lack them.
        """
        for table, columns in _TABLES.items():
            if self._checkpoint.began(table):
                self.read(table)
            self._spark.sql(f"CREATE TABLE IF NOT EXISTS {self.name(table)} ({columns}) USING delta")

    def fill(self) -> None:
        """Add what is new in the topic to each table in turn. After an interruption, the next call writes nothing twice.

        Raises
        ------
        LakeGone
            When a table is missing, as on a disk that isn't mounted. Nothing is lost: call it again later.
        ConnectionError
            When Kafka doesn't answer, or the registry doesn't in time.
        LookupError
            When the topic doesn't exist.
        CheckpointRefused
            When streams can't go on from the checkpoint, or it's empty and the tables aren't.
        StreamingQueryException
            When anything else fails.
        """
        for table in _TABLES:
            self.read(table)
        settings = self._settings
        topic = require_topic(self._spark, settings.kafka, settings.positions)
        resumes = self._checkpoint.require(topic.id)
        for table in _STREAMS:
            if not self._checkpoint.began(table) and not self.read(table).isEmpty():
                raise CheckpointRefused(_LOST.format(settings.checkpoint, table, self.folder))
        if not resumes:
            self._checkpoint.note(topic.id, {})
        options = {**settings.source(settings.positions), "maxOffsetsPerTrigger": settings.most}
        bronze = self._append("bronze", self._spark.readStream.format("kafka").options(**options).load().drop("timestampType"))
        records = self._spark.readStream.format("delta").load(self._path("bronze"))
        # Only after bronze is filled does the registry know all writer schemas of its records.
        decoded = transform.decoded(records, Writers(settings).ask(), settings.ahead)
        silver = self._append("silver", transform.deduplicate(transform.events(decoded), settings.patience))
        self._checkpoint.note(topic.id, {"bronze": bronze, "silver": silver})
        # There are few counts. Computing them anew from all events repairs any mistake in them.
        counts = transform.per_window(self.read("silver"), settings.window)
        counts.writeTo(self.name("gold")).overwrite(f.lit(True))

    def read(self, table: str, version: int | None = None) -> DataFrame:
        """Return a table as it is now, or as it was in an earlier version.

        Raises
        ------
        LakeGone
            When it's missing.
        """
        reader = self._spark.read.format("delta")
        try:
            rows = (reader if version is None else reader.option("versionAsOf", version)).load(self._path(table))
            _ = rows.schema  # Spark Connect only looks for the table now
        except AnalysisException as error:
            raise LakeGone(f"there is no table {table} in {self.folder}: {error}") from error
        return rows

    def name(self, table: str) -> str:
        """Return a table's name in SQL."""
        return f"delta.`{self._path(table)}`"

    def _path(self, table: str) -> str:
        return f"{self.folder}/{table}"

    def _append(self, table: str, rows: DataFrame) -> str:
        """Append new rows to a table. Return the stream's id."""
        appender = _Appender(self.name(table), self._checkpoint.of(table))
        writer = rows.writeStream.foreachBatch(appender.append).trigger(availableNow=True)
        query = begin(writer.option("checkpointLocation", appender.checkpoint))
        query.awaitTermination()
        return str(query.id)


@dataclass(frozen=True)
class _Appender:
    """Appends a stream's batches to a table, by its name in SQL. Spark Connect sends it to its server."""

    table: str
    checkpoint: str

    def append(self, batch: DataFrame, number: int) -> None:
        # By these options, Delta recognizes a batch that runs again, and skips it.
        options = {"txnAppId": stream_id(batch.sparkSession, self.checkpoint), "txnVersion": str(number)}
        # Unlike Delta's own sink, this doesn't replace a missing table by an empty one.
        batch.writeTo(self.table).options(**options).append()

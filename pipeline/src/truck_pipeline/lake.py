"""The lake: everything that trucks ever reported, in Delta tables in a folder, each made from the one before it.

It's an application beside `Pipeline`: a scheduler calls it every few minutes to add what is new. So the stream never waits for
it. Either of them can be down or replaced without the other.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from truck_pipeline import transform
from truck_pipeline.begin import begin
from truck_pipeline.brokers import require_topic
from truck_pipeline.checkpoint import Checkpoint, CheckpointRefused, stream_id
from truck_pipeline.durations import milliseconds
from truck_pipeline.lake_layers import Layers
from truck_pipeline.lake_tables import TABLES, Table, day, during
from truck_pipeline.settings import Settings
from truck_pipeline.writers import Writers

__all__ = ["Lake", "LakeGone"]

_VERSION = 3  # of the streams' state and the tables

# The stream that fills each table.
_STREAMS: Mapping[str, str] = {"bronze": "bronze", "silver": "silver", "quarantine": "silver", "gold": "silver"}

_SAFE = "7 days"
_CHECK = "spark.databricks.delta.retentionDurationCheck.enabled"

# In how many tasks VACUUM lists a table's files. It's 10,000 by default, even if there are few files.
_LISTING, _TASKS = "spark.sql.sources.parallelPartitionDiscovery.parallelism", "32"

_LOST = (
    "the checkpoint in {0} doesn't know how far {1} is, but that table in {2} isn't empty: it would get every row again. "
    "Nothing was changed; put the checkpoint back, or give an empty folder for the tables"
)


class LakeGone(Exception):
    """Raised if a table is missing."""


class Lake:
    """Four Delta tables, each partitioned by day.

    ``bronze`` has each record as it came, and ``silver`` each event once, however late or often it came. ``quarantine`` has
    each record that isn't an event, with the reason. ``gold`` counts silver's events by window and driver.

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
        facts = {"version": str(_VERSION), "topic": settings.positions, "folder": folder, "window": settings.window}
        self._checkpoint = Checkpoint(spark, settings.checkpoint, "lake", facts, sorted(set(_STREAMS.values())))
        self._layers = Layers(folder, settings.window)

    def create(self) -> None:
        """Create the tables that don't exist yet.

        Raises
        ------
        LakeGone
            When a table that was filled before is gone. Its records aren't read a second time, so a new table would lack them.
        """
        for table, stream in _STREAMS.items():
            if self._checkpoint.began(stream):
                self.read(table)
            else:
                Table(self.folder, table).create(self._spark)

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
        for table in TABLES:
            self.read(table)
        settings = self._settings
        topic = require_topic(settings.kafka_client(), settings.positions)
        resumes = self._checkpoint.require(topic.id)
        for table, stream in _STREAMS.items():
            if not self._checkpoint.began(stream) and not self.read(table).isEmpty():
                raise CheckpointRefused(_LOST.format(settings.checkpoint, table, self.folder))
        if not resumes:
            self._checkpoint.note(topic.id, {})
        options = {**settings.source(settings.positions), "maxOffsetsPerTrigger": settings.most, "includeHeaders": True}
        records = self._spark.readStream.format("kafka").options(**options).load()
        appender = _Appender(self.name("bronze"), self._checkpoint.of("bronze"))
        bronze = self._run("bronze", records.drop("timestampType").withColumn("day", day("timestamp")), appender.append)
        # Only after bronze is filled does the registry know all writer schemas of its records.
        records = self._spark.readStream.format("delta").load(self._path("bronze"))
        silver = self._run("silver", self._decoded(records), self._layers.add)
        self._checkpoint.note(topic.id, {"bronze": bronze, "silver": silver})

    def back_fill(self, begin: datetime, end: datetime) -> None:
        """Make silver, quarantine and gold anew from the records in bronze that came in a range of time.

        Call it after a mistake in a transformation was repaired, or a schema was registered too late. Each record of the range
        goes to silver or to quarantine again. Equal rows stay as they are. Call it again if it was interrupted.

        Parameters
        ----------
        begin, end
            The range of Kafka's timestamps, with time zones. The end isn't in it.

        Raises
        ------
        LakeGone
            When a table is missing.
        ConnectionError
            When the registry doesn't answer in time.
        PySparkException
            When `fill` changes the tables at the same time. Nothing is half replaced within a table; call it again.
        """
        for table in TABLES:
            self.read(table)
        bronze = self.read("bronze")
        came = f.expr(during("timestamp", begin, end))
        days = f.col("day").between(*(time.astimezone(UTC).date() for time in (begin, end)))
        self._layers.replace(self._decoded(bronze.where(days & came)), self._decoded(bronze.where(~came)), begin, end)

    def optimize(self, retention: str = _SAFE) -> None:
        """Put small files of each table together, and delete files that no longer belong to it. Call it between two fills.

        Parameters
        ----------
        retention
            For how long deleted files stay, such as ``7 days``, Delta's own limit. Versions from before that can't be read any
            more. With less than the limit, queries that are running may fail.
        """
        hours, safe = milliseconds(retention) / 3_600_000, milliseconds(retention) >= milliseconds(_SAFE)
        with _set(self._spark, {_CHECK: str(safe).lower(), _LISTING: _TASKS}):
            for table in TABLES:
                self._spark.sql(f"OPTIMIZE {self.name(table)}")
                self._spark.sql(f"VACUUM {self.name(table)} RETAIN {hours:f} HOURS")

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
        return Table(self.folder, table).name

    def _path(self, table: str) -> str:
        return Table(self.folder, table).path

    def _decoded(self, records: DataFrame) -> DataFrame:
        return transform.decoded(records, Writers(self._settings).ask(), self._settings.ahead)

    def _run(self, stream: str, rows: DataFrame, batches: Callable[[DataFrame, int], None]) -> str:
        """Hand what is new to a function. Return the stream's id."""
        writer = rows.writeStream.foreachBatch(batches).trigger(availableNow=True)
        query = begin(writer.option("checkpointLocation", self._checkpoint.of(stream)))
        query.awaitTermination()
        return str(query.id)


@contextlib.contextmanager
def _set(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Change settings of a session within this context."""
    before = {name: spark.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, earlier in before.items():
            if earlier is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, earlier)


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

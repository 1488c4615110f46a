"""The pipeline: it processes a topic as a stream, or the whole topic as a batch."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Iterator
from typing import Self

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

from truck_pipeline import transform
from truck_pipeline.begin import begin
from truck_pipeline.brokers import require_topic
from truck_pipeline.checkpoint import Checkpoint, CheckpointRefused
from truck_pipeline.settings import Settings
from truck_pipeline.tables import Tables
from truck_pipeline.writers import Writers

__all__ = ["Pipeline"]

_VERSION = 2  # of the stream's state and the tables
_STREAM = "stream"  # its folder in the checkpoint
_JSON = "to_json(struct(*))"


class Pipeline:
    """Reads trucks' reports, and keeps topics and tables of answers up to date.

    If PostgreSQL or the registry is away, the stream waits for up to `Settings.wait` seconds. At a value with a new version of
    the schema, it asks the registry and goes on.

    Parameters
    ----------
    spark
        A session with Spark's Kafka and Avro connectors.
    settings
        Topics, servers and limits.

    Attributes
    ----------
    query
        The running stream; None before `start`. A new version of the schema replaces it.
    tables
        The answers in PostgreSQL.
    """

    query: StreamingQuery | None = None

    def __init__(self, spark: SparkSession, settings: Settings) -> None:
        self.settings = settings
        self.tables = Tables(settings.database, settings.schema, settings.wait)
        self._spark = spark
        self._writers = Writers(settings)
        self._lock = threading.Lock()
        self._stopped = True
        self._problem: Exception | None = None
        self._ended: queue.SimpleQueue[Exception | None] = queue.SimpleQueue()

    def __getstate__(self) -> dict[str, object]:
        """Pickle only what a Spark Connect server needs to run batches."""
        return {"settings": self.settings, "tables": self.tables}

    def start(self) -> Self:
        """Start the stream. It goes on from its checkpoint, or begins with the topic if the checkpoint is empty.

        Raises
        ------
        ConnectionError
            When Kafka doesn't answer, or PostgreSQL or the registry don't in time.
        LookupError
            When one of the four topics doesn't exist.
        CheckpointRefused
            When the stream can't go on from the checkpoint, or it's empty and the topic lacks records that the tables count.
        """
        settings = self.settings
        needed = (settings.drivers, settings.dangerous, settings.dead_letters)
        topic = require_topic(self._spark, settings.kafka, settings.positions, *needed)
        checkpoint = self._checkpoint()
        resumes = checkpoint.require(topic.id)
        self._writers.ask()
        self.tables.create()
        if not resumes:
            if not topic.whole and self.tables.filled():
                raise CheckpointRefused(_LOST.format(self.settings))
            self.tables.empty()
            checkpoint.note(topic.id, {})
        self._stopped = False
        self.query = self._begin()
        threading.Thread(target=self._watch, name="watch the stream", daemon=True).start()
        checkpoint.note(topic.id, {_STREAM: str(self.query.id)})
        return self

    def _stream(self) -> DataStreamWriter:
        """Return one stream for all outputs, so that each record is read and decoded once."""
        options = {**self.settings.source(self.settings.positions), "maxOffsetsPerTrigger": self.settings.most}
        records = self._spark.readStream.format("kafka").options(**options).load()
        events = transform.deduplicate(transform.with_latency_metrics(self._decoded(records)), self.settings.patience)
        return events.writeStream.foreachBatch(self._store)

    def _store(self, rows: DataFrame, batch: int) -> None:
        """Store a batch. A repeated batch writes its records to the topics again, and leaves the tables as they are."""
        with _cached(rows):
            [(count, problems)] = rows.agg(f.count("*"), f.count("problem")).collect()
            if not count:  # Spark only removes old state
                return
            if problems:
                self._send(transform.dead_letters(rows), self.settings.dead_letters)
            with _cached(self._alarms(rows)) as alarms:
                self._send(alarms, self.settings.dangerous)
                self._put(batch, rows, alarms)

    def stop(self) -> None:
        """Stop the stream. The next start repeats an unfinished batch."""
        with self._lock:
            self._stopped = True
            if self.query:
                self.query.stop()

    def wait_for_end(self) -> None:
        """Wait until the stream ends.

        Raises
        ------
        StreamingQueryException, ConnectionError, CheckpointRefused
            Why it failed.
        """
        if problem := self._ended.get():
            raise problem

    def catch_up(self) -> None:
        """Wait until the stream has processed everything that is now in the topic.

        Raises
        ------
        StreamingQueryException, ConnectionError, CheckpointRefused
            When the stream has failed.
        """
        while self.query and not self._caught_up(self.query):
            pass

    def run_batch(self) -> None:
        """Compute the tables from the whole topic at once, with the same functions. Write no topics.

        Raises
        ------
        ConnectionError
            When Kafka doesn't answer, or PostgreSQL or the registry don't in time.
        LookupError
            When the topic of positions or of drivers doesn't exist.
        CheckpointRefused
            When a stream counts in the tables.
        """
        require_topic(self._spark, self.settings.kafka, self.settings.positions, self.settings.drivers)
        self._writers.ask()
        self.tables.create()
        if self.tables.streamed():
            raise CheckpointRefused(_STREAMED.format(self.settings))
        while not self._ran_batch():
            pass

    def _ran_batch(self) -> bool:
        """Run the batch. Return False if it met a new schema and has to run again."""
        records = self._spark.read.format("kafka").options(**self.settings.source(self.settings.positions)).load()
        events = transform.deduplicate(self._decoded(records), self.settings.patience)
        try:
            with _cached(events):
                self._put(None, events, self._alarms(events))
        except (PySparkException, Py4JError) as error:
            if not self._writers.learn(error):
                raise
            return False
        return True

    def _decoded(self, records: DataFrame) -> DataFrame:
        return transform.decoded(records, self._writers.schemas, self._writers.foreign)

    def _alarms(self, rows: DataFrame) -> DataFrame:
        # Read for each batch, so a driver's new name counts from then on.
        drivers = rows.sparkSession.read.format("kafka").options(**self.settings.source(self.settings.drivers)).load()
        alarms = transform.dangerous(transform.events(rows), transform.latest_drivers(drivers))
        return alarms.selectExpr("correlationId AS key", f"{_JSON} AS value")

    def _send(self, records: DataFrame, topic: str) -> None:
        records.write.format("kafka").options(**self.settings.sink(topic)).save()

    def _put(self, batch: int | None, rows: DataFrame, alarms: DataFrame) -> None:
        counts = transform.per_window(transform.events(rows), self.settings.window)
        self.tables.put(batch, _array(counts.selectExpr(f"{_JSON} AS value")), _array(alarms))

    def _checkpoint(self) -> Checkpoint:
        facts = {
            "version": str(_VERSION),
            "schema of tables": self.settings.schema,
            "topic": self.settings.positions,
            "window": self.settings.window,
        }
        return Checkpoint(self._spark, self.settings.checkpoint, "pipeline", facts, [_STREAM])

    def _begin(self) -> StreamingQuery:
        named = self._stream().queryName(self.settings.schema).option("checkpointLocation", self._checkpoint().of(_STREAM))
        return begin(named.trigger(processingTime=self.settings.trigger))

    def _watch(self) -> None:
        """Start the stream again whenever it ends at an unknown schema. If it ends for another reason, note the reason."""
        problem: Exception | None = None
        try:
            while self.query and self._revived(self.query):
                pass
        except Exception as error:
            problem = error
        self._ended.put(problem)

    def _revived(self, query: StreamingQuery) -> bool:
        """Wait until the stream ends. Return whether it was started again."""
        with contextlib.suppress(StreamingQueryException):
            query.awaitTermination()
        with self._lock:
            if self.query is not query:
                return True
            error = query.exception()
            if self._stopped or error is None:
                return False
            if self._problem is None:
                try:
                    self._mend(error)
                    return True
                except Exception as problem:
                    self._problem = problem
            raise self._problem

    def _mend(self, error: Exception) -> None:
        if "CANNOT_LOAD_STATE_STORE" in str(error):
            raise self._checkpoint().damaged(str(error)) from error
        if not self._writers.learn(error):
            raise error
        self.query = self._begin()

    def _caught_up(self, query: StreamingQuery) -> bool:
        try:
            query.processAllAvailable()
        except StreamingQueryException:
            return not self._revived(query)
        return True


_LOST = (
    "the checkpoint in {0.checkpoint} is empty, but the tables of {0.schema} aren't, and the topic {0.positions} no longer has "
    "all its records: from what is left, windows would be counted too low. Nothing was changed; put the checkpoint back, or "
    "give another schema for the tables"
)

_STREAMED = (
    "a stream counts in the tables of {0.schema}, by a checkpoint of its own: a batch would count the same events beside it. "
    "Nothing was changed; give another schema for the tables"
)


@contextlib.contextmanager
def _cached(rows: DataFrame) -> Iterator[DataFrame]:
    """Cache rows within this context, so Spark computes them only once."""
    try:
        yield rows.persist()
    finally:
        rows.unpersist()


def _array(rows: DataFrame) -> str:
    """Return JSON values as one JSON array. Passing one text to Python costs much less than passing rows."""
    [(array,)] = rows.selectExpr("concat('[', array_join(collect_list(value), ','), ']')").collect()
    return str(array)

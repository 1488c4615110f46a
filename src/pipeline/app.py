"""The pipeline: three streams over one topic, or the same as one batch."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable, Iterator
from typing import Self

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

from pipeline import transform
from pipeline.brokers import require_topic
from pipeline.checkpoint import Checkpoint, CheckpointRefused
from pipeline.settings import Settings
from pipeline.tables import Tables
from pipeline.writers import Writers

__all__ = ["Pipeline"]

_VERSION = 1  # of what the streams keep in their state
_NAMES = ("dead_letters", "dangerous", "counts")
_COUNTS = ("starts", "driverId", "events", "dangerous")
_ALARMS = (
    *("correlationId", "time", "eventType", "truckId", "driverId"),
    *("first_name", "last_name", "latitude", "longitude", "sent"),
)


class Pipeline:
    """Reads what trucks report, and keeps topics and tables of answers up to date.

    The streams wait for a PostgreSQL or a registry that is away, within `Settings.wait`. When values come that a new version
    of the schema wrote, they ask the registry and go on with them.

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
        self.tables = Tables(settings.database, settings.schema, settings.wait)
        self.queries: dict[str, StreamingQuery] = {}
        self._spark = spark
        self._writers = Writers(settings)
        self._lock = threading.Lock()
        self._stopped = True
        self._problems: dict[str, Exception] = {}
        self._ended: queue.SimpleQueue[Exception | None] = queue.SimpleQueue()

    def start(self) -> Self:
        """Start the streams. With a checkpoint they go on from where they were, else at the beginning of the topic.

        Raises
        ------
        ConnectionError
            When Kafka doesn't answer, or PostgreSQL or the registry don't in time.
        LookupError
            When the topic isn't there.
        CheckpointRefused
            When the streams can't go on from the checkpoint, or it's empty and the topic has lost records that tables count.
        """
        topic = require_topic(self._spark, self.settings.kafka, self.settings.positions)
        checkpoint = self._checkpoint()
        goes_on = checkpoint.require(topic.id)
        self._writers.ask()
        self.tables.create()
        if not goes_on and not topic.whole and self.tables.filled():
            raise CheckpointRefused(_LOST.format(self.settings))
        if not goes_on:
            checkpoint.note(topic.id, {})
        self._stopped = False
        for name in _NAMES:
            self._begin(name)
            threading.Thread(target=self._watch, args=(name,), name=f"watch {name}", daemon=True).start()
        checkpoint.note(topic.id, {name: str(query.id) for name, query in self.queries.items()})
        return self

    def _streams(self) -> dict[str, DataStreamWriter]:
        options = {**self.settings.source(self.settings.positions), "maxOffsetsPerTrigger": self.settings.most}
        decoded = self._decoded(self._spark.readStream.format("kafka").options(**options).load())
        events = transform.events(decoded)
        once = transform.once(events, self.settings.patience)
        dead = transform.dead_letters(decoded).writeStream.format("kafka")
        noted = transform.once(transform.noted(events), self.settings.patience)
        counts = transform.per_window(noted, self.settings.window).writeStream.outputMode("update")
        return {
            "dead_letters": dead.options(**self.settings.sink(self.settings.dead_letters)),
            "dangerous": self._dangerous(once).writeStream.foreachBatch(_each(self._store_dangerous)),
            "counts": counts.foreachBatch(_each(self._store_counts)),
        }

    def stop(self) -> None:
        """Stop the streams; what they have not finished they do again after a start."""
        with self._lock:
            self._stopped = True
            for query in self.queries.values():
                query.stop()

    def wait_for_end(self) -> None:
        """Wait until one of the streams ends.

        Raises
        ------
        StreamingQueryException, ConnectionError, CheckpointRefused
            Why it failed.
        """
        if problem := self._ended.get():
            raise problem

    def catch_up(self) -> None:
        """Wait until all that is in the topic now has been processed.

        Raises
        ------
        StreamingQueryException, ConnectionError, CheckpointRefused
            When one of the streams has failed.
        """
        for name in _NAMES:
            while not self._caught_up(name, self.queries[name]):
                pass

    def run_batch(self) -> None:
        """Work out the tables from the whole topic at once, by the same functions. Topics are not written.

        Raises
        ------
        ConnectionError
            When Kafka doesn't answer, or PostgreSQL or the registry don't in time.
        LookupError
            When the topic isn't there.
        """
        require_topic(self._spark, self.settings.kafka, self.settings.positions)
        self._writers.ask()
        self.tables.create()
        while not self._ran_batch():
            pass

    def _ran_batch(self) -> bool:
        """Whether no value was written by a schema that came meanwhile."""
        records = self._spark.read.format("kafka").options(**self.settings.source(self.settings.positions)).load()
        once = transform.once(transform.events(self._decoded(records)), self.settings.patience)
        try:
            with _kept(once):
                self._store_counts(transform.per_window(once, self.settings.window))
                self.tables.put_dangerous(self._dangerous(once).select(*_ALARMS).toLocalIterator)
        except (PySparkException, Py4JError) as error:
            if not self._writers.learn(error):
                raise
            return False
        return True

    def _decoded(self, records: DataFrame) -> DataFrame:
        return transform.decoded(records, self._writers.schemas, self._writers.foreign)

    def _dangerous(self, once: DataFrame) -> DataFrame:
        # Read anew with each micro-batch: a driver's new name counts from then on.
        drivers = self._spark.read.format("kafka").options(**self.settings.source(self.settings.drivers)).load()
        return transform.dangerous(once, transform.latest_drivers(drivers))

    def _store_dangerous(self, alarms: DataFrame) -> None:
        with _kept(alarms):
            values = alarms.selectExpr("correlationId AS key", "to_json(struct(*)) AS value")
            values.write.format("kafka").options(**self.settings.sink(self.settings.dangerous)).save()
            self.tables.put_dangerous(alarms.select(*_ALARMS).toLocalIterator)

    def _store_counts(self, counts: DataFrame) -> None:
        with _kept(counts):
            self.tables.put_counts(counts.select(*_COUNTS).toLocalIterator)

    def _checkpoint(self) -> Checkpoint:
        facts = {
            "version": str(_VERSION),
            "schema of tables": self.settings.schema,
            "topic": self.settings.positions,
            "window": self.settings.window,
        }
        return Checkpoint(self._spark, self.settings.checkpoint, "pipeline", facts, _NAMES)

    def _begin(self, name: str) -> None:
        placed = self._streams()[name].queryName(f"{self.settings.schema}_{name}").option(
            "checkpointLocation", self._checkpoint().of(name)
        )  # fmt: skip
        self.queries[name] = placed.trigger(processingTime=self.settings.trigger).start()

    def _watch(self, name: str) -> None:
        """Start a stream again each time it ends because of a schema that it didn't know; note why it ends otherwise."""
        problem: Exception | None = None
        try:
            while self._revived(name, self.queries[name]):
                pass
        except Exception as error:
            problem = error
        self._ended.put(problem)

    def _revived(self, name: str, query: StreamingQuery) -> bool:
        """Wait for a stream's end. Whether it was started again."""
        with contextlib.suppress(StreamingQueryException):
            query.awaitTermination()
        with self._lock:
            if self.queries[name] is not query:
                return True
            error = query.exception()
            if self._stopped or error is None:
                return False
            if name not in self._problems:
                try:
                    self._mend(name, error)
                    return True
                except Exception as problem:
                    self._problems[name] = problem
            raise self._problems[name]

    def _mend(self, name: str, error: Exception) -> None:
        if "CANNOT_LOAD_STATE_STORE" in str(error):
            raise self._checkpoint().damaged(str(error)) from error
        if not self._writers.learn(error):
            raise error
        self._begin(name)

    def _caught_up(self, name: str, query: StreamingQuery) -> bool:
        try:
            query.processAllAvailable()
        except StreamingQueryException:
            return not self._revived(name, query)
        return True


_LOST = (
    "the checkpoint in {0.checkpoint} is empty, but the tables of {0.schema} aren't, and the topic {0.positions} no longer has "
    "all its records: from what is left, windows would be counted too low. Nothing was changed; put the checkpoint back, or "
    "give another schema for the tables"
)


@contextlib.contextmanager
def _kept(rows: DataFrame) -> Iterator[None]:
    """Rows are worked out once, however often they are read."""
    rows.persist()
    try:
        yield
    finally:
        rows.unpersist()


def _each(store: Callable[[DataFrame], None]) -> Callable[[DataFrame, int], None]:
    """What `foreachBatch` calls. The number of the batch isn't needed: to store a batch again changes nothing."""
    return lambda batch, _: store(batch)

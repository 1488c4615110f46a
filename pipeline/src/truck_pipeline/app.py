"""The pipeline: it processes a topic as a stream, or the whole topic as a batch."""

from __future__ import annotations

import contextlib
import queue
import threading
from typing import Self

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from truck_pipeline import transform
from truck_pipeline.begin import begin
from truck_pipeline.brokers import require_topic
from truck_pipeline.caching import cached
from truck_pipeline.checkpoint import Checkpoint, CheckpointRefused
from truck_pipeline.gate import Gate
from truck_pipeline.names import Drivers
from truck_pipeline.outlet import Outlet
from truck_pipeline.progress import OBSERVED, observed
from truck_pipeline.session import has_jvm
from truck_pipeline.settings import Settings
from truck_pipeline.sink import Sink, alarms_of, needed
from truck_pipeline.tables import Tables
from truck_pipeline.writers import NewSchema, Writers

__all__ = ["Pipeline"]

_VERSION = 3  # of the stream's state and the tables
_STREAM = "stream"  # its folder in the checkpoint
_MOMENT = 0.1  # seconds until Spark is asked again whether a batch has ended


class Pipeline:
    """Reads trucks' reports, and keeps topics and tables of answers up to date.

    If PostgreSQL or the registry is away, the stream waits for up to `Settings.wait` seconds. At a value with a new version of
    the schema, it starts again with that version, and repeats the batch.

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
    resumed
        Whether the stream has gone on from its checkpoint.
    tables
        The answers in PostgreSQL.
    """

    query: StreamingQuery | None = None
    resumed = False

    def __init__(self, spark: SparkSession, settings: Settings) -> None:
        self.settings = settings
        self.tables = Tables(settings.database, settings.schema, settings.wait)
        self._spark = spark
        self._writers, self._outlet, self._gate = Writers(settings), Outlet(settings), Gate()
        self._lock = threading.Lock()
        self._stopped = True
        self._problem: Exception | None = None
        self._ended: queue.SimpleQueue[Exception | None] = queue.SimpleQueue()

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
        TablesDiffer
            When tables of the same names have other columns.
        TablesTaken
            When another pipeline writes to the tables.
        """
        settings = self.settings
        needed = (settings.drivers, settings.dangerous, settings.dead_letters)
        topic = require_topic(settings.kafka_client(), settings.positions, *needed)
        checkpoint = self._checkpoint()
        self.resumed = checkpoint.require(topic.id)
        self._writers.ask()
        self.tables.create()
        if not self.resumed:
            if not topic.whole and self.tables.filled():
                raise CheckpointRefused(_LOST.format(self.settings))
            self.tables.empty()
            checkpoint.note(topic.id, {})
        if has_jvm(self._spark):
            self.tables.claim()  # from here on, nobody else writes to them
        else:
            self.tables.close()  # a process of the Spark Connect server's writes
        self._stopped, self._gate = False, Gate()
        self.query = self._begin()
        threading.Thread(target=self._watch, name="watch the stream", daemon=True).start()
        checkpoint.note(topic.id, {_STREAM: str(self.query.id)})
        return self

    def _begin(self) -> StreamingQuery:
        """Start one stream for all outputs, so that each record is read and decoded once."""
        settings, schemas = self.settings, self._writers.ask()
        options = {**settings.source(settings.positions), "maxOffsetsPerTrigger": settings.most, "includeHeaders": True}
        records = self._spark.readStream.format("kafka").options(**options).load()
        decoded = transform.with_clock(transform.decoded(records, schemas, settings.ahead))
        rows = transform.deduplicate(needed(decoded, settings.window), settings.patience, clock="clock")
        counted = rows.observe(OBSERVED, *observed())
        writer = counted.writeStream.foreachBatch(Sink(settings, self.tables, self._outlet, schemas, self._gate))
        named = writer.queryName(settings.schema).option("checkpointLocation", self._checkpoint().of(_STREAM))
        return begin(named.trigger(processingTime=settings.trigger))

    def stop(self) -> None:
        """Stop the stream. The next start repeats an unfinished batch."""
        with self._lock:
            self._stopped = True
            if self.query:
                self.query.stop()
        self._close()

    def stop_after_batch(self) -> None:
        """Let the batch that is being stored come to its end, and stop the stream. No other batch is stored.

        If Spark has planned another one meanwhile, the next start processes it. Over Spark Connect, batches are stored in
        another process, so this waits for a moment without a batch.
        """
        with self._lock:
            self._stopped = True
        self._gate.close()
        with contextlib.suppress(StreamingQueryException):
            while self.query and self.query.status["isTriggerActive"]:
                self.query.awaitTermination(_MOMENT)  # type: ignore[arg-type] # it takes parts of a second, too
        self.stop()

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
        TablesDiffer
            When tables of the same names have other columns.
        """
        require_topic(self.settings.kafka_client(), self.settings.positions, self.settings.drivers)
        self._writers.ask()
        self.tables.create()
        if self.tables.streamed():
            raise CheckpointRefused(_STREAMED.format(self.settings))
        settings = self.settings
        records = self._spark.read.format("kafka").options(**settings.source(settings.positions)).load()
        events = transform.events(transform.decoded(records, self._writers.ask(), settings.ahead))
        with cached(transform.deduplicate(events, settings.patience)) as once:
            alarms = Drivers(settings).names(self._spark).beside(alarms_of(once).toArrow())
            self.tables.put(None, transform.per_window(once, settings.window).toArrow(), alarms)
        self.tables.close()

    def _checkpoint(self) -> Checkpoint:
        facts = {
            "version": str(_VERSION),
            "schema of tables": self.settings.schema,
            "topic": self.settings.positions,
            "window": self.settings.window,
            "patience": self.settings.patience,
            # Spark takes these two from the checkpoint or refuses it, whatever the session says by now.
            "state store": self._spark.conf.get("spark.sql.streaming.stateStore.providerClass") or "",
            "number of shuffle partitions": self._spark.conf.get("spark.sql.shuffle.partitions") or "",
        }
        return Checkpoint(self._spark, self.settings.checkpoint, "pipeline", facts, [_STREAM])

    def _watch(self) -> None:
        """Start the stream again whenever it ends at a new schema. If it ends for another reason, note the reason."""
        problem: Exception | None = None
        try:
            while self.query and self._revived(self.query):
                pass
        except Exception as error:
            problem = error
        self._close()
        self._ended.put(problem)

    def _close(self) -> None:
        self.tables.close()
        self._outlet.close()

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
        if NewSchema.__name__ not in str(error):  # all that is left of the exception, perhaps from another process
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

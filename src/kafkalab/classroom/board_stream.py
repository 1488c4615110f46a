"""What the seats send, evaluated with Spark Structured Streaming: from their topics to the board's facts."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from kafkalab.classroom.events import Event, NotAnEvent, decode
from kafkalab.classroom.facts import Facts
from kafkalab.classroom.topics import SEATS, seat_of
from kafkalab.errors import KafkaLabError
from kafkalab.lifeline import Run, reap
from kafkalab.spark.session import hush_py4j, jvm_process, start_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

__all__ = ["BoardStream"]

_TRIGGER = "400 milliseconds"
_LOOK = 0.5  # seconds between two looks whether Spark lives
_AGAIN = 2.0  # seconds until a query that failed starts again
_READERS = 8  # tasks that read seats' topics at once: to log in and to ask a broker is mostly to wait
_PER_BATCH = 5_000  # records; more wait for the next batch, so that catching up needs no more memory
_SETTINGS = {
    # Each seat's topic has a consumer in Spark, which logs in over TLS. With the default, 64, most would be made anew each
    # time.
    "spark.kafka.consumer.cache.capacity": "256",
}


class BoardStream:
    """A streaming query from all seats' topics into `Facts`. Spark and the query start again if they end.

    The query's checkpoint says how far it got. What Spark repeats after a crash changes nothing in the facts, which keep the
    latest event of each kind. So no vote is lost, and none counts twice.

    Parameters
    ----------
    facts
        Where the events go.
    schema_id
        The registry's id of the events' schema.
    options
        Options of Spark's Kafka source.
    """

    def __init__(self, facts: Facts, schema_id: int, options: Mapping[str, str]) -> None:
        self._facts = facts
        self._schema_id = schema_id
        self._options = dict(options)
        self._closing = threading.Event()
        self._batch_done = False
        self._problem = "Spark starts: counts come in a moment."
        self._thread = threading.Thread(target=self._supervise, name="kafkalab-board-stream", daemon=True)

    @property
    def problem(self) -> str:
        """Why counts may be behind, as a sentence. Empty while the query runs."""
        return self._problem

    def start(self) -> None:
        """Start in the background. Returns at once."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the query and Spark's session. On return they have ended, and the checkpoint is gone. Safe to call again."""
        self._closing.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _supervise(self) -> None:
        run = Run.create("board")
        checkpoint = run.directory / "checkpoint"
        try:
            while not self._closing.is_set():
                self._batch_done = False
                try:
                    self._run(checkpoint)
                except Exception as error:  # Spark's, py4j's or the system's: all end the query, and it starts again
                    self._problem = f"Spark starts again: {_first_line(error)}. No vote is lost: counts go on in a moment."
                    if not self._batch_done:  # maybe the checkpoint is damaged. To read everything again changes no count
                        shutil.rmtree(checkpoint, ignore_errors=True)
                    self._closing.wait(_AGAIN)
        finally:
            reap(run)

    def _run(self, checkpoint: Path) -> None:
        session = start_session("class board", master=f"local[{_READERS}]", settings=_SETTINGS)
        hush_py4j()  # if the JVM dies, `problem` says so in a sentence
        jvm = jvm_process(session)
        query = self._query(session, checkpoint)
        while not self._closing.wait(_LOOK):
            if jvm.poll() is not None:
                raise KafkaLabError("its JVM has ended")
            if not query.isActive:
                raise query.exception() or KafkaLabError("its query was stopped")
            if self._problem and query.status["message"].startswith("Waiting"):  # for data or its time: it has looked for both
                self._problem = ""
        query.stop()
        session.stop()

    def _query(self, session: SparkSession, checkpoint: Path) -> StreamingQuery:
        records = (
            session.readStream.format("kafka")
            .options(**self._options)
            .option("subscribePattern", SEATS)
            .option("startingOffsets", "earliest")
            .option("failOnDataLoss", "false")  # a seat's topic keeps a few megabytes, and goes when the seat does
            .option("maxOffsetsPerTrigger", _PER_BATCH)
            .load()
            .selectExpr("topic", "partition", "offset", "CAST(timestamp AS double) AS appended", "value")
            .coalesce(_READERS)  # a task for each seat's topic would take longer to start than to run
        )
        return (
            records.writeStream.foreachBatch(self._take)
            .option("checkpointLocation", str(checkpoint))
            .trigger(processingTime=_TRIGGER)
            .start()
        )

    def _take(self, batch: DataFrame, _: int) -> None:
        events: list[tuple[str, Event, float]] = []
        foreign: list[tuple[str, int, int]] = []
        for topic, partition, offset, appended, value in batch.collect():
            # Here and not in Spark's workers: only this function knows what an event is, and a class sends few.
            try:
                events.append((seat_of(topic), decode(value or b"", self._schema_id), appended))
            except NotAnEvent:
                foreign.append((seat_of(topic), partition, offset))
        self._facts.upsert(events)
        self._facts.count_foreign(foreign)
        self._batch_done = True


def _first_line(error: Exception) -> str:
    text = str(error) if isinstance(error, KafkaLabError) else f"{type(error).__name__}: {error}"
    return text.strip().split("\n")[0].rstrip(".")[:200]

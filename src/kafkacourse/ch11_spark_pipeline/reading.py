"""The dashboard's figures of a pipeline."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, NamedTuple

import psycopg
from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from kafkalab.spark.streaming import new_progress
from truck_pipeline.app import Pipeline

__all__ = ["Place", "Rate", "Reader", "Reading"]

_TIMEOUT = 5.0
_BATCHES = 100  # as many as Spark remembers of a query
_CURVE = 60  # of them, with a rate

_WORST = """
SELECT driver, (SELECT max(first_name || ' ' || last_name) FROM {schema}.dangerous_driving AS d WHERE d.driver = c.driver),
       sum(dangerous) AS dangerous, sum(events + late)
FROM {schema}.driving AS c GROUP BY driver ORDER BY sum(dangerous) DESC, driver LIMIT 6
"""

# Of the latest batches: their events, and the seconds that half of them and 99% of them took at most until they were stored.
_DELAYS = """
SELECT events, extract(epoch FROM stored - half_sent), extract(epoch FROM stored - first_sent)
FROM {schema}.batches WHERE events > 0 ORDER BY batch DESC LIMIT 100
"""

_LATEST = "SELECT latitude, longitude, kind FROM {schema}.dangerous_driving ORDER BY stored DESC, correlation LIMIT 150"


@dataclass(frozen=True)
class Place:
    """Where a dangerous event happened, and its kind."""

    latitude: float
    longitude: float
    kind: str


@dataclass(frozen=True)
class Rate:
    """A micro-batch: its start in seconds since 1970, and the records per second that it took and could have processed."""

    at: float
    taken: float
    processed: float


@dataclass(frozen=True)
class Reading:
    """The dashboard's figures.

    Attributes
    ----------
    running
        Whether the stream runs.
    events, dangerous
        Numbers of events in the tables.
    worst
        Drivers with the most dangerous events: name, dangerous events, all events.
    places
        The latest dangerous events, newest first.
    rates
        Rates of the latest micro-batches.
    latency
        Median and 99th percentile of the seconds between the timestamp of a record and its count in the tables, over all
        events of the latest micro-batches.
    state
        Rows in the stream's state.
    lag
        Records in the topic that the stream hasn't read.
    """

    running: bool = False
    events: int = 0
    dangerous: int = 0
    worst: tuple[tuple[str, int, int], ...] = ()
    places: tuple[Place, ...] = ()
    rates: tuple[Rate, ...] = ()
    latency: tuple[float, float] | None = None
    state: int = 0
    lag: int = 0


@dataclass
class Reader:
    """Reads a pipeline's figures again and again. A figure that can't be read at the moment keeps its last value.

    Attributes
    ----------
    client
        Settings of a Kafka client.
    """

    client: Mapping[str, Any]
    _admin: AdminClient = field(init=False)
    _last: Reading = field(default_factory=Reading)
    _batches: deque[dict[str, Any]] = field(default_factory=lambda: deque(maxlen=_BATCHES))
    _taken: int = 0

    def __post_init__(self) -> None:
        self._admin = AdminClient(dict(self.client))

    def read(self, pipeline: Pipeline) -> Reading:
        """Read the figures now."""
        for update in (self._ask_tables, self._ask_stream, self._ask_kafka):
            self._last = update(pipeline, self._last)
        return self._last

    def _ask_tables(self, pipeline: Pipeline, last: Reading) -> Reading:
        try:
            worst = pipeline.tables.ask(_WORST)
            [(events, dangerous)] = pipeline.tables.ask("SELECT sum(events + late), sum(dangerous) FROM {schema}.driving")
            places = pipeline.tables.ask(_LATEST)
            delays = [_Delay(*map(float, row)) for row in pipeline.tables.ask(_DELAYS)]
        except psycopg.Error:  # the server is down, or has no tables yet
            return last
        return replace(
            last,
            events=int(events or 0),
            dangerous=int(dangerous or 0),
            worst=tuple((name or f"driver {driver}", int(bad), int(total)) for driver, name, bad, total in worst),
            places=tuple(Place(*row) for row in places),
            latency=_latency(delays) if delays else None,
        )

    def _ask_stream(self, pipeline: Pipeline, last: Reading) -> Reading:
        if not (query := pipeline.query):
            return last
        try:
            running, new = query.isActive, new_progress(query, self._batches[-1]["timestamp"] if self._batches else "")
        except (PySparkException, Py4JError, OSError):  # Spark is gone
            return replace(last, running=False)
        self._batches.extend(new)
        if not self._batches:
            return replace(last, running=running)
        batches = list(self._batches)
        self._taken = _sum_of(batches[-1]["sources"][0]["endOffset"])
        return replace(
            last,
            running=running,
            state=sum(part["numRowsTotal"] for part in batches[-1]["stateOperators"]),
            rates=tuple(_rate(progress) for progress in batches[-_CURVE:]),
        )

    def _ask_kafka(self, pipeline: Pipeline, last: Reading) -> Reading:
        topic = pipeline.settings.positions
        try:
            partitions = self._admin.list_topics(topic, _TIMEOUT).topics[topic].partitions
            latest: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call] # the client lacks types
            ends = {TopicPartition(topic, number): latest for number in partitions}
            offsets = self._admin.list_offsets(ends, request_timeout=_TIMEOUT)
            end = sum(future.result().offset for future in offsets.values())
        except KafkaException:
            return last
        return replace(last, lag=max(0, end - self._taken))


def _sum_of(offsets: Mapping[str, Mapping[str, int]]) -> int:
    return sum(offset for partitions in offsets.values() for offset in partitions.values())


def _rate(progress: Any) -> Rate:
    at = datetime.fromisoformat(progress["timestamp"]).timestamp()
    rows, seconds = progress["numInputRows"], progress["durationMs"]["triggerExecution"] / 1000
    taken = progress.get("inputRowsPerSecond", 0.0)  # the first batch has none
    return Rate(at, taken, rows / max(seconds, 0.001))


class _Delay(NamedTuple):
    """A micro-batch's number of events, and the latencies in seconds that half of them and 99% of them stayed below."""

    events: float
    half: float
    most: float


def _latency(delays: Sequence[_Delay]) -> tuple[float, float]:
    """Estimate the median and the 99th percentile of the latency of all events from those of their batches."""

    def reached(share: float, which: Callable[[_Delay], float]) -> float:
        left = share * sum(delay.events for delay in delays)
        for delay in sorted(delays, key=which):
            left -= delay.events
            if left <= 0:
                break
        return which(delay)

    return reached(0.5, lambda delay: delay.half), reached(0.99, lambda delay: delay.most)

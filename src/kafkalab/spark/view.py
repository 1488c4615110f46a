"""A snapshot of a Spark cluster and its streams."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["ExecutorView", "QueryView", "SparkView", "SparkWorkerView", "query_in"]


@dataclass(frozen=True)
class ExecutorView:
    """An executor.

    Attributes
    ----------
    number
        Spark's id for it. An executor that replaces another gets the next number.
    tasks
        How many tasks it has finished. None while the driver doesn't know it yet.
    """

    number: int
    tasks: int | None


@dataclass(frozen=True)
class SparkWorkerView:
    """A worker.

    Attributes
    ----------
    number
        Counted from 0.
    alive
        Whether its process runs.
    executors
        The executors that run on it.
    """

    number: int
    alive: bool
    executors: tuple[ExecutorView, ...] = ()


@dataclass(frozen=True)
class QueryView:
    """A running stream.

    Attributes
    ----------
    name
        Its name, or the first part of its id.
    batch
        The number of the last finished batch. None before the first one.
    records, rate
        How many records that batch had, and how many were processed per second.
    lag
        How many records were left after that batch. None if its sources don't say.
    """

    name: str
    batch: int | None = None
    records: int = 0
    rate: float = 0.0
    lag: int | None = None


@dataclass(frozen=True)
class SparkView:
    """A Spark cluster, and what this process's session does there.

    Attributes
    ----------
    master
        Whether the master answers.
    registered
        How many workers the master counts as alive.
    workers
        All of them.
    driver
        Name of the application that this process runs there; None without one.
    queries
        Its streams.
    """

    master: bool
    registered: int
    workers: tuple[SparkWorkerView, ...]
    driver: str | None = None
    queries: tuple[QueryView, ...] = ()


def query_in(name: str, progress: Mapping[str, Any] | None) -> QueryView:
    """Build a `QueryView` from a query's latest progress, ``query.lastProgress``."""
    if progress is None:
        return QueryView(name)
    rate = float(progress["processedRowsPerSecond"] or 0)
    ends = [(_offsets(source["latestOffset"]), _offsets(source["endOffset"])) for source in progress["sources"]]
    lag = sum(latest - end for latest, end in ends if latest is not None and end is not None)
    is_known = all(None not in pair for pair in ends)
    # For a batch that took no time, the rate is NaN.
    return QueryView(
        name, progress["batchId"], progress["numInputRows"], rate if rate == rate else 0.0, max(0, lag) if is_known else None
    )


def _offsets(offsets: object) -> int | None:
    """Add up a Kafka source's offsets, which are JSON by topic and partition. Return None for any other source."""
    if isinstance(offsets, str):
        try:
            offsets = json.loads(offsets)
        except ValueError:
            return None
    if not isinstance(offsets, Mapping) or not all(isinstance(topic, Mapping) for topic in offsets.values()):
        return None
    return sum(int(offset) for topic in offsets.values() for offset in topic.values())

"""Look up the executors and streams of this process's session, the driver."""

from __future__ import annotations

from typing import Any, NamedTuple

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from kafkalab.spark.view import QueryView, query_in

__all__ = ["Driver", "driver_on", "streams_of"]


class Driver(NamedTuple):
    """A session's application name, how many tasks each executor has finished, and the running streams."""

    name: str
    tasks: dict[int, int]
    queries: tuple[QueryView, ...]


def driver_on(master: str) -> Driver | None:
    """Return what this process's session does on a master. None if it has no session there, or the session is stopping."""
    context, session = SparkContext._active_spark_context, SparkSession._instantiatedSession
    if context is None or session is None or context.master != master:
        return None
    try:
        return Driver(str(context.appName), _tasks(context), streams_of(session))
    except (Py4JError, OSError):
        return None


def _tasks(context: Any) -> dict[int, int]:
    executors = context._jsc.sc().statusStore().executorList(True)
    executor_infos = (executors.apply(place) for place in range(executors.size()))
    return {int(executor.id()): executor.completedTasks() for executor in executor_infos if executor.id() != "driver"}


def streams_of(session: SparkSession) -> tuple[QueryView, ...]:
    """Return the running streams of a session."""
    return tuple(query_in(query.name or str(query.id)[:8], query.lastProgress) for query in session.streams.active)

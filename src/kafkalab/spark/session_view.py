"""A snapshot of this process's Spark session: its running jobs and its streams."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from kafkalab.errors import SparkFailed
from kafkalab.spark.driver import streams_of
from kafkalab.spark.remote import address_of
from kafkalab.spark.session import jvm_process
from kafkalab.spark.view import QueryView

__all__ = ["JobView", "SessionView", "StageView", "describe_session"]


@dataclass(frozen=True)
class StageView:
    """A stage that has begun.

    Attributes
    ----------
    name
        In Spark's words: what was called, and where.
    tasks, done, active, failed
        How many tasks it has, and how many of them are done, run or failed.
    """

    number: int
    name: str
    tasks: int
    done: int
    active: int
    failed: int


@dataclass(frozen=True)
class JobView:
    """A running job, with its stages that have begun."""

    number: int
    stages: tuple[StageView, ...]


@dataclass(frozen=True)
class SessionView:
    """A session.

    Attributes
    ----------
    place
        Where its tasks run: the address of a master or a Spark Connect server, or ``local[2]``.
    jobs
        None for a Spark Connect session, which doesn't tell.
    """

    place: str
    jobs: tuple[JobView, ...] | None
    queries: tuple[QueryView, ...]


def describe_session(session: Any) -> SessionView:
    """Return what a session that `spark_session` returned does now.

    Raises
    ------
    SparkFailed
        If it has ended, or Spark doesn't answer.
    """
    try:
        if not hasattr(session, "_jsparkSession"):
            return SessionView(address_of(session), None, streams_of(session))
        if jvm_process(session).poll() is not None:
            raise SparkFailed("Spark's JVM is gone")
        context = session.sparkContext
        return SessionView(str(context.master), _jobs(context.statusTracker()), streams_of(session))
    except (Py4JError, PySparkException, OSError, AttributeError) as error:  # AttributeError: stopped just now
        raise SparkFailed("Spark doesn't answer: was the session stopped?") from error


def _jobs(tracker: Any) -> tuple[JobView, ...]:
    jobs = ((number, tracker.getJobInfo(number)) for number in sorted(tracker.getActiveJobsIds()))
    return tuple(JobView(number, _stages(tracker, sorted(job.stageIds))) for number, job in jobs if job is not None)


def _stages(tracker: Any, numbers: list[int]) -> tuple[StageView, ...]:
    stages = (tracker.getStageInfo(number) for number in numbers)
    return tuple(
        StageView(
            stage.stageId, stage.name, stage.numTasks, stage.numCompletedTasks, stage.numActiveTasks, stage.numFailedTasks
        )
        for stage in stages
        if stage is not None
    )

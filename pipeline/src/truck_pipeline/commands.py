"""The commands of ``truck-pipeline``. Each takes the settings, and logs what it did."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from pyspark.sql import SparkSession

from truck_pipeline.app import Pipeline
from truck_pipeline.configuration import Configuration
from truck_pipeline.durations import milliseconds
from truck_pipeline.ending import end_after_batch
from truck_pipeline.endpoint import Endpoint
from truck_pipeline.health import Health
from truck_pipeline.lake import Lake
from truck_pipeline.logs import log
from truck_pipeline.metrics import Metrics
from truck_pipeline.monitor import Monitor
from truck_pipeline.session import start_session

__all__ = ["COMMANDS", "Command"]


def run(configuration: Configuration) -> None:
    """Run the stream until a signal ends it."""
    settings, offer = configuration.settings, configuration.metrics
    monitor = Monitor(metrics := Metrics(), health := Health(milliseconds(offer.silence) / 1000))
    with Endpoint(offer.address, offer.port, metrics, health) as endpoint, _session() as spark, _listening(spark, monitor):
        pipeline = Pipeline(spark, settings).start()
        log(
            "the stream has started",
            reads=[settings.positions, settings.drivers],
            writes=[settings.dangerous, settings.dead_letters],
            servers=configuration.kafka["bootstrap.servers"],
            tables=settings.schema,
            checkpoint=settings.checkpoint,
            goes_on_from="the checkpoint" if pipeline.resumed else "the beginning of the topic",
            endpoint=endpoint.url,
        )
        with end_after_batch(pipeline.stop, lambda: _batch_runs(pipeline), monitor.batch_done):
            pipeline.wait_for_end()
    log("the stream has ended; the next start goes on from the checkpoint")


def batch(configuration: Configuration) -> None:
    """Compute the tables once, from the whole topic."""
    settings = configuration.settings
    with _session() as spark, _logged("computed the tables", topic=settings.positions, tables=settings.schema):
        Pipeline(spark, settings).run_batch()


def fill_lake(configuration: Configuration) -> None:
    """Add what is new to the lake's Delta tables."""
    with _lake(configuration) as lake, _logged("filled the lake", folder=lake.folder):
        lake.create()
        lake.fill()


@dataclass(frozen=True)
class Command:
    """A command.

    Attributes
    ----------
    function
        What it does; its docstring is the command's help.
    needs
        Tables of the settings that only some commands need.
    """

    function: Callable[[Configuration], None]
    needs: tuple[str, ...]


COMMANDS: Mapping[str, Command] = {
    "run": Command(run, ("database",)),
    "batch": Command(batch, ("database",)),
    "lake": Command(fill_lake, ("lake",)),
}
"""Commands by name."""


@contextlib.contextmanager
def _session(delta: bool = False) -> Iterator[SparkSession]:
    """Start a session and stop it, or take one that is there."""
    there = SparkSession.getActiveSession()
    spark = start_session(delta)
    try:
        yield spark
    finally:
        if there is None:
            spark.stop()


@contextlib.contextmanager
def _listening(spark: SparkSession, monitor: Monitor) -> Iterator[None]:
    spark.streams.addListener(monitor)
    try:
        yield
    finally:
        spark.streams.removeListener(monitor)


@contextlib.contextmanager
def _lake(configuration: Configuration) -> Iterator[Lake]:
    assert configuration.lake is not None, "the command needs it, and so the settings have it"
    with _session(delta=True) as spark:
        yield Lake(spark, configuration.settings, configuration.lake.folder)


@contextlib.contextmanager
def _logged(message: str, **context: object) -> Iterator[None]:
    """Log a message when this context ends well, with the seconds that it took."""
    began = time.monotonic()
    yield
    log(message, **context, seconds=round(time.monotonic() - began, 3))


def _batch_runs(pipeline: Pipeline) -> bool:
    return pipeline.query is not None and bool(pipeline.query.status["isTriggerActive"])

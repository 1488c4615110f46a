"""The commands of ``truck-pipeline``. Each takes the settings, and logs what it did."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import SparkSession

from truck_pipeline.alarms import Alarms
from truck_pipeline.app import Pipeline
from truck_pipeline.configuration import Configuration
from truck_pipeline.durations import milliseconds
from truck_pipeline.ending import end_by
from truck_pipeline.endpoint import Endpoint
from truck_pipeline.health import Health
from truck_pipeline.lake import Lake
from truck_pipeline.logs import log
from truck_pipeline.metrics import Metrics
from truck_pipeline.monitor import Monitor
from truck_pipeline.reconcile import reconcile
from truck_pipeline.replay import replay
from truck_pipeline.retention import forget
from truck_pipeline.session import start_session
from truck_pipeline.tables import Tables
from truck_pipeline.transform import REASONS

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
        with end_by(pipeline.stop_after_batch, "ending after the batch"):
            pipeline.wait_for_end()
        monitor.wait_for_last()
    log("the stream has ended; the next start goes on from the checkpoint")


def batch(configuration: Configuration) -> None:
    """Compute the tables once, from the whole topic."""
    settings = configuration.settings
    with _session() as spark, _logged("computed the tables", topic=settings.positions, tables=settings.schema):
        Pipeline(spark, settings).run_batch()


def send_early(configuration: Configuration) -> None:
    """Send alarms in real time until a signal ends it."""
    settings = configuration.settings
    with _session() as spark:
        alarms = Alarms(spark, settings).start()
        log("the alarms have started", reads=[settings.positions, settings.drivers], writes=[settings.early])
        with end_by(alarms.stop, "ending"):
            alarms.wait_for_end()
    log("the alarms have ended; the next start repeats those of the last minutes")


def fill_lake(configuration: Configuration) -> None:
    """Add what is new to the lake's Delta tables."""
    with _session(delta=True) as spark, _logged("filled the lake"):
        lake = _lake(spark, configuration)
        lake.create()
        lake.fill()


def add_late(configuration: Configuration) -> None:
    """Add to the tables the events that came too late for the stream. Fill the lake first."""
    settings = configuration.settings
    tables = Tables(settings.database, settings.schema, settings.wait)
    with _session(delta=True) as spark:
        log("reconciled", tables=settings.schema, late=reconcile(spark, settings, _lake(spark, configuration), tables))


def delete_old(configuration: Configuration) -> None:
    """Delete from PostgreSQL's tables what is older than the setting database.keep. The stream may run meanwhile."""
    settings = configuration.settings
    rows = forget(settings, Tables(settings.database, settings.schema, settings.wait))
    log("deleted old rows", tables=settings.schema, keep=settings.keep, rows=rows)


def send_back(configuration: Configuration, reason: list[str], limit: int) -> None:
    """Send dead letters back to the topic of positions, once what was wrong is repaired."""
    settings = configuration.settings
    with _session() as spark:
        log("sent dead letters back", reasons=reason, letters=replay(spark, settings, reason, limit))


def optimize(configuration: Configuration) -> None:
    """Put small files of the lake together, and delete old ones."""
    with _session(delta=True) as spark, _logged("optimized the lake"):
        _lake(spark, configuration).optimize()


def back_fill(configuration: Configuration, begin: datetime, end: datetime) -> None:
    """Make the lake's tables anew from the records that came in a range of time."""
    with _session(delta=True) as spark, _logged("filled back", begin=begin.isoformat(), end=end.isoformat()):
        _lake(spark, configuration).back_fill(begin, end)


@dataclass(frozen=True)
class Command:
    """A command.

    Attributes
    ----------
    function
        What it does; its docstring is the command's help.
    needs
        Settings that only some commands need: ``database``, ``lake`` and ``keep``.
    options
        More options, by name, as `argparse` takes them. The function gets their values.
    """

    function: Callable[..., None]
    needs: tuple[str, ...]
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def _time(text: str) -> datetime:
    time = datetime.fromisoformat(text)
    return time if time.tzinfo else time.replace(tzinfo=UTC)


_TIME = {"type": _time, "required": True, "metavar": "TIME"}

COMMANDS: Mapping[str, Command] = {
    "run": Command(run, ("database",)),
    "batch": Command(batch, ("database",)),
    "alarms": Command(send_early, ()),
    "lake": Command(fill_lake, ("lake",)),
    "reconcile": Command(add_late, ("database", "lake")),
    "forget": Command(delete_old, ("database", "keep")),
    "replay": Command(
        send_back,
        (),
        {
            "--reason": {"action": "append", "choices": list(REASONS), "required": True, "help": "may be given several times"},
            "--limit": {"type": int, "default": 3, "help": "how often a record is sent back at most (default: %(default)s)"},
        },
    ),
    "optimize": Command(optimize, ("lake",)),
    "back-fill": Command(
        back_fill,
        ("lake",),
        {
            "--begin": {**_TIME, "help": "when the first record came, such as 2026-11-01T00:00 (UTC)"},
            "--end": {**_TIME, "help": "the end isn't in the range"},
        },
    ),
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


def _lake(spark: SparkSession, configuration: Configuration) -> Lake:
    assert configuration.lake is not None, "the command needs it, and so the settings have it"
    return Lake(spark, configuration.settings, configuration.lake.folder)


@contextlib.contextmanager
def _logged(message: str, **context: object) -> Iterator[None]:
    """Log a message when this context ends well, with the seconds that it took."""
    began = time.monotonic()
    yield
    log(message, **context, seconds=round(time.monotonic() - began, 3))

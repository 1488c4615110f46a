"""The pipeline's functions on a Spark cluster of two workers, of which one dies at work: the counts are right."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol, cast

from confluent_kafka import Message

from kafkacourse.ch11_spark_pipeline import RUN_AGAIN
from kafkalab.checks.context import CheckContext, Unmet, text_of
from kafkalab.checks.lab import Lab
from kafkalab.checks.records import key_of
from kafkalab.checks.topics import existing, filled
from kafkalab.checks.wording import counted, quoted

__all__ = ["lab"]

SOURCE, DRIVERS, COUNTS = "truck_position", "driver", "counts"
REPORTS = 1520  # 1500 events, some of them twice

lab = Lab("11_spark_cluster")

check = lab.add_check(
    "11_spark_cluster",
    "Kill a worker of a Spark cluster at work",
    hints=(
        "spark_session has an argument that says where tasks run. It takes the Spark cluster itself.",
        "The verb is spark_cluster.kill_worker. It takes the worker's number, and its executor dies with it.",
        "batches(query) grows while the stream works. wait_until calls a condition again and again: give it a function.",
    ),
)


class Fault(Protocol):
    """What was done to a worker, and when."""

    @property
    def at(self) -> float:
        """In seconds since the epoch."""

    @property
    def verb(self) -> str:
        """The verb's name."""


class Workers(Protocol):
    """What a check asks a Spark cluster. Its class would load Spark."""

    @property
    def faults(self) -> Sequence[Fault]:
        """What was done to its workers."""

    @property
    def applications(self) -> Sequence[str]:
        """Applications that have used it."""


def _workers(ctx: CheckContext) -> Workers:
    given = ctx.answer("spark_cluster", object, "your SparkCluster")
    if not hasattr(given, "kill_worker"):
        raise Unmet(f"`spark_cluster` should be your SparkCluster, not {type(given).__name__}.")
    return cast(Workers, given)


@check.requires("A session ran on the Spark cluster")
def session_ran_there(ctx: CheckContext) -> None:
    if not _workers(ctx).applications:
        raise Unmet("The master of `spark_cluster` has seen no application so far. Where do the tasks of your session run?")


@check.requires("Trucks sent all their reports, once")
def reports_were_sent(ctx: CheckContext) -> None:
    existing(ctx, SOURCE)
    found = ctx.given(SOURCE)
    if found != REPORTS:
        raise Unmet(
            f"{SOURCE} was given {counted(found, 'report')}, not {REPORTS}. Run the cell that sends them once. {RUN_AGAIN}"
        )


@check.requires("A worker was killed while the stream was at work", after=session_ran_there)
def worker_was_killed(ctx: CheckContext) -> None:
    faults = _workers(ctx).faults
    times = [fault.at for fault in faults if fault.verb == "kill_worker"]
    if not times:
        other = f" (only {faults[-1].verb} was used)" if faults else ""
        raise Unmet(f"No worker has been killed so far{other}. Which verb of `spark_cluster` does that?")
    written = [record.timestamp()[1] / 1000 for record in filled(ctx, COUNTS)]
    if any(min(written) < at < max(written) for at in times):
        return
    if times[-1] <= min(written):
        raise Unmet(f"A worker was killed before the stream had written anything. Wait for its first batches. {RUN_AGAIN}")
    raise Unmet(
        "A worker was killed when the stream had nothing to do any more: no count was written after that. Is enough left to "
        f"read when you kill it? {RUN_AGAIN}"
    )


def _object(record: Message) -> Mapping[str, Any]:
    try:
        value = json.loads(text_of(record))
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise Unmet(f"{record.topic()} has the value {quoted(text_of(record))}, which isn't a JSON object. {RUN_AGAIN}")
    return value


def _right(ctx: CheckContext) -> Counter[str]:
    """Work out the alarms of each driver and minute from what trucks sent, each event once."""
    events = {event["correlationId"]: event for event in map(_object, ctx.records(SOURCE))}
    return Counter(
        f"{event['driverId']}@{datetime.fromtimestamp(event['timestamp'] // 1000, UTC):%H:%M}"
        for event in events.values()
        if event["eventType"] != "Normal"
    )


@check.requires("Each alarm counts once", after=(reports_were_sent, worker_was_killed))
def counts_are_right(ctx: CheckContext) -> None:
    found = {key_of(record): _object(record).get("alarms") for record in filled(ctx, COUNTS)}
    right = _right(ctx)
    for key in sorted(right.keys() | found.keys()):
        if found.get(key) != right.get(key):
            driver, _, minute = key.partition("@")
            has = f"{found[key]} alarms" if key in found else "no count"
            raise Unmet(
                f"{COUNTS} has {has} for driver {driver} at {minute}. Did the stream process everything, with the same "
                "checkpoint all the time?"
            )


@check.requires("Each alarm has its driver's name", after=counts_are_right)
def names_are_there(ctx: CheckContext) -> None:
    names = {key_of(record): _object(record).get("last_name") for record in filled(ctx, DRIVERS)}
    for record in ctx.records(COUNTS):
        driver, name = key_of(record).partition("@")[0], _object(record).get("last_name")
        if name != names.get(driver):
            raise Unmet(f"{COUNTS} has the name {quoted(str(name))} for driver {driver}. What does the topic {DRIVERS} say?")

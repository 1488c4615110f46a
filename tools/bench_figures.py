"""What the rows of ``make bench`` share.

A row is a generator. Each time it has measured something, it yields what that is, the figure's unit, and the value. The unit
may have a bound before it that the median of all values must keep: ``"≤ 4 s"``, ``"≥ 0.8 ×"``.
"""

from __future__ import annotations

import os
import re
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

import psutil
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import SparkSession

from kafkalab import Cluster
from kafkalab.environment import JAVA_OPTIONS
from kafkalab.spark import SparkCluster
from kafkalab.spark.session import start_session

LONG_RUNNING = ("-XX:TieredStopAtLevel=4", "-XX:-UseSerialGC", "-XX:+UseParallelGC")

Measured = Iterator[tuple[str, str, float]]
local = partial(Cluster, backend="local")


@dataclass
class Figure:
    """A line of the table: what was measured, its unit with its bound, and the values."""

    what: str
    must_be: str
    values: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.sign, self.bound, self.unit = re.fullmatch(r"(?:([≤≥]) ([\d.]+) )?(.+)", self.must_be).groups()

    @property
    def kept(self) -> bool:
        """Whether the median keeps the bound. Without a bound, it does."""
        median = statistics.median(self.values)
        return self.sign is None or (median <= float(self.bound) if self.sign == "≤" else median >= float(self.bound))

    def cells(self) -> tuple[str, ...]:
        """The line's text."""
        digits = 0 if min(self.values) >= 1000 else 2
        values = (statistics.median(self.values), min(self.values), max(self.values))
        median, *ends = (f"{value:,.{digits}f}" for value in values)
        verdict = (self.must_be, "[green]yes" if self.kept else "[red]NO") if self.sign else ("", "")
        return (self.what, f"{median} {self.unit}", " – ".join(ends), str(len(self.values)), *verdict)


def figures(measured: Iterable[tuple[str, str, float]]) -> list[Figure]:
    """Gather what a row has measured, in the order in which each figure came first."""
    gathered: dict[str, Figure] = {}
    for what, must_be, value in measured:
        gathered.setdefault(what, Figure(what, must_be)).values.append(value)
    return list(gathered.values())


def timed(action: Callable[..., object], *arguments: object) -> float:
    """Seconds that something takes."""
    began = time.perf_counter()
    action(*arguments)
    return time.perf_counter() - began


def memory(pid: int) -> float:
    """The memory of a process (PSS), in MB."""
    return psutil.Process(pid).memory_full_info().pss / 1e6


def create(cluster: Cluster, topic: str, partitions: int, replicas: int) -> None:
    """Create a topic, and wait until its replicas are in sync."""
    admin = AdminClient(cluster.client_config())  # with no name, it would end before it has an answer
    admin.create_topics([NewTopic(topic, partitions, replicas)])[topic].result()
    cluster.wait_for(lambda view: view.in_sync(topic), "all replicas in sync", 120)


def long_running_session(
    master: SparkCluster | None = None, heap: str = "1g", settings: Mapping[str, str] | None = None
) -> SparkSession:
    """A session whose JVM is made to run for long, as a company's would be; a lesson's is made to start fast."""
    os.environ[JAVA_OPTIONS] = " ".join((*LONG_RUNNING, f"-Xmx{heap}"))  # what Java reads last
    try:
        return start_session("bench", master, settings=settings)
    finally:
        del os.environ[JAVA_OPTIONS]

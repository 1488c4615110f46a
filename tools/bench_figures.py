"""What the rows of ``make bench`` share."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from kafkalab.environment import JAVA_OPTIONS
from kafkalab.spark import SparkCluster
from kafkalab.spark.session import start_session

LONG_RUNNING = ("-XX:TieredStopAtLevel=4", "-Xmx1g")  # lessons do without the second compiler


@dataclass
class Figure:
    """One row of the table: what was measured, the bound that must be kept, and the measured values.

    With `at_least`, the bound is the least that the median may be; else it is the most. A bound of None is kept by anything.
    """

    what: str
    bound: float | None
    unit: str
    values: list[float] = field(default_factory=list)
    at_least: bool = False

    @property
    def kept(self) -> bool:
        """Whether the median keeps the bound."""
        middle = statistics.median(self.values)
        return self.bound is None or (middle >= self.bound if self.at_least else middle <= self.bound)

    def cells(self) -> tuple[str, ...]:
        """The row's text."""
        digits = 0 if min(self.values) >= 1000 else 2
        values = (statistics.median(self.values), min(self.values), max(self.values))
        middle, *ends = (f"{value:,.{digits}f}" for value in values)
        bound = "" if self.bound is None else f"{'≥' if self.at_least else '≤'} {self.bound:g} {self.unit}"
        verdict = "" if self.bound is None else "[green]yes" if self.kept else "[red]NO"
        return (self.what, f"{middle} {self.unit}", " – ".join(ends), str(len(self.values)), bound, verdict)


def timed(action: Callable[[], object]) -> float:
    """Seconds that something takes."""
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def long_running_session(master: SparkCluster | None = None) -> SparkSession:
    """A session whose JVM is made to run for long, as a company's would be; a lesson's is made to start fast."""
    os.environ[JAVA_OPTIONS] = " ".join(LONG_RUNNING)  # what Java reads last
    try:
        return start_session("bench", master)
    finally:
        del os.environ[JAVA_OPTIONS]

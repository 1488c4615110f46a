"""A stream on two workers: each wrong answer gets its sentence, and right ones pass, with one kill or several."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field

import pytest

from kafkalab import Cluster, wait_until
from kafkalab.checks.ch11_spark_pipeline.spark_cluster import EVENTS
from kafkalab.spark.standalone import WorkerFault
from support import Verdict, create, put

pytestmark = pytest.mark.cluster

LAB = "11_spark_cluster"
DRIVERS = [str(10 + number % 7) for number in range(EVENTS)]


@dataclass
class Workers:
    """What a Spark cluster would say."""

    applications: list[str] = field(default_factory=lambda: ["kafkalab"])
    faults: list[WorkerFault] = field(default_factory=list)

    def kill_worker(self, number: int) -> None:
        self.faults.append(WorkerFault(time.time(), "kill_worker", number))

    def kill_executor(self, number: int) -> None:
        self.faults.append(WorkerFault(time.time(), "kill_executor", number))


@pytest.fixture
def sent(clean: Cluster) -> Cluster:
    """Trucks sent everything."""
    create(clean, "truck_position", 4, 1)
    create(clean, "counts", 1, 1)
    put(clean, "truck_position", [(driver, "Normal", number % 4) for number, driver in enumerate(DRIVERS)])
    return clean


@pytest.fixture
def workers() -> Workers:
    return Workers()


def batch(cluster: Cluster, upto: int) -> None:
    """Write what the stream has counted by then. Times are in whole milliseconds: no two steps are in the same one."""
    now = time.time()
    wait_until(lambda: time.time() > now + 0.002, 5, "the clock to go on", interval=0.001)
    put(cluster, "counts", [(driver, str(number), 0) for driver, number in Counter(DRIVERS[:upto]).items()])


def test_nothing_was_done(clean: Cluster, verdict: Verdict, workers: Workers) -> None:
    _, said = verdict(LAB, clean, spark_cluster=workers)
    assert "There is no topic 'truck_position' yet" in said and "No worker has been killed so far. Which verb" in said
    verdict.says("`spark_cluster` should be your SparkCluster, not Cluster", LAB, clean, spark_cluster=clean)


def test_a_session_that_runs_here(sent: Cluster, verdict: Verdict, workers: Workers) -> None:
    workers.applications.clear()
    batch(sent, EVENTS)
    verdict.says("The master of `spark_cluster` has seen no application so far", LAB, sent, spark_cluster=workers)


def test_killed_too_early(sent: Cluster, verdict: Verdict, workers: Workers) -> None:
    workers.kill_worker(0)
    batch(sent, EVENTS)
    verdict.says("A worker was killed before the stream had written anything", LAB, sent, spark_cluster=workers)


def test_killed_too_late_or_an_executor_only(sent: Cluster, verdict: Verdict, workers: Workers) -> None:
    batch(sent, 10)
    workers.kill_executor(1)
    batch(sent, EVENTS)
    verdict.says("No worker has been killed so far (only kill_executor was used)", LAB, sent, spark_cluster=workers)
    workers.kill_worker(0)
    verdict.says("A worker was killed when the stream had nothing to do any more", LAB, sent, spark_cluster=workers)


def test_wrong_counts(sent: Cluster, verdict: Verdict, workers: Workers) -> None:
    batch(sent, 100)
    workers.kill_worker(0)
    batch(sent, 1000)
    found = Counter(DRIVERS[:1000])["10"]
    verdict.says(f"counts has '{found}' for driver 10. Did the stream process everything", LAB, sent, spark_cluster=workers)
    put(sent, "truck_position", [("10", "Normal", 0)])
    verdict.says("truck_position was given 1501 events, not 1500", LAB, sent, spark_cluster=workers)


def test_a_worker_at_work(sent: Cluster, verdict: Verdict, workers: Workers) -> None:
    batch(sent, 450)
    workers.kill_worker(0)
    batch(sent, EVENTS)
    verdict.passes(LAB, sent, spark_cluster=workers)


def test_one_too_early_and_another_at_work(sent: Cluster, verdict: Verdict, workers: Workers) -> None:
    workers.kill_worker(1)
    batch(sent, 10)
    workers.kill_executor(1)
    workers.kill_worker(0)
    batch(sent, EVENTS)
    verdict.passes(LAB, sent, spark_cluster=workers)

"""A part of the pipeline on two workers: each wrong answer gets its sentence, and right ones pass, with one kill or several."""

from __future__ import annotations

import json
import time
from collections import Counter
from dataclasses import dataclass, field

import pytest

from kafkacourse.ch11_spark_pipeline.spark_cluster import REPORTS
from kafkalab import Cluster, wait_until
from kafkalab.spark.standalone import WorkerFault
from support import PATIENCE, Verdict, create, put
from truck_pipeline import DRIVERS, Event, Trucks

pytestmark = pytest.mark.cluster

LAB = "11_spark_cluster"
SENT = [report.event for report in Trucks(malformed=0, interval=200).reports(1500) if report.event]
NAMES = {driver.id: driver.last_name for driver in DRIVERS}


def written(event: Event) -> str:
    fields = {
        "timestamp": event.timestamp,
        "driverId": event.driver,
        "eventType": event.kind,
        "correlationId": event.correlation,
    }
    return json.dumps(fields)


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
    create(clean, "driver", 1, 1)
    create(clean, "counts", 1, 1)
    put(clean, "truck_position", [(str(event.driver), written(event), event.driver % 4) for event in SENT])
    put(clean, "driver", [(str(driver.id), json.dumps(driver._asdict()), 0) for driver in DRIVERS])
    return clean


@pytest.fixture
def workers() -> Workers:
    return Workers()


def batch(cluster: Cluster, upto: int, *, repeats: bool = False, names: dict[int, str] = NAMES) -> None:
    """Write what the stream has counted by then. Times are in whole milliseconds: no two steps are in the same one."""
    now = time.time()
    wait_until(lambda: time.time() > now + 0.002, PATIENCE, "the clock to go on", interval=0.001)
    events = SENT[:upto] if repeats else list({event.correlation: event for event in SENT[:upto]}.values())
    minutes = Counter((event.driver, (event.timestamp // 60_000) % 60) for event in events if event.dangerous)
    values = {key: json.dumps({"last_name": names.get(key[0]), "alarms": alarms}) for key, alarms in minutes.items()}
    put(cluster, "counts", [(f"{driver}@20:{minute:02d}", value, 0) for (driver, minute), value in values.items()])


def test_the_reports_are_those_of_the_lab() -> None:
    assert len(SENT) == REPORTS > len(set(SENT)) == 1500


def test_nothing_was_done(clean: Cluster, verdict: Verdict, workers: Workers) -> None:
    _, said = verdict(LAB, clean, spark_cluster=workers)
    assert "There is no topic 'truck_position' yet" in said and "No worker has been killed so far. Which verb" in said
    verdict.says("`spark_cluster` should be your SparkCluster, not Cluster", LAB, clean, spark_cluster=clean)


def test_a_session_that_runs_here(sent: Cluster, verdict: Verdict, workers: Workers) -> None:
    workers.applications.clear()
    batch(sent, REPORTS)
    verdict.says("The master of `spark_cluster` has seen no application so far", LAB, sent, spark_cluster=workers)


def test_killed_too_early(sent: Cluster, verdict: Verdict, workers: Workers) -> None:
    workers.kill_worker(0)
    batch(sent, REPORTS)
    verdict.says("A worker was killed before the stream had written anything", LAB, sent, spark_cluster=workers)


def test_killed_too_late_or_an_executor_only(sent: Cluster, verdict: Verdict, workers: Workers) -> None:
    batch(sent, 10)
    workers.kill_executor(1)
    batch(sent, REPORTS)
    verdict.says("No worker has been killed so far (only kill_executor was used)", LAB, sent, spark_cluster=workers)
    workers.kill_worker(0)
    verdict.says("A worker was killed when the stream had nothing to do any more", LAB, sent, spark_cluster=workers)


@pytest.mark.parametrize(
    ("last", "said"),
    [
        ({"upto": 1000}, "Did the stream process everything, with the same checkpoint"),
        ({"upto": REPORTS, "repeats": True}, "Did the stream process everything, with the same checkpoint"),
        ({"upto": REPORTS, "names": {}}, "What does the topic driver say?"),
    ],
)
def test_wrong_counts_and_names(sent: Cluster, verdict: Verdict, workers: Workers, last: dict[str, object], said: str) -> None:
    batch(sent, 100)
    workers.kill_worker(0)
    batch(sent, **last)
    verdict.says(said, LAB, sent, spark_cluster=workers)


def test_reports_that_were_sent_again(sent: Cluster, verdict: Verdict, workers: Workers) -> None:
    put(sent, "truck_position", [(str(SENT[0].driver), written(SENT[0]), 0)])
    verdict.says("truck_position was given 1521 reports, not 1520", LAB, sent, spark_cluster=workers)


def test_a_worker_at_work(sent: Cluster, verdict: Verdict, workers: Workers) -> None:
    batch(sent, 450)
    workers.kill_worker(0)
    batch(sent, REPORTS)
    verdict.passes(LAB, sent, spark_cluster=workers)


def test_one_too_early_and_another_at_work(sent: Cluster, verdict: Verdict, workers: Workers) -> None:
    workers.kill_worker(1)
    batch(sent, 10)
    workers.kill_executor(1)
    workers.kill_worker(0)
    batch(sent, REPORTS)
    verdict.passes(LAB, sent, spark_cluster=workers)

"""`SparkCluster`: two workers compute together, one may be killed, strangers are kept out, and nothing stays behind."""

from __future__ import annotations

import os
import urllib.request
from collections.abc import Iterator
from typing import TypeVar

import psutil
import pytest
from pyspark.sql import functions as f

from kafkalab import SparkCluster, spark_session, wait_until
from kafkalab.cluster.ports import HOST
from kafkalab.errors import NotEnoughResources, SparkFailed
from kafkalab.spark.view import SparkView
from support import PATIENCE, living, own_runs

pytestmark = pytest.mark.cluster

T = TypeVar("T")
NUMBERS = 1_000_000
SUM = NUMBERS * (NUMBERS - 1) // 2


@pytest.fixture(scope="module")
def workers() -> Iterator[SparkCluster]:
    with SparkCluster(2) as spark_cluster:
        yield spark_cluster
        spark_session().stop()


def executors() -> set[str]:
    """Folders of the executors that Python functions run on."""
    where = f.udf(lambda _: os.environ["SPARK_EXECUTOR_DIRS"], "string")
    return {row.where for row in spark_session().range(0, 8, 1, 4).select(where("id").alias("where")).collect()}


def both_counted(view: SparkView) -> SparkView | None:
    """The view, if each of two executors has run tasks."""
    counts = [one.tasks for worker in view.workers for one in worker.executors]
    return view if len(counts) == 2 and all(counts) else None


def total() -> int:
    return spark_session().range(0, NUMBERS, 1, 4).selectExpr("sum(id) AS total").first().total


def test_two_executors_compute_and_one_may_be_killed(workers: SparkCluster) -> None:
    session = spark_session(master=workers)
    assert session is spark_session() and session.sparkContext.master == workers.url
    # A session starts with one executor when the other one takes long; and Spark counts their tasks a little later.
    wait_until(lambda: len(executors()) == 2, PATIENCE, "both executors", last_seen=workers.describe)
    assert total() == SUM
    view = wait_until(lambda: both_counted(workers.describe()), PATIENCE, "the tasks to be counted", last_seen=workers.describe)
    assert (view.master, view.registered, view.driver, view.queries) == (True, 2, "kafkalab", ())
    assert sorted(one.number for worker in view.workers for one in worker.executors) == [0, 1]
    left = workers.workers[:]
    workers.kill_worker(0)
    assert total() == SUM
    wait_until(lambda: len(workers.workers) == 1, PATIENCE, "the master to miss the worker")
    view = workers.describe()
    assert view.registered == 1 and not view.workers[0].alive and view.workers[1].executors
    with pytest.raises(SparkFailed, match="worker 0 can't be killed"):
        workers.kill_worker(0)
    with pytest.raises(SparkFailed, match="no executor runs on worker 0"):
        workers.kill_executor(0)
    workers.restart_worker(0)
    assert len(workers.workers) == 2 and set(workers.workers) != set(left)
    wait_until(lambda: len(executors()) == 2, PATIENCE, "an executor on the worker that was started again")
    doomed = workers._workers[1].children()
    workers.kill_executor(1)
    assert doomed and not any(process.is_running() for process in doomed)
    assert total() == SUM and len(workers.workers) == 2
    wait_until(lambda: len(executors()) == 2, PATIENCE, "another executor in its place")
    done = [("kill_worker", 0), ("restart_worker", 0), ("kill_executor", 1)]
    assert [(fault.verb, fault.worker) for fault in workers.faults] == done
    assert workers.applications == ["kafkalab"]


def test_the_map_knows_the_streams_that_run(workers: SparkCluster) -> None:
    ticks = spark_session().readStream.format("rate").load().writeStream.format("noop")
    query = ticks.queryName("ticks").start()
    try:
        seen = wait_until(lambda: [q for q in workers.describe().queries if q.batch], PATIENCE, "a batch to be seen")
        assert seen[0].name == "ticks"
    finally:
        query.stop()
    assert workers.describe().queries == ()


def test_it_listens_on_loopback_only(workers: SparkCluster) -> None:
    below = psutil.Process().children(recursive=True)
    own = living(below, lambda process: process.net_connections() if process.name() == "java" else [])
    listening = [c.laddr.ip for connections in own for c in connections if c.status == "LISTEN"]
    assert listening and {ip.removeprefix("::ffff:") for ip in listening} == {HOST}


def test_a_session_runs_in_one_place(workers: SparkCluster) -> None:
    other = SparkCluster(1)
    with pytest.raises(SparkFailed, match="not running"):
        spark_session(master=other)
    other._run, other._port = workers._run, 1  # as if it ran elsewhere
    with pytest.raises(SparkFailed, match="there is a session already"):
        spark_session(master=other)


def test_what_cannot_be(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="at least one worker"):
        SparkCluster(0)
    for kill in (SparkCluster().kill_worker, SparkCluster().kill_executor):
        with pytest.raises(SparkFailed, match="call start"):
            kill(0)
    monkeypatch.setattr("kafkalab.resources.available_memory", lambda: 500 << 20)
    before = own_runs()
    with pytest.raises(NotEnoughResources, match="a Spark cluster of 2 workers needs about"):
        SparkCluster(2).start()
    assert own_runs() == before


def test_its_secret_is_no_ones_to_read(workers: SparkCluster) -> None:
    settings = workers._run.directory / "spark.properties"
    assert workers.secret in settings.read_text() and settings.stat().st_mode & 0o077 == 0
    for command in living(psutil.Process().children(recursive=True), lambda process: process.cmdline()):
        assert not any(workers.secret in argument for argument in command)
    with urllib.request.urlopen(f"http://{HOST}:{workers._page}/json/") as page:
        assert workers.secret not in page.read().decode()

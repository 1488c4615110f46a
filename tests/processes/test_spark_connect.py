"""The pipeline over Spark Connect: Spark's driver is in a server, and this process has no JVM of it."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pyspark
import pytest
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from kafkacourse.ch11_spark_pipeline.reading import Reader
from kafkalab import Cluster, spark_session, wait_until
from kafkalab.cluster.ports import HOST, reserve_port
from kafkalab.distribution import spark_java_command
from kafkalab.errors import SparkFailed
from kafkalab.lifeline import Run, reap
from kafkalab.spark import kafka_options, kill_spark, show_progress
from kafkalab.spark.archive import archive_options, classpath
from kafkalab.spark.jvm import jvm_options
from kafkalab.spark.masters import reach
from kafkalab.spark.session import _DELTA
from pipeline_support import SCHEMAS, kept, prepare, send, settings_file
from small_registry import SmallRegistry
from support import PATIENCE, create, delete
from truck_pipeline import Lake, Pipeline, Settings, Trucks, answers
from truck_pipeline.__main__ import main
from truck_pipeline.checkpoint import CheckpointRefused
from truck_pipeline.lake import LakeGone
from truck_pipeline.tables import Tables

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Python for the server. Where it finds a file `fail` beside itself, it removes that and ends at once."""
    script = tmp_path_factory.mktemp("python") / "python"
    script.write_text(f'#!/bin/sh\nrm "{script.parent}/fail" 2>/dev/null && exit 1\nexec "{sys.executable}" "$@"\n')
    script.chmod(0o755)
    return script


@pytest.fixture(scope="module")
def server(python: Path) -> Iterator[str]:
    """The address of a Spark Connect server, as somebody has it elsewhere: it knows nothing of this process's settings."""
    run = Run.create("spark-connect")
    with reserve_port() as reserved:
        process = launch(run, reserved.port, python)
        address = f"sc://{HOST}:{reserved.port}"
        try:
            wait_until(lambda: process.poll() is not None or reach(address), PATIENCE, "the server", ignore=(SparkFailed,))
            yield address
        finally:
            begun = [process, *psutil.Process(process.pid).children(recursive=True)]
            reap(run)
            process.wait()
    assert not any(psutil.pid_exists(one.pid) for one in begun)


def launch(run: Run, port: int, python: Path) -> subprocess.Popen[bytes]:
    settings = {
        "spark.master": "local[2]",
        "spark.ui.enabled": "false",
        "spark.driver.host": HOST,
        "spark.driver.bindAddress": HOST,
        "spark.connect.grpc.binding.address": HOST,
        "spark.connect.grpc.binding.port": port,
        "spark.local.dir": run.directory / "local",
        "spark.sql.warehouse.dir": run.directory / "warehouse",
        **_DELTA,
    }
    environment = {
        "SPARK_LOCAL_IP": HOST,
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "PYSPARK_PYTHON": str(python),
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    (run.directory / "tmp").mkdir()
    with (run.directory / "spark.log").open("wb") as log:
        return subprocess.Popen(
            [
                spark_java_command(), *jvm_options("512m", run.directory / "tmp"), *archive_options(),
                *(f"-D{name}={value}" for name, value in settings.items()),
                "-cp", classpath(), "org.apache.spark.sql.connect.service.SparkConnectServer",
            ],
            stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, cwd=run.directory,
            env={**run.environment(), **environment}, start_new_session=True,
        )  # fmt: skip


@pytest.fixture
def spark(server: str, cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[SparkSession]:
    if SparkContext._active_spark_context:
        spark_session().stop()
    monkeypatch.setenv("KAFKALAB_SPARK_MASTER", server)
    yield spark_session(cluster, delta=True)
    spark_session().stop()
    # PySpark may leave it behind. A process that starts later would inherit it, and look for a server, too.
    os.environ.pop("SPARK_CONNECT_MODE_ENABLED", None)


def test_a_session(spark: SparkSession, server: str, cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    assert SparkContext._active_spark_context is None
    assert spark_session() is spark and spark_session(master=f"{server}/;user_id=somebody") is spark
    with pytest.raises(SparkFailed, match="runs elsewhere"):
        spark_session(master="local")
    with pytest.raises(SparkFailed, match=f"runs behind {server}"):
        kill_spark(spark)
    with Cluster(brokers=1, backend="local") as single:
        create(single, "t", 1, 1)
        stream = spark_session(single).readStream.format("kafka").options(**kafka_options(single)).option("subscribe", "t")
        query = stream.load().writeStream.format("memory").queryName("stops").start()
        assert show_progress(query) == 0 and query.isActive
    assert not query.isActive
    spark.stop()
    monkeypatch.setenv("KAFKALAB_SPARK_SETTINGS", '{"spark.sql.shuffle.partitions": 3}')
    another = spark_session()
    assert another is not spark and another.conf.get("spark.sql.shuffle.partitions") == "3"


def abandon(session: SparkSession) -> None:
    """As if its process had been killed: the server isn't told that it ends."""
    setattr(session, "release_session_on_close", False)  # of Spark Connect's
    session.stop()


def test_the_pipeline_agrees_with_the_ledger(
    spark: SparkSession,
    server: str,
    cluster: Cluster,
    postgresql_server: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Trucks get a new schema while it runs; it goes on from its checkpoint, and refuses one that isn't its own."""
    reports = Trucks(malformed=0.05).reports(300)
    wanted = answers(report.event for report in reports if report.event)
    schema = f"pipeline_{uuid.uuid4().hex[:8]}"
    with SmallRegistry() as registry:
        settings = Settings(
            kafka_options(cluster),
            registry.url,
            postgresql_server,
            str(tmp_path / "point"),
            schema,
            trigger="0 seconds",
            wait=5,
        )
        prepare(cluster, settings)
        pipeline = Pipeline(spark, settings).start()
        registry.schemas[7] = SCHEMAS[7]
        send(cluster, settings, reports[:100])
        pipeline.catch_up()
        registry.schemas[9] = SCHEMAS[9]
        send(cluster, settings, reports[100:200], schema=9)
        pipeline.catch_up()
        so_far = answers(report.event for report in reports[:200] if report.event)
        assert pipeline.tables.answers() == so_far
        reading = Reader(cluster.client_config()).read(pipeline)
        assert (reading.running, reading.events, reading.lag) == (True, so_far.events, 0)
        assert reading.latency and reading.state == so_far.events
        abandon(spark)

        spark = spark_session()
        assert not spark.streams.active  # it goes on all the same
        send(cluster, settings, reports[200:])
        again = Pipeline(spark, settings).start()
        again.catch_up()
        again.stop()
        assert again.tables.answers() == wanted
        with pytest.raises(PySparkException):
            pipeline.wait_for_end()
        whole = Tables(postgresql_server, f"{schema}_batch")
        monkeypatch.setenv("SPARK_REMOTE", server)
        monkeypatch.setenv("PIPELINE_DATABASE", postgresql_server)
        file = settings_file(
            tmp_path,
            {"bootstrap.servers": cluster.bootstrap_servers},
            registry={"url": registry.url},
            checkpoint={"folder": settings.checkpoint},
            database={"schema": f"{schema}_batch"},
        )
        main(["batch", "--settings", str(file)])
        assert whole.answers() == wanted

        def refused(error: type[Exception], said: str, **changed: object) -> None:
            with pytest.raises(error, match=said):
                Pipeline(spark, replace(settings, **changed)).start()

        point = Path(settings.checkpoint)
        before = kept(point)
        refused(CheckpointRefused, "belongs to another query: its window is 1 minute, not 2 minutes", window="2 minutes")
        refused(CheckpointRefused, "belongs to another query: it holds commits, ", checkpoint=f"{point}/stream")
        refused(LookupError, "there is no topic nowhere at", positions="nowhere")
        delete(cluster, settings.positions)
        create(cluster, settings.positions, 2)
        refused(CheckpointRefused, "belongs to a topic that was deleted")
        assert before == kept(point)
        note, *_ = (path for path in before if path.parent.name == "pipeline.json" and path.suffix == ".txt")
        note.write_text("{")
        refused(CheckpointRefused, "is damaged")
    for tables in (again.tables, whole):
        tables.drop()


def test_the_lake(spark: SparkSession, cluster: Cluster, python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first Python process that the server starts for it doesn't connect."""
    monkeypatch.setattr("truck_pipeline.writers.Writers.ask", lambda *_: SCHEMAS)
    settings = Settings(kafka_options(cluster), "none", "", str(tmp_path / "point"), positions="to_the_lake")
    create(cluster, settings.positions, 2)
    reports = Trucks(malformed=0.05).reports(200)
    lake = Lake(spark, settings, str(tmp_path / "lake"))
    with pytest.raises(LakeGone, match="no table bronze in"):
        lake.fill()
    lake.create()
    (failing := python.with_name("fail")).touch()
    for part in (reports[:100], reports[100:]):
        send(cluster, settings, part)
        lake.fill()
    assert not failing.exists()
    wanted = answers(report.event for report in reports if report.event)
    counts = {(int(row.starts.timestamp()), row.driverId): (row.events, row.dangerous) for row in lake.read("gold").collect()}
    assert counts == wanted.counts
    assert lake.read("bronze").count() == len(reports) and lake.read("silver").count() == wanted.events
    with pytest.raises(CheckpointRefused, match="doesn't know how far bronze is, but that table in .* isn't empty"):
        Lake(spark, replace(settings, checkpoint=str(tmp_path / "lost")), lake.folder).fill()

"""Spark beside a cluster: it starts, reads topics, shows progress, and leaves nothing behind."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Producer
from pyspark import SparkContext
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming import StreamingQuery

from kafkalab import Cluster, spark_session
from kafkalab.distribution import java_command
from kafkalab.errors import JavaError, KafkaLabError, SparkFailed, WaitTimeout
from kafkalab.lifeline import Run, reap
from kafkalab.spark import archive, jvm, kafka_options, kill_spark, require_running, show_progress
from kafkalab.spark.streaming import _page
from kafkalab.waiting import wait_until
from kafkalab.workers import LedgerProducer
from support import PATIENCE, create, put

pytestmark = pytest.mark.cluster

RECORDS = 300


@pytest.fixture(scope="module")
def topic(cluster: Cluster) -> str:
    """A topic of five partitions with `RECORDS` records."""
    create(cluster, "numbers", 5)
    producer = Producer(cluster.client_config(enable_idempotence=True))
    for number in range(RECORDS):
        producer.produce("numbers", value=str(number), partition=number % 5)
    assert producer.flush(PATIENCE) == 0
    return "numbers"


@pytest.fixture(scope="module")
def spark(cluster: Cluster) -> Iterator[SparkSession]:
    yield spark_session(cluster)
    spark_session().stop()


def test_a_session_fit_for_a_small_machine(spark: SparkSession) -> None:
    assert spark is spark_session()
    assert spark.version == "4.2.0"
    assert spark.sparkContext.defaultParallelism == 2
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"
    assert spark.sparkContext.uiWebUrl is None
    heap = spark.sparkContext._jvm.java.lang.Runtime.getRuntime().maxMemory()
    assert heap <= 512 << 20


def test_delta_is_asked_for_at_the_start(spark: SparkSession) -> None:
    with pytest.raises(SparkFailed, match="without Delta Lake: call its stop"):
        spark_session(delta=True)


def test_batch_over_a_topic(spark: SparkSession, cluster: Cluster, topic: str) -> None:
    records = spark.read.format("kafka").options(**kafka_options(cluster)).option("subscribe", topic).load()
    rows = records.groupBy("partition").agg(f.count("*"), f.sum(f.col("value").cast("string").cast("int"))).collect()
    assert {row[0]: (row[1], row[2]) for row in rows} == {p: (60, sum(range(p, RECORDS, 5))) for p in range(5)}


def test_python_functions_run_on_this_python(spark: SparkSession) -> None:
    version = f.udf(lambda _: sys.version, "string")
    assert {row.v for row in spark.range(2).select(version("id").alias("v")).collect()} == {sys.version}


def test_write_to_a_topic(spark: SparkSession, cluster: Cluster, topic: str) -> None:
    frame = spark.range(10).select(f.col("id").cast("string").alias("value"), f.lit("out").alias("topic"))
    create(cluster, "out", 1)
    frame.write.format("kafka").options(**kafka_options(cluster)).save()
    assert spark.read.format("kafka").options(**kafka_options(cluster)).option("subscribe", "out").load().count() == 10


def test_progress_of_a_stream(spark: SparkSession, cluster: Cluster, topic: str, capsys: pytest.CaptureFixture[str]) -> None:
    stream = (
        spark.readStream.format("kafka")
        .options(**kafka_options(cluster))
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", 100)
        .load()
    )
    query = stream.writeStream.format("memory").queryName("progress").start()
    try:
        assert show_progress(query) == RECORDS
        assert spark.table("progress").count() == RECORDS
        assert capsys.readouterr().out.count(": 100 records, ") == 3  # and not a rate that happens to be 100
        assert query.isActive  # it goes on with what comes
    finally:
        query.stop()


def test_progress_of_a_stream_while_more_comes(spark: SparkSession, cluster: Cluster) -> None:
    create(cluster, "busy", 2)
    with LedgerProducer(cluster, "busy", rate=200) as ledger:
        ledger.wait_for(100)
        stream = spark.readStream.format("kafka").options(**kafka_options(cluster)).option("subscribe", "busy")
        sink = stream.option("startingOffsets", "earliest").load().writeStream.format("memory").queryName("busy")
        query = sink.trigger(processingTime="1 second").start()  # else batch follows batch, each as dear as a large one
        before = ledger.acknowledged
        try:
            assert show_progress(query, timeout=PATIENCE) >= before
        finally:
            query.stop()


def test_progress_of_a_stream_that_ends(spark: SparkSession, cluster: Cluster, topic: str) -> None:
    stream = spark.readStream.format("kafka").options(**kafka_options(cluster)).option("subscribe", topic)
    sink = stream.option("startingOffsets", "earliest").load().writeStream.format("memory").queryName("ends")
    assert show_progress(sink.trigger(availableNow=True).start()) == RECORDS


def test_progress_of_a_stream_that_fails(spark: SparkSession, cluster: Cluster) -> None:
    stream = spark.readStream.format("kafka").options(**kafka_options(cluster)).option("subscribe", "no-such-topic")
    query = stream.load().writeStream.format("memory").queryName("fails").start()
    with pytest.raises(StreamingQueryException, match="UnknownTopicOrPartition"):
        show_progress(query)
    with pytest.raises(StreamingQueryException, match="UnknownTopicOrPartition"):
        wait_until(lambda: False, PATIENCE, "a row", unless=lambda: require_running(query))


def test_progress_gives_up(spark: SparkSession) -> None:
    endless = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
    query = endless.writeStream.format("memory").queryName("endless").trigger(processingTime="1 second").start()
    try:
        with pytest.raises(WaitTimeout, match="the query to process all"):
            show_progress(query, timeout=1.0)
        require_running(query)
    finally:
        query.stop()
    with pytest.raises(KafkaLabError, match="the query endless was stopped"):
        require_running(query)


def test_streams_stop_with_their_cluster(spark: SparkSession) -> None:
    with Cluster(brokers=1, backend="local") as single:
        create(single, "t", 1, 1)
        assert spark_session(single) is spark
        stream = spark.readStream.format("kafka").options(**kafka_options(single)).option("subscribe", "t").load()
        query = stream.writeStream.format("memory").queryName("stops").start()
        show_progress(query)
        assert query.isActive
    assert not query.isActive


def test_listens_on_loopback_only(spark: SparkSession) -> None:
    process = psutil.Process(SparkContext._gateway.proc.pid)
    listening = {c.laddr.ip for c in process.net_connections() if c.status == psutil.CONN_LISTEN}
    assert listening <= {"127.0.0.1", "::1", "::ffff:127.0.0.1"}


def test_a_session_after_stop_and_after_the_death_of_its_jvm(spark: SparkSession) -> None:
    spark.stop()
    assert not spark_session().sparkContext._jsc.sc().isStopped()
    process = psutil.Process(SparkContext._gateway.proc.pid)
    session = spark_session()
    kill_spark(session)
    assert not process.is_running()
    kill_spark(session)  # does no harm
    assert spark_session().range(4).count() == 4
    assert SparkContext._gateway.proc.pid != process.pid


def test_a_batch_that_runs_again_replaces_the_state_of_its_first_run(cluster: Cluster, tmp_path: Path) -> None:
    """Between the runs the query was changed. If the state of the first one stayed, repeats would come through later."""
    spark = spark_session()  # not the fixture's, whose JVM may have been killed
    create(cluster, "run_again", 1)
    source = {**kafka_options(cluster), "subscribe": "run_again", "startingOffsets": "earliest"}
    found: list[str] = []

    def keep(batch: DataFrame, _: int) -> None:
        found.extend(row.value for row in batch.collect())

    def fail(batch: DataFrame, _: int) -> None:
        batch.count()
        raise ValueError("after the state was stored")

    def start(value: str, sink: Callable[[DataFrame, int], None]) -> StreamingQuery:
        rows = spark.readStream.format("kafka").options(**source).load().selectExpr(f"{value} AS value", "timestamp")
        once = rows.withWatermark("timestamp", "1 minute").dropDuplicatesWithinWatermark(["value"])
        return once.writeStream.foreachBatch(sink).option("checkpointLocation", str(tmp_path)).start()

    put(cluster, "run_again", [(None, b"a", 0)])
    with pytest.raises(StreamingQueryException):
        start("concat('broken', CAST(value AS STRING))", fail).processAllAvailable()
    for _ in range(2):
        query = start("CAST(value AS STRING)", keep)
        query.processAllAvailable()
        query.stop()
        put(cluster, "run_again", [(None, b"a", 0)])
    assert found == ["a"]


def test_nothing_is_left_when_the_kernel_is_killed(tmp_path: Path) -> None:
    code = (
        "from kafkalab import spark_session; from kafkalab.spark import session; spark_session().range(3).count()\n"
        "from pyspark import SparkContext; print(SparkContext._gateway.proc.pid, session._run.directory, flush=True)\n"
        "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, cwd=tmp_path)
    pid, folder = done.stdout.split()
    wait_until(lambda: not psutil.pid_exists(int(pid)) and not Path(folder).exists(), PATIENCE, "Spark to be gone")
    assert list(tmp_path.iterdir()) == []
    assert done.stderr == ""  # and it was quiet


def test_java_that_does_not_suit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafkalab.distribution.java.java_version", lambda java: 25)
    run = Run.create("test")
    try:
        with pytest.raises(JavaError, match="Spark 4.2 runs on Java 17 to 23, .* names Java 25"):
            jvm.start_jvm(run, "512m")
    finally:
        reap(run)


def test_jvm_that_does_not_start() -> None:
    run = Run.create("test")
    try:
        with pytest.raises(SparkFailed, match="Invalid maximum heap size"):
            jvm.start_jvm(run, "nonsense")
    finally:
        reap(run)


def test_archive_follows_the_jars(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KAFKALAB_CACHE", str(tmp_path))
    jar = tmp_path / "a.jar"
    jar.write_text("a")
    monkeypatch.setattr(archive, "_jars", lambda: [jar])
    before = archive.spark_archive().folder
    assert archive.spark_archive().folder == before
    assert archive.archive_options() == []
    os.utime(jar, (1, 1))
    assert archive.spark_archive().folder != before


def test_an_archive_that_java_takes() -> None:
    """As a rule the one that `kafkalab fetch` made, just before all tests."""
    archive.spark_archive().make(archive.classpath())
    built = archive.spark_archive().path
    check = [str(java_command()), f"-XX:SharedArchiveFile={built}", "-Xshare:on", "-cp", archive.classpath(), "-version"]
    done = subprocess.run(check, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(path.name for path in built.parent.iterdir()) == ["checksum.json", "classes.jsa", "jars"]


def test_an_archive_outlives_the_clone_that_made_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Java looks for the jars under the names that they had then: another clone finds them there, too."""
    monkeypatch.setenv("KAFKALAB_CACHE", str(tmp_path / "cache"))
    clones = [tmp_path / name / "a.jar" for name in ("one", "two")]
    for jar in clones:
        jar.parent.mkdir()
        jar.write_text("a")
        os.utime(jar, (1, 1))
    names = []
    for jar in clones:
        monkeypatch.setattr(archive, "_jars", lambda jar=jar: [jar])
        names.append(archive.classpath())
        assert Path(names[-1]).read_text() == "a"
        shutil.rmtree(jar.parent)
    assert names[0] == names[1]


def test_page_of_progress() -> None:
    batch = {"batchId": 0, "numInputRows": 1200, "processedRowsPerSecond": float("nan")}
    page = _page([batch, {"batchId": 1, "numInputRows": 600, "processedRowsPerSecond": 52.4}], True)
    assert "1,800 records in 2 batches, all processed" in page
    assert "width:160px" in page and "width:80px" in page
    assert "52 records/s" in page
    assert "nan" not in page
    assert "0 records in 0 batches, running" in _page([], False)

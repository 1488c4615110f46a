"""Recording what Spark loads: a session and the usual kinds of query run once, and their classes go into the archive."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from kafkalab.cluster import Cluster
from kafkalab.distribution import Report, made_by_one
from kafkalab.errors import KafkaLabError
from kafkalab.spark.archive import build_archive, spark_archive

__all__ = ["train_archive"]

_TOPIC = "spark-archive-training"
_RECORDS = 20


def train_archive(report: Report | None = None) -> Path:
    """Run Spark over a topic, and build the class-data archive from what it loaded.

    On return every later `spark_session` uses the archive. If another process builds it just now, this one waits for that.

    Parameters
    ----------
    report
        Told which step is under way.

    Returns
    -------
    Path
        The archive.

    Raises
    ------
    KafkaLabError
        When Spark fails; the message holds its last lines.
    """
    archive = spark_archive()
    with made_by_one(archive.folder, "Spark's class-data archive", report):
        return archive.path if archive.is_whole(thoroughly=True) else _train(report)


def _train(report: Report | None) -> Path:
    steps = ("starting a broker with a topic", "running Spark to see what it loads", "writing Spark's class-data archive")

    def step(number: int) -> None:
        if report:
            report(steps[number], number, len(steps))

    with tempfile.TemporaryDirectory() as folder:
        classes = Path(folder, "spark.classes")
        step(0)
        with Cluster(brokers=1, backend="local", name="training") as cluster:
            _fill_topic(cluster)
            step(1)
            done = subprocess.run(  # a process of its own: this one may have a session already
                [sys.executable, "-m", __name__, cluster.bootstrap_servers, str(classes)],
                cwd=folder,
                env=cluster.run.environment(),
                check=False,
                capture_output=True,
                text=True,
            )
        if done.returncode != 0:
            raise KafkaLabError(f"Spark failed while its classes were recorded: {done.stderr[-1000:]}")
        step(2)
        return build_archive(classes)


def _fill_topic(cluster: Cluster) -> None:
    admin = AdminClient(cluster.client_config())
    admin.create_topics([NewTopic(_TOPIC, 2, 1)])[_TOPIC].result(timeout=30)
    producer = Producer(cluster.client_config())
    for number in range(_RECORDS):
        producer.produce(_TOPIC, key=str(number), value=json.dumps({"seq": number}))
    producer.flush(30)


def _run(bootstrap_servers: str, classes: Path) -> None:
    from pyspark.sql import functions as f

    from kafkalab.spark.session import jvm_process, kafka_source_options, start_session

    # Classes that come from an older archive would not be recorded.
    session = start_session("training", jvm_options=("-Xshare:off", f"-XX:DumpLoadedClassList={classes}"))
    options = {**kafka_source_options(bootstrap_servers), "subscribe": _TOPIC, "startingOffsets": "earliest"}
    records = session.read.format("kafka").options(**options).load()
    parsed = records.select("partition", f.from_json(f.col("value").cast("string"), "seq long").alias("v"), "timestamp")
    records.groupBy("partition").count().orderBy("partition").show()
    ledger = classes.with_suffix(".jsonl")
    ledger.write_text("".join(json.dumps({"seq": number, "at": 0.5}) + "\n" for number in range(_RECORDS)))
    expected = session.read.json(str(ledger))
    expected.join(parsed, expected["seq"] == f.col("v.seq"), "left_anti").count()
    parsed.groupBy(f.window("timestamp", "1 second")).agg(f.countDistinct("v.seq")).collect()
    session.createDataFrame([(1, "a")], "id int, name string").toPandas()
    stream = session.readStream.format("kafka").options(**options).load()
    counts = stream.groupBy("partition").count().writeStream.outputMode("complete").trigger(availableNow=True)
    counts.format("memory").queryName("training").start().awaitTermination()
    session.table("training").collect()
    process = jvm_process(session)
    session.stop()
    assert process.stdin is not None
    process.stdin.close()  # a JVM writes its list when it ends in order
    process.wait(60)


if __name__ == "__main__":
    _run(sys.argv[1], Path(sys.argv[2]))

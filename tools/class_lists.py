#!/usr/bin/env python3
"""Record which classes Kafka, its tools, Spark and the schema registry load, for class-data archives.

A cluster, the tools, a few queries and a registry run once, and each JVM writes down what it loads. `kafkalab fetch` lays
these classes out on each machine. Record them anew when a version in the lock has changed; an older list does no harm, but
what it doesn't name is loaded slowly.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

import kafkalab.distribution
from kafkalab import Cluster
from kafkalab.distribution import announce, install_tools
from kafkalab.environment import JAVA_OPTIONS
from kafkalab.services.apicurio import ApicurioServer, prepare

RECORDED = Path(kafkalab.distribution.__file__).with_name("recorded")
TOPIC = "class-lists"
RECORDS = 20

# The tools of the lessons; each line runs one.
COMMANDS = (
    f"kafka-topics --create --topic {TOPIC} --partitions 3 --replication-factor 2",
    "kafka-topics --list",
    f"kafka-topics --describe --topic {TOPIC}",
    f"kafka-producer-perf-test --topic {TOPIC} --num-records {RECORDS} --record-size 10 --throughput -1",
    f"kafka-console-consumer --topic {TOPIC} --from-beginning --max-messages {RECORDS} --group training --timeout-ms 20000",
    "kafka-consumer-groups --describe --group training",
    f"kafka-configs --describe --entity-type topics --entity-name {TOPIC}",
    "kafka-metadata-quorum describe --status",
    f"kafka-leader-election --election-type preferred --topic {TOPIC} --partition 0",
    f"kafka-get-offsets --topic {TOPIC}",
)


@contextmanager
def recorded(name: str) -> Iterator[None]:
    """Write the list of this name from the classes that JVMs load which start and end within."""
    with tempfile.TemporaryDirectory() as folder:
        # Said last, so it counts. From an archive, classes aren't recorded.
        os.environ[JAVA_OPTIONS] = f"-Xshare:off -XX:DumpLoadedClassList={folder}/%p.classes"
        try:
            yield
        finally:
            del os.environ[JAVA_OPTIONS]
        lists = sorted(Path(folder).glob("*.classes"))
        lines = dict.fromkeys(line for path in lists for line in portable_lines(path.read_text()))
    text = "\n".join(lines) + "\n"
    (RECORDED / f"{name}.txt.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    print(f"{name}: {len(lines):,} lines from {len(lists)} JVMs")


def portable_lines(class_list: str) -> Iterator[str]:
    """Lines without class ids, which count per JVM, and without classes of other loaders, which only ids can name."""
    for line in class_list.splitlines():
        if line and not line.startswith("#") and " source: " not in line:
            yield re.sub(r" id: \d+$", "", line)


def run_kafka() -> None:
    """A cluster of three, and the tools."""
    with Cluster(backend="local") as cluster:
        tools = install_tools()
        for command in COMMANDS:
            name, *arguments = command.split()
            subprocess.run([tools / name, "--bootstrap-server", cluster.bootstrap_servers, *arguments], check=True, timeout=120)
        for broker in (0, 1):  # a JVM writes its list when it ends in order, for which the cluster needs a majority
            cluster.stop_broker(broker)


def run_spark(cluster: Cluster) -> None:
    """The usual kinds of query, in a process that starts Spark anew."""
    admin = AdminClient(cluster.client_config())
    admin.create_topics([NewTopic(TOPIC, 2, 1)])[TOPIC].result(timeout=30)
    producer = Producer(cluster.client_config())
    for number in range(RECORDS):
        producer.produce(TOPIC, key=str(number), value=json.dumps({"seq": number}))
    producer.flush(30)
    subprocess.run([sys.executable, __file__, "spark", cluster.bootstrap_servers], check=True)


def query(bootstrap_servers: str) -> None:
    """Ask what the lessons ask."""
    from pyspark.sql import functions as f

    from kafkalab.spark.session import jvm_process, kafka_source_options, start_session

    session = start_session("training")
    options = {**kafka_source_options(bootstrap_servers), "subscribe": TOPIC, "startingOffsets": "earliest"}
    records = session.read.format("kafka").options(**options).load()
    parsed = records.select("partition", f.from_json(f.col("value").cast("string"), "seq long").alias("v"), "timestamp")
    records.groupBy("partition").count().orderBy("partition").show()
    with tempfile.TemporaryDirectory() as folder:
        ledger = Path(folder, "ledger.jsonl")
        ledger.write_text("".join(json.dumps({"seq": number, "at": 0.5}) + "\n" for number in range(RECORDS)))
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


def run_registry(cluster: Cluster) -> None:
    """A schema registry, until it answers."""
    server = ApicurioServer(cluster, 0, cluster.nodes.run.directory / "registry", announce)
    try:
        server.prepare()
        server.begin()
        server.await_ready(server.answers, 120)
        server.end()
    finally:
        server.destroy()


def main() -> None:
    """Record all three."""
    if sys.argv[1:2] == ["spark"]:
        query(sys.argv[2])
        return
    prepare(announce)
    with recorded("kafka"):
        run_kafka()
    with Cluster(1, backend="local") as cluster:
        with recorded("spark"):
            run_spark(cluster)
        with recorded("registry"):
            run_registry(cluster)


if __name__ == "__main__":
    main()

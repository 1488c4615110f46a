"""``make bench``: the course's figures, measured on this machine, as a table.

Each figure is the median of several rounds, with the smallest and the largest. Where a ratio is measured, both sides were
measured in the same run, by turns. ``python tools/bench.py ROW …`` measures only the rows whose names contain a ROW.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import psutil
from confluent_kafka import AcknowledgeType, Consumer, KafkaException, Producer, ShareConsumer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

import bench_executors
import bench_pipeline
import bench_state
from bench_figures import LONG_RUNNING, Measured, create, figures, local, long_running_session, memory, timed
from kafkacourse.rates import transaction_rate
from kafkalab import Cluster, ConnectCluster, ConsoleConsumer, LogMicroscope, SchemaRegistry, StreamsApp, wait_until
from kafkalab.cluster import Listener
from kafkalab.distribution import TOOLS, classpath, java_command, tools_dir
from kafkalab.errors import BackendUnavailable, StreamsFailed
from kafkalab.lifeline import marked_processes
from kafkalab.security import Security
from kafkalab.spark import kafka_options
from kafkalab.workers import wait_until_shared
from memory_watch import MemoryWatch, memory_limit

ROOT = Path(__file__).parent.parent
TOPIC = "bench"

# A JVM as it comes, for comparison.
PLAIN = ("-Xmx256m", "-Xss1m", "-XX:-UseSerialGC", "-XX:+UseG1GC", "-XX:TieredStopAtLevel=4", "-XX:+UsePerfData", "-Xshare:off")
# As Kafka's own scripts start it; the course's is made to start fast.
AS_KAFKA_DOES = ("-Xmx512M", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35")

RECORD = b"x" * 100
READ, READ_PARTITIONS = 2_000_000, 4
WARM_UP, COUNTED = 300_000, 1_000_000  # records
PRODUCER = {"acks": "all", "batch.size": 65536, "linger.ms": 10}


def output(command: list[str]) -> str:
    """What a command that succeeds prints."""
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@contextmanager
def three_brokers(**how: Any) -> Iterator[Cluster]:
    """A cluster with the topic, whose replicas are in sync."""
    with local(3, **how) as cluster:
        create(cluster, TOPIC, 13, 3)
        yield cluster


# -- brokers and tools ------------------------------------------------------------------------------------------------------


def start() -> Measured:
    """Start and topic, lesson JVMs and plain ones by turns; the memory of the lesson's brokers."""
    for _ in range(5):
        began = time.perf_counter()
        with three_brokers() as cluster:
            yield "three brokers and a topic with RF 3, local", "≤ 4 s", (seconds := time.perf_counter() - began)
            brokers = [process.pid for process in marked_processes(cluster.nodes.run.id) if process.name() == "java"]
            yield "memory of the three brokers (PSS)", "≤ 480 MB", sum(map(memory, brokers))
        began = time.perf_counter()
        with three_brokers(java_options=PLAIN):
            yield "the same, of the time with plain JVMs", "≤ 0.4 ×", seconds / (time.perf_counter() - began)


def tool() -> Measured:
    """``kafka-topics --list`` as installed and with a plain JVM, by turns."""
    with three_brokers() as cluster:
        arguments = ["--bootstrap-server", cluster.bootstrap_servers, "--list"]
        plain = [str(java_command()), *PLAIN, "-cp", classpath(), TOOLS["kafka-topics"], *arguments]
        for _ in range(7):
            yield (
                "kafka-topics --list",
                "≤ 0.8 s",
                (seconds := timed(output, [str(tools_dir() / "kafka-topics.sh"), *arguments])),
            )
            yield "the same, of the time with a plain JVM", "≤ 0.6 ×", seconds / timed(output, plain)


def failover() -> Measured:
    """Kill a leader until all that it led is led elsewhere; restart it until all replicas are in sync."""
    with three_brokers() as cluster:
        election = [str(tools_dir() / "kafka-leader-election"), "--bootstrap-server", cluster.bootstrap_servers]
        for number in range(10):
            controller = cluster.describe(groups=False).controller
            victim = controller if number % 2 else (controller + 1) % 3
            kind = "leader that is also the active controller" if number % 2 else "leader"
            began = time.perf_counter()
            cluster.kill(victim)
            cluster.wait_for(lambda v, lost=victim: not {lost, None} & set(v.leaders(TOPIC).values()), "new leaders", 60)
            yield f"{kind} killed → led elsewhere", "≤ 3 s", time.perf_counter() - began
            began = time.perf_counter()
            cluster.restart(victim)
            cluster.wait_for(lambda v: v.in_sync(TOPIC), "all replicas in sync", 120)
            yield "restart → all replicas in sync", "≤ 6 s", time.perf_counter() - began
            # Leaders go back to where they were, so that every victim leads something.
            output([*election, "--election-type", "preferred", "--all-topic-partitions"])
            cluster.wait_for(lambda v: all(p.leader == p.replicas[0] for p in v.topics[TOPIC]), "preferred leaders", 60)


def docker() -> Measured:
    """Three brokers on Docker, where it can be used."""
    try:
        for _ in range(5):
            cluster = Cluster(3, backend="docker")
            yield "three brokers on Docker, image present", "≤ 7 s", timed(cluster.start)
            cluster.stop()
    except BackendUnavailable as reason:
        print(f"left out: docker: {reason}", file=sys.stderr)


def microscope() -> Measured:
    """A log of 10,000 records under the microscope: from a record acknowledged to the record drawn."""
    with three_brokers() as cluster:
        producer = Producer(cluster.client_config(enable_idempotence=True, linger_ms=0))
        for number in range(10_000):
            producer.produce(TOPIC, f"value {number}", partition=0)
        producer.flush()
        segments = LogMicroscope(cluster, TOPIC).widget.children[-1]
        for number in range(15):
            producer.produce(TOPIC, value := f"new {number}", partition=0)
            producer.flush()
            began = time.perf_counter()
            wait_until(lambda value=value: value in segments.value, 10, "the record to be drawn", interval=0.01)
            yield "log microscope: a record written → seen, among 10,000", "≤ 0.5 s", time.perf_counter() - began


# -- producers and consumers ------------------------------------------------------------------------------------------------


def perf_test(client: str, cluster: Cluster, options: str) -> str:
    """What Kafka's measuring tool for producers or consumers prints."""
    command = [str(java_command()), *AS_KAFKA_DOES, "-cp", classpath(), TOOLS[f"kafka-{client}-perf-test"]]
    return output([*command, "--bootstrap-server", cluster.bootstrap_servers, "--topic", TOPIC, *options.split()])


def reading() -> Measured:
    """Two million records on one broker, read by turns: Kafka's own tool, Python, Spark's batch and stream.

    Python and Spark are warm. The tool is a new JVM each time, as it is for whoever calls it; its start and its joining of a
    group are not counted.
    """
    bounds = {
        "Python": ("Python, of the records/s of kafka-consumer-perf-test", "≥ 0.5 ×"),
        "Spark batch": ("Spark batch, of the same", "≥ 0.55 ×"),
        "Spark streaming": ("Spark streaming (availableNow), of the same", "≥ 0.4 ×"),
    }
    with local(1) as cluster, tempfile.TemporaryDirectory() as folder:
        create(cluster, TOPIC, READ_PARTITIONS, 1)
        perf_test("producer", cluster, f"--num-records {READ} --record-size {len(RECORD)} --throughput -1")
        spark = long_running_session()
        spark.conf.set("spark.sql.sources.useV1SourceList", "")  # else a batch goes the old way, with an object per row
        readers: dict[str, Callable[[], float]] = {
            "Kafka's tool": lambda: read_with_tool(cluster),
            "Python": lambda: READ / timed(lambda: read_all(reader(cluster, READ_PARTITIONS), READ)),
            "Spark batch": lambda: READ / timed(read_with_batch, spark, cluster),
            "Spark streaming": lambda: READ / timed(read_with_stream, spark, cluster, folder),
        }
        for read in readers.values():
            for _ in range(5):
                read()  # warm-up: the second compiler takes its time
        for _ in range(5):
            speeds = {name: read() for name, read in readers.items()}
            for name, (what, bound) in bounds.items():
                yield f"reading: {what}", bound, speeds[name] / speeds["Kafka's tool"]
            for name, speed in speeds.items():
                yield f"reading: {name}", "records/s", speed
        spark.stop()


def read_with_tool(cluster: Cluster) -> float:
    """Records per second, as the tool itself says: from the first fetch to the last."""
    printed = perf_test("consumer", cluster, f"--messages {READ} --timeout 30000")
    header, numbers = (line.split(", ") for line in printed.splitlines()[-2:])
    columns = dict(zip(header, numbers, strict=True))
    assert int(columns["data.consumed.in.nMsg"]) >= READ, columns
    return float(columns["fetch.nMsg.sec"])


def reader(cluster: Cluster, partitions: int, *who: str) -> Consumer:
    """A consumer at the beginning of the topic's partitions."""
    # By default librdkafka waits a second when 100,000 records lie ready, even if they are taken in less.
    settings = cluster.client_config(*who, group_id="bench", enable_auto_commit=False, fetch_queue_backoff_ms=5)
    consumer = Consumer(settings)
    consumer.assign([TopicPartition(TOPIC, partition, 0) for partition in range(partitions)])
    return consumer


def read_all(consumer: Consumer, records: int) -> None:
    """Read so many records. A batch of 1,000 proved best: smaller ones cost more calls, larger ones don't fit into the cache."""
    count = 0
    while count < records:
        count += len(consumer.consume(min(1000, records - count), timeout=1))
    consumer.close()


def spark_options(cluster: Cluster) -> dict[str, str]:
    """What both of Spark's readers say."""
    return {**kafka_options(cluster), "kafka.max.poll.records": "10000", "subscribe": TOPIC, "startingOffsets": "earliest"}


def read_with_batch(spark: SparkSession, cluster: Cluster) -> None:
    """Read them in a batch, and look at each: add up the lengths of their values."""
    frame = spark.read.format("kafka").options(**spark_options(cluster)).load()
    assert frame.selectExpr("sum(length(value))").first()[0] == len(RECORD) * READ


def read_with_stream(spark: SparkSession, cluster: Cluster, folder: str) -> None:
    """Read them as a stream that ends, into nothing, with a checkpoint of its own."""
    frame = spark.readStream.format("kafka").options(**spark_options(cluster)).load()
    writer = frame.writeStream.format("noop").trigger(availableNow=True)
    query = writer.option("checkpointLocation", f"{folder}/{time.time_ns()}").start()
    query.awaitTermination()
    assert sum(progress["numInputRows"] for progress in query.recentProgress) == READ


def producer() -> Measured:
    """confluent-kafka against Kafka's own measuring tool, by turns: same record, acks, batch and linger, both warmed up."""
    for brokers, where in ((1, "1 broker, RF 1"), (3, "3 brokers, RF 3")):
        with local(brokers) as cluster:
            for _ in range(5):
                with new_topic(cluster, brokers):
                    java = java_rate(cluster)
                with new_topic(cluster, brokers):
                    python = python_rate(cluster)
                yield f"producer, {where}: Python, of the records/s of kafka-producer-perf-test", "≥ 0.8 ×", python / java
                yield f"producer, {where}: Python", "records/s", python
                yield f"producer, {where}: Java", "records/s", java


@contextmanager
def new_topic(cluster: Cluster, replicas: int) -> Iterator[None]:
    """A topic that is empty before, and must hold all records afterwards."""
    create(cluster, TOPIC, 3, replicas)
    yield
    with Consumer(cluster.client_config(group_id="bench")) as consumer:
        records = sum(consumer.get_watermark_offsets(TopicPartition(TOPIC, p), timeout=10)[1] for p in range(3))
    assert records == WARM_UP + COUNTED, f"the topic holds {records} records"
    admin = AdminClient(cluster.client_config())
    admin.delete_topics([TOPIC])[TOPIC].result()
    cluster.wait_for(lambda v: TOPIC not in v.topics, "the topic to be gone")


def java_rate(cluster: Cluster) -> float:
    """Records a second of ``kafka-producer-perf-test``, those of the warm-up left out."""
    with tempfile.NamedTemporaryFile("wb", suffix=".txt") as payload:
        payload.write(RECORD)  # to make a random one costs the tool more than to send it
        payload.flush()
        options = f"--num-records {WARM_UP + COUNTED} --warmup-records {WARM_UP} --throughput -1 --payload-file {payload.name}"
        properties = " ".join(f"{key}={value}" for key, value in PRODUCER.items())
        printed = perf_test("producer", cluster, f"{options} --command-property {properties}")
    [steady] = re.findall(r"^\d+ steady state records sent, ([\d.]+) records/sec", printed, re.MULTILINE)
    return float(steady)


def python_rate(cluster: Cluster, *who: str) -> float:
    """Records a second of a producer in Python that has its values ready and hears of nothing but the end."""
    settings = {**PRODUCER, "enable.idempotence": True, "queue.buffering.max.messages": 500_000}
    sender = Producer({**cluster.client_config(*who), **settings})
    send(sender, WARM_UP)
    return COUNTED / timed(send, sender, COUNTED)


def send(sender: Producer, count: int, keys: int = 0) -> None:
    """Send records of 100 bytes without keys, or of 10 whose keys take turns, and wait until all are acknowledged."""
    produce, value = sender.produce, b"0123456789" if keys else RECORD
    for number in range(count):
        key = str(number % keys) if keys else None
        try:
            produce(TOPIC, value, key)
        except BufferError:
            while len(sender) > 250_000:
                sender.poll(0.01)
            produce(TOPIC, value, key)
    sender.flush()


def tls() -> Measured:
    """A producer and a consumer over TLS, of what the same ones reach in plain text on the same broker, by turns.

    The broker has Java's better compiler: without it, as in the lessons, Java's encryption is several times slower.
    """
    listeners = [Listener(), Listener("SSL", "SSL")]
    with local(1, listeners=listeners, security=Security(authorizer=False), java_options=(*LONG_RUNNING, "-Xmx1g")) as cluster:
        for number in range(6):
            rates = []
            for listener in ("PLAINTEXT", "SSL"):
                who = ("bench", listener)  # its certificate; in plain text it is nobody
                with new_topic(cluster, 1):
                    sent = python_rate(cluster, *who)
                    rates.append((sent, 1 / timed(read_all, reader(cluster, 3, *who), WARM_UP + COUNTED)))
            if number:  # the first round is a warm-up
                (plain_sent, plain_read), (sent, read) = rates
                yield "producer over TLS, of its records/s in plain text", "×", sent / plain_sent
                yield "consumer over TLS, of its records/s in plain text", "×", read / plain_read


def transactions() -> Measured:
    """Records a second without transactions, and in transactions of several sizes, by turns."""
    with three_brokers() as cluster:
        without = Producer(cluster.client_config(enable_idempotence=True))
        producers = {size: Producer(cluster.client_config(transactional_id=f"bench-{size}")) for size in (1, 10, 100, 1000)}
        for one in producers.values():
            one.init_transactions()
        for _ in range(5):
            yield "producer without transactions", "records/s", transaction_rate(without, TOPIC, None)
            for size, one in producers.items():
                yield f"the same, {size:,} records per transaction", "records/s", transaction_rate(one, TOPIC, size)


# -- groups -----------------------------------------------------------------------------------------------------------------


def rebalance() -> Measured:
    """Kill one of three members of a group until the other two have its partitions, under both protocols by turns."""
    what = {
        "classic": "member killed → its partitions taken over, classic protocol",
        "consumer": "the same, new protocol (KIP-848)",
    }
    # With the new protocol the broker says after how long a member counts as dead: as long as with the classic one here.
    as_patient = {"group.consumer.min.session.timeout.ms": 1000, "group.consumer.session.timeout.ms": 3000}
    as_patient |= {"group.consumer.min.heartbeat.interval.ms": 100, "group.consumer.heartbeat.interval.ms": 500}
    with three_brokers(settings=as_patient) as cluster:
        for number in range(5):
            for protocol in what:
                group = f"{protocol}-{number}"
                members = [ConsoleConsumer(cluster, TOPIC, group=group, group_protocol=protocol) for _ in range(3)]
                wait_until_shared(*members, timeout=60)
                members.pop().kill()
                began = time.perf_counter()
                wait_until_shared(*members, timeout=60)
                yield what[protocol], "≤ 6 s", time.perf_counter() - began
                for member in members:
                    member.close()


JOBS, WORKERS, JOB_SECONDS = 20, 4, 0.5


def share() -> Measured:
    """Twenty jobs of half a second on one partition, four workers: a classic consumer group and a share group by turns."""
    impatient = {f"group.share.{which}heartbeat.interval.ms": 500 for which in ("", "min.")}
    with local(1, settings=impatient) as cluster:
        for number in range(5):
            classic, shared = (timed_jobs(cluster, f"{kind}-{number}", kind == "share") for kind in ("classic", "share"))
            yield "share group, faster than a classic group: 20 jobs of 0.5 s, 4 workers", "≥ 3 ×", classic / shared


def timed_jobs(cluster: Cluster, group: str, shared: bool) -> float:
    """Seconds from the first job sent to the last one done. Before that, the group has done some jobs.

    Its first ones come late: members hear of their assignment with a heartbeat, and a share group's state is made when it begins.
    """
    create(cluster, group, 1, 1)
    if shared:
        begin = ConfigEntry("share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.GROUP, group, incremental_configs=[begin])
        admin = AdminClient(cluster.client_config())
        admin.incremental_alter_configs([resource])[resource].result()
    done, ending, threads = set[bytes](), threading.Event(), ThreadPoolExecutor(WORKERS)
    members = [threads.submit(work, cluster, group, shared, done, ending) for _ in range(WORKERS)]
    sender = Producer(cluster.client_config())

    def look() -> Any:
        return cluster.nodes.share_group(group) if shared else cluster.describe().groups.get(group)

    def complete() -> bool:
        return (view := look()) is not None and view.state == "Stable" and len(view.members) == WORKERS

    def none_failed() -> None:
        for member in members:
            if member.done():
                member.result()  # raises what the member raised

    def do(jobs: range) -> None:
        for number in jobs:
            sender.produce(group, f"job {number}")
            sender.flush()  # a batch each: a broker hands out whole batches
        wait_until(lambda: len(done) == jobs.stop, 120, "all jobs", last_seen=lambda: done, unless=none_failed, interval=0.01)

    try:
        wait_until(complete, 60, "the members", last_seen=look, unless=none_failed)
        do(range(WORKERS))
        return timed(do, range(WORKERS, WORKERS + JOBS))
    finally:
        ending.set()
        threads.shutdown()
        none_failed()


def work(cluster: Cluster, group: str, shared: bool, done: set[bytes], ending: threading.Event) -> None:
    """A member of a group."""
    own: dict[str, Any] = {"auto_offset_reset": "earliest", "enable_auto_commit": False}
    if shared:
        own = {"share_acknowledgement_mode": "explicit", "max_poll_records": 1}
    with (ShareConsumer if shared else Consumer)(cluster.client_config(group_id=group, **own)) as consumer:
        consumer.subscribe([group])
        while not ending.is_set():
            for record in consumer.poll(0.1) if shared else consumer.consume(1, 0.1):
                if (error := record.error()) is not None:
                    raise KafkaException(error)
                ending.wait(JOB_SECONDS)
                done.add(record.value())
                if shared:
                    consumer.acknowledge(record, AcknowledgeType.ACCEPT)
                else:
                    consumer.commit(record, asynchronous=False)
            # An error or None for each partition.
            for error in consumer.commit_sync(10).values() if shared else ():
                if error is not None:
                    raise error


# -- services ---------------------------------------------------------------------------------------------------------------


def registry() -> Measured:
    """A schema registry that has been prepared before: its start, its start with schemas in its topic, its memory."""
    with local(3) as cluster:
        SchemaRegistry(cluster).start().stop()  # downloads and prepares it, the first time
        for _ in range(5):
            server = SchemaRegistry(cluster)
            yield "schema registry started, warm", "≤ 8 s", timed(server.start)
            server.kill()
            yield "the same, after it was killed", "≤ 8 s", timed(server.restart)
            yield "memory of the schema registry (RSS)", "≤ 300 MB", server.memory() / 1e6
            server.stop()


def connect() -> Measured:
    """A worker of Kafka Connect whose jars and archive are there, and a connector that reads a file."""
    with local(1) as cluster, tempfile.NamedTemporaryFile("w") as source:
        ConnectCluster(cluster).start().stop()  # downloads and prepares it, the first time
        for number in range(5):
            workers = ConnectCluster(cluster, settings={"group.id": f"bench-{number}"})
            yield "Connect worker ready, warm", "≤ 4 s", timed(workers.start)
            name, config = f"file-{number}", {"connector.class": "FileStreamSource", "file": source.name, "topic": TOPIC}
            began = time.perf_counter()
            body = json.dumps({"name": name, "config": config}).encode()
            urlopen(Request(f"{workers.url}/connectors", body, {"Content-Type": "application/json"}), timeout=60).close()
            workers.wait_until_running(name)
            yield "connector and task RUNNING after POST", "≤ 2 s", time.perf_counter() - began
            yield "memory of the worker (PSS)", "≤ 220 MB", memory(workers.workers[0].pid)
            workers.stop()


# -- Kafka Streams ----------------------------------------------------------------------------------------------------------


def counting(builder: Any) -> None:
    """A topology without Python: Kafka Streams runs it as if it were written in Java."""
    builder.stream("bench").groupByKey().count()


def counting_in_python(builder: Any) -> None:
    """The same with a Python function that sees each record."""
    builder.stream("bench").filter(lambda key, value: value is not None).groupByKey().count()


def latest(builder: Any) -> None:
    """A table of all keys, in a store with a changelog."""
    from org.apache.kafka.streams.kstream import Materialized

    builder.stream("bench").toTable(Materialized.as_("latest"))


def make_keyed_topic(cluster: Cluster, records: int, keys: int) -> Producer:
    """A topic with one partition and so many records, whose keys take turns; the producer that sent them."""
    create(cluster, TOPIC, 1, 1)
    sender = Producer({**cluster.client_config(), **PRODUCER, "queue.buffering.max.messages": 500_000})
    send(sender, records, keys)
    return sender


def wait_for_commit(cluster: Cluster, group: str, records: int) -> int:
    """Wait until a group has committed at least so many records of the topic; how many these are."""
    with Consumer(cluster.client_config(group_id=group)) as consumer:

        def committed() -> int:
            [place] = consumer.committed([TopicPartition(TOPIC, 0)], timeout=30)
            return place.offset

        return wait_until(lambda: (so_far := committed()) >= records and so_far, 300, f"{records} records", interval=0.01)


def streams_rate() -> Measured:
    """Records of 1000 keys counted by an application of Kafka Streams, without a Python function and with one, by turns."""
    with local(1) as cluster:
        make_keyed_topic(cluster, 1_000_000, keys=1000)

        def rate(topology: Callable[[Any], None], group: str, records: int) -> float:
            """Records a second, from the group's first commit to at least so many records."""
            with StreamsApp(cluster, topology, application_id=group, auto_offset_reset="earliest"):
                first, began = wait_for_commit(cluster, group, 1), time.perf_counter()
                return (wait_for_commit(cluster, group, records) - first) / (time.perf_counter() - began)

        for number in range(5):
            native = rate(counting, f"native-{number}", 1_000_000)
            python = rate(counting_in_python, f"python-{number}", 100_000)  # a Python function takes its time
            yield "Kafka Streams, count by key, native serdes", "≥ 100000 records/s", native
            yield "the same with a Python function in the topology", "records/s", python
            yield "the first, of the records/s with a Python function", "×", native / python


def streams_start() -> Measured:
    """An application whose jars and archive are there: from its start to RUNNING; the memory of Python and Java together."""
    with local(1) as cluster:
        make_keyed_topic(cluster, 1000, keys=10)
        StreamsApp(cluster, counting, application_id="warm-up").start().stop()
        for number in range(7):
            app = StreamsApp(cluster, counting, application_id=f"started-{number}")
            yield "Kafka Streams application to RUNNING, warm", "≤ 4 s", timed(app.start)
            yield "its memory (PSS)", "≤ 180 MB", memory(app.pid)
            app.stop()


RESTORED = 1_000_000  # keys


def streams_restore() -> Measured:
    """Kill the instance that has a store of a million keys, until the other instance goes on; without and with a standby."""
    for _ in range(3):
        for standbys, how in enumerate(("without a standby", "with a standby")):
            with local(1) as cluster:
                seconds, records = restored(cluster, standbys)
            yield f"instance with 1,000,000 keys killed → the other goes on, {how}", "s", seconds
            yield f"records it read to restore the store, {how}", "records", records


def restored(cluster: Cluster, standbys: int) -> tuple[float, int]:
    """Seconds until the other instance has processed a record, 3 s of which it takes to miss the killed one; records read."""
    sender = make_keyed_topic(cluster, 1, RESTORED)
    settings = {"application_id": "latest", "num_standby_replicas": standbys}
    apps = [StreamsApp(cluster, latest, name=name, heap="512m", **settings).start() for name in ("one", "two")]
    owner = wait_until(lambda: next((app for app in apps if has_rows(app)), None), 60, "one of them to have the store")
    [other] = [app for app in apps if app is not owner]
    send(sender, RESTORED, RESTORED)
    wait_for_commit(cluster, "latest", RESTORED + 1)
    before = other.restored.get("latest", 0)
    owner.kill()
    send(sender, 1, RESTORED)
    seconds = timed(wait_for_commit, cluster, "latest", RESTORED + 2)
    return seconds, other.restored.get("latest", 0) - before


def has_rows(app: StreamsApp) -> bool:
    """Whether it has the store's only partition."""
    try:
        return bool(app.store("latest"))
    except StreamsFailed:
        return False


# -- the course -------------------------------------------------------------------------------------------------------------

NOTEBOOK_SECONDS = 120
CHAPTER_SECONDS = {"05": 100, "09": 110, "10": 110, "11": 110, "12": 100}
LAB_SECONDS = {"05": 30, "09": 35, "10": 35, "11": 35, "12": 30, "12_rolling_upgrade": 75}


def seconds_allowed(notebook: Path) -> int:
    """The bound of a chapter or a lab: its own, or its chapter's, or that of every notebook."""
    bounds = CHAPTER_SECONDS if notebook.parent.name == "notebooks" else LAB_SECONDS
    return bounds.get(notebook.stem, bounds.get(notebook.stem[:2], NOTEBOOK_SECONDS))


def notebooks() -> Measured:
    """Every chapter and solution, headless on local processes, one after the other: its seconds and its memory (PSS).

    Where a control group can be made, the notebook runs in one with 2 GB, or with as much as it is allowed to have.
    """
    for path in sorted([*ROOT.glob("notebooks/*.ipynb"), *ROOT.glob("solutions/*/*.ipynb")]):
        name, megabytes = f"{path.parent.name}/{path.stem}", 2600 if path.stem == "11_spark_cluster" else 1800
        limit = max(2 << 30, megabytes * 1_000_000)
        with tempfile.TemporaryDirectory() as out, memory_limit(limit) as inside, MemoryWatch(8 << 30) as watch:
            command = [*inside, Path(sys.executable).with_name("kafkalab"), "run", "--backend", "local", "--out", out, path]
            environment = {**os.environ, **watch.environment(), "KAFKALAB_PROGRESS": f"{out}/progress"}
            began = time.perf_counter()
            subprocess.run(command, env=environment, check=True, stdout=sys.stderr)
            took = time.perf_counter() - began
        assert watch.peak, "the watch saw no process"
        yield f"{name}, headless, local", f"≤ {seconds_allowed(path)} s", took
        yield f"{name}, peak of memory", f"≤ {megabytes} MB", watch.peak / 1e6
        print(f"{name}: {took:.1f} s, {watch.peak / 1e6:.0f} MB", file=sys.stderr)


def setup() -> Measured:
    """``make course`` up to the open browser, on a copy of the repository with an empty home and empty caches; then again."""
    with tempfile.TemporaryDirectory() as folder:
        tree, home = Path(folder, "tree"), Path(folder, "home")
        home.mkdir()
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(tree)], check=True)
        keep = {k: v for k, v in os.environ.items() if not k.startswith(("KAFKALAB", "XDG", "JUPYTER", "VIRTUAL_ENV"))}
        environment = keep | {"HOME": str(home), "TMPDIR": folder, "BROWSER": "none"}
        yield "make course, cold caches, until JupyterLab answers", "≤ 300 s", timed_course(tree, home, environment)
        yield "make course, second start", "≤ 10 s", timed_course(tree, home, environment)


def timed_course(tree: Path, home: Path, environment: dict[str, str]) -> float:
    """Seconds until ``make course`` has a JupyterLab that answers."""
    began, nowhere = time.perf_counter(), subprocess.DEVNULL
    course = subprocess.Popen(["make", "course"], cwd=tree, env=environment, stdin=nowhere, stdout=nowhere, stderr=nowhere)

    def answers() -> bool:
        for runtime in home.glob(".local/share/jupyter/runtime/jpserver-*.json"):
            server = json.loads(runtime.read_text())
            with urlopen(f"{server['url']}lab?token={server['token']}", timeout=10) as page:
                return page.status == 200
        return False

    try:
        wait_until(answers, 900, "JupyterLab to answer", ignore=(OSError, ValueError), interval=0.1)
        return time.perf_counter() - began
    finally:
        for process in reversed(psutil.Process(course.pid).children(recursive=True)):
            if process.is_running():
                process.terminate()
        course.wait(60)


OWN_ROWS = (
    *(start, tool, failover, producer, rebalance, reading, tls, registry, microscope, transactions, share),
    *(streams_rate, streams_start, streams_restore, connect),
)
ROWS: dict[str, Callable[[], Measured]] = {
    **{row.__name__.replace("_", "-"): row for row in OWN_ROWS},
    **bench_pipeline.ROWS,
    "pipeline-executors": bench_executors.executors,
    "state-stores": bench_state.stores,
    **{row.__name__: row for row in (docker, notebooks, setup)},
}


def main(words: list[str]) -> int:
    """Measure, print the table; 1 if a bound is not kept."""
    if unknown := [word for word in words if not any(word in name for name in ROWS)]:
        sys.exit(f"no row is called {', '.join(unknown)}; there are {', '.join(ROWS)}")
    chosen = [row for name, row in ROWS.items() if not words or any(word in name for word in words)]
    measured = [figure for row in chosen for figure in figures(row())]
    machine = f"{psutil.cpu_count()} CPUs, {psutil.virtual_memory().total / 2**30:.0f} GiB, {sys.platform}"
    table = Table("what", "median", "spread", "rounds", "must be", "kept", title=machine)
    for figure in measured:
        table.add_row(*figure.cells())
    Console(width=max(110, shutil.get_terminal_size().columns)).print(table)
    return int(not all(figure.kept for figure in measured))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""``make bench``: the course's figures, measured on this machine, as a table.

Each figure is the median of several rounds, with the smallest and the largest. Where a ratio is given, both sides were
measured in the same run, by turns. ``python tools/bench.py ROW …`` measures only the rows whose names contain a ROW.
"""

from __future__ import annotations

import argparse
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
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from urllib.request import Request, urlopen

import psutil
from confluent_kafka import AcknowledgeType, Consumer, KafkaException, Producer, ShareConsumer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType
from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

import bench_pipeline
from bench_figures import LONG_RUNNING, Figure, long_running_session, timed
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

T = TypeVar("T")
TOPIC = "bench"
# A JVM as it comes, for comparison.
PLAIN = ("-Xmx256m", "-Xss1m", "-XX:-UseSerialGC", "-XX:+UseG1GC", "-XX:TieredStopAtLevel=4", "-XX:+UsePerfData", "-Xshare:off")


def make_topic(cluster: Cluster) -> None:
    """A topic with three replicas, all in sync."""
    admin = AdminClient(cluster.client_config())
    admin.create_topics([NewTopic(TOPIC, 13, 3)])[TOPIC].result()
    in_sync(cluster)


def in_sync(cluster: Cluster) -> None:
    """Wait for all replicas to be in sync."""
    cluster.wait_for(lambda v: all(len(p.isr) == 3 for p in v.topics[TOPIC]), "all replicas in sync", 120)


@contextmanager
def started(java_options: tuple[str, ...] = ()) -> Iterator[tuple[Cluster, float]]:
    """A cluster with the topic, and the seconds that both took."""
    began = time.perf_counter()
    with Cluster(3, backend="local", java_options=java_options) as cluster:
        make_topic(cluster)
        yield cluster, time.perf_counter() - began


def bench_start() -> list[Figure]:
    """Start and topic, lesson JVMs and plain ones by turns; the memory of the lesson's brokers."""
    figures = [
        Figure("three brokers and a topic with RF 3, local", 4, "s"),
        Figure("the same, of the time with plain JVMs", 0.4, "×"),
        Figure("memory of the three brokers (PSS)", 480, "MB"),
    ]
    for _ in range(5):
        with started() as (cluster, seconds):
            figures[0].values.append(seconds)
            nodes = [p for p in marked_processes(cluster.run.id) if p.name() == "java"]
            figures[2].values.append(sum(p.memory_full_info().pss for p in nodes) / 1e6)
        with started(PLAIN) as (_, plain):
            figures[1].values.append(seconds / plain)
    return figures


def bench_tool() -> list[Figure]:
    """``kafka-topics --list`` as installed and with a plain JVM, by turns."""
    figures = [Figure("kafka-topics --list", 0.8, "s"), Figure("the same, of the time with a plain JVM", 0.6, "×")]
    with started() as (cluster, _):
        arguments = ["--bootstrap-server", cluster.bootstrap_servers, "--list"]
        installed = [str(tools_dir() / "kafka-topics.sh"), *arguments]
        plain = [str(java_command()), *PLAIN, "-cp", classpath(), TOOLS["kafka-topics"], *arguments]
        for _ in range(7):
            seconds = timed(lambda: subprocess.run(installed, check=True, capture_output=True))
            figures[0].values.append(seconds)
            figures[1].values.append(seconds / timed(lambda: subprocess.run(plain, check=True, capture_output=True)))
    return figures


def bench_failover() -> list[Figure]:
    """Kill a leader until all that it led is led elsewhere; restart it until all replicas are in sync."""
    figures = [
        Figure("leader killed → led elsewhere", 3, "s"),
        Figure("leader that is also the active controller killed → led elsewhere", 3, "s"),
        Figure("restart → all replicas in sync", 6, "s"),
    ]
    with started() as (cluster, _):
        for number in range(10):
            view = cluster.describe(groups=False)
            victim = view.controller if number % 2 else (view.controller + 1) % 3

            def fail_over(victim: int = victim) -> None:
                cluster.kill(victim)
                cluster.wait_for(lambda v: all(x not in (victim, None) for x in v.leaders(TOPIC).values()), "new leaders", 60)

            figures[number % 2].values.append(timed(fail_over))

            def restart(victim: int = victim) -> None:
                cluster.restart(victim)
                in_sync(cluster)

            figures[2].values.append(timed(restart))
            elect_preferred(cluster)
    return figures


def elect_preferred(cluster: Cluster) -> None:
    """Leaders back to where they were, so that every victim leads something."""
    command = [str(tools_dir() / "kafka-leader-election"), "--bootstrap-server", cluster.bootstrap_servers]
    subprocess.run([*command, "--election-type", "preferred", "--all-topic-partitions"], capture_output=True, check=True)
    cluster.wait_for(lambda v: all(p.leader == p.replicas[0] for p in v.topics[TOPIC]), "preferred leaders", 60)


# As Kafka's own script starts it; the course's is made to start fast.
AS_KAFKA_DOES = ("-Xmx512M", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35")


def perf_test(client: str, cluster: Cluster) -> list[str]:
    """The beginning of the command that starts Kafka's measuring tool for producers or consumers."""
    command = [str(java_command()), *AS_KAFKA_DOES, "-cp", classpath(), TOOLS[f"kafka-{client}-perf-test"]]
    return [*command, "--bootstrap-server", cluster.bootstrap_servers, "--topic", TOPIC]


def bench_reading() -> list[Figure]:
    """Two million records of 100 bytes on one broker, read by turns: Kafka's own tool, Python, Spark's batch and stream.

    Python and Spark are warm. The tool is a new JVM each time, as it is for whoever calls it; its start and its joining of a
    group are not counted.
    """
    names = ("Kafka's tool", "Python", "Spark batch", "Spark streaming")
    speeds = {name: Figure(f"reading: {name}", None, "records/s") for name in names}
    ratios = {
        "Python": Figure("reading: Python, of the records/s of kafka-consumer-perf-test", 0.5, "×", at_least=True),
        "Spark batch": Figure("reading: Spark batch, of the same", 0.55, "×", at_least=True),
        "Spark streaming": Figure("reading: Spark streaming (availableNow), of the same", 0.4, "×", at_least=True),
    }
    with Cluster(1, backend="local") as cluster, tempfile.TemporaryDirectory() as folder:
        fill_for_reading(cluster)
        spark = long_running_session()
        spark.conf.set("spark.sql.sources.useV1SourceList", "")  # else a batch goes the old way, with an object per row
        readers = {
            "Kafka's tool": lambda: read_with_tool(cluster),
            "Python": lambda: READ / timed(lambda: read_with_python(cluster)),
            "Spark batch": lambda: READ / timed(lambda: read_with_batch(spark, cluster)),
            "Spark streaming": lambda: READ / timed(lambda: read_with_stream(spark, cluster, folder)),
        }
        for read in readers.values():
            for _ in range(5):
                read()  # warm-up: the second compiler takes its time
        for _ in range(5):
            for name, read in readers.items():
                speeds[name].values.append(read())
            for name, ratio in ratios.items():
                ratio.values.append(speeds[name].values[-1] / speeds["Kafka's tool"].values[-1])
        spark.stop()
    return [*ratios.values(), *speeds.values()]


READ = 2_000_000  # records of 100 bytes
READ_PARTITIONS = 4
READ_OPTIONS = {"kafka.max.poll.records": "10000"}


def fill_for_reading(cluster: Cluster) -> None:
    """The topic that is read."""
    admin = AdminClient(cluster.client_config())
    admin.create_topics([NewTopic(TOPIC, READ_PARTITIONS, 1)])[TOPIC].result()
    command = [*perf_test("producer", cluster), "--num-records", str(READ), "--record-size", "100", "--throughput", "-1"]
    subprocess.run(command, check=True, capture_output=True)


def read_with_tool(cluster: Cluster) -> float:
    """Records per second, as the tool itself says: from the first fetch to the last."""
    command = [*perf_test("consumer", cluster), "--messages", str(READ), "--timeout", "30000"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    header, numbers = (line.split(", ") for line in done.stdout.splitlines()[-2:])
    told = dict(zip(header, numbers, strict=True))
    assert int(told["data.consumed.in.nMsg"]) >= READ, told
    return float(told["fetch.nMsg.sec"])


def read_with_python(cluster: Cluster, batch: int = 1000) -> None:
    """Read all of it, without looking at it, with the batch that proved best.

    Smaller ones cost more calls, larger ones do not fit into the cache.
    """
    # By default librdkafka waits a second when 100,000 records lie ready, even if they are taken in less.
    consumer = Consumer(cluster.client_config(group_id="bench", enable_auto_commit=False, fetch_queue_backoff_ms=5))
    consumer.assign([TopicPartition(TOPIC, partition, 0) for partition in range(READ_PARTITIONS)])
    read_all(consumer, READ, batch)


def read_all(consumer: Consumer, records: int, batch: int = 1000) -> None:
    """Read so many records, in batches, and close the consumer."""
    count = 0
    while count < records:
        count += len(consumer.consume(min(batch, records - count), timeout=1))
    consumer.close()


def read_with_batch(spark: SparkSession, cluster: Cluster) -> None:
    """Read them in a batch, and look at each: add up the lengths of their values."""
    frame = spark.read.format("kafka").options(**kafka_options(cluster), **READ_OPTIONS, subscribe=TOPIC).load()
    assert frame.selectExpr("sum(length(value))").first()[0] == 100 * READ


def read_with_stream(spark: SparkSession, cluster: Cluster, folder: str) -> None:
    """Read them as a stream that ends, into nothing, with a checkpoint of its own."""
    options = {**kafka_options(cluster), **READ_OPTIONS, "subscribe": TOPIC, "startingOffsets": "earliest"}
    writer = spark.readStream.format("kafka").options(**options).load().writeStream.format("noop").trigger(availableNow=True)
    query = writer.option("checkpointLocation", f"{folder}/{time.time_ns()}").start()
    query.awaitTermination()
    assert sum(progress["numInputRows"] for progress in query.recentProgress) == READ


def bench_docker() -> list[Figure]:
    """Three brokers on Docker, where it can be used."""
    figure = Figure("three brokers on Docker, image present", 7, "s")
    try:
        for _ in range(5):
            cluster = Cluster(3, backend="docker")
            figure.values.append(timed(cluster.start))
            cluster.stop()
    except BackendUnavailable as reason:
        print(f"left out: {figure.what}: {reason}", file=sys.stderr)
        return []
    return [figure]


NOTEBOOK_SECONDS = 120
CHAPTER_SECONDS = {"05": 100, "09": 110, "10": 110, "11": 110, "12": 100}
LAB_SECONDS = {"05": 30, "09": 35, "10": 35, "11": 35, "12": 30, "12_rolling_upgrade": 75}


def seconds_allowed(notebook: Path) -> int:
    """The bound of a chapter or a lab: its own, or its chapter's, or that of every notebook."""
    bounds = CHAPTER_SECONDS if notebook.parent.name == "notebooks" else LAB_SECONDS
    return bounds.get(notebook.stem, bounds.get(notebook.stem[:2], NOTEBOOK_SECONDS))


def megabytes_allowed(notebook: Path) -> int:
    """The bound of a notebook's memory, with its brokers and Spark."""
    return 2600 if notebook.stem == "11_spark_cluster" else 1800


def bench_notebooks() -> list[Figure]:
    """Every chapter and solution, headless on local processes, one after the other: its seconds and its memory (PSS).

    Where a control group can be made, the notebook runs in one with 2 GB, or with as much as it is allowed to have.
    """
    seconds, memory = [], []
    for path in sorted([*ROOT.glob("notebooks/*.ipynb"), *ROOT.glob("solutions/*/*.ipynb")]):
        name, megabytes = f"{path.parent.name}/{path.stem}", megabytes_allowed(path)
        limit = max(2 << 30, megabytes * 1_000_000)
        with tempfile.TemporaryDirectory() as out, memory_limit(limit) as inside, MemoryWatch(8 << 30) as watch:
            command = [*inside, Path(sys.executable).with_name("kafkalab"), "run", "--backend", "local", "--out", out, path]
            environment = {**os.environ, **watch.environment(), "KAFKALAB_PROGRESS": f"{out}/progress"}
            took = timed(partial(subprocess.run, command, env=environment, check=True, stdout=sys.stderr))
        assert watch.peak, "the watch saw no process"
        seconds.append(Figure(f"{name}, headless, local", seconds_allowed(path), "s", [took]))
        memory.append(Figure(f"{name}, peak of memory", megabytes, "MB", [watch.peak / 1e6]))
        print(f"{name}: {took:.1f} s, {watch.peak / 1e6:.0f} MB", file=sys.stderr)
    return [*seconds, *memory]


def bench_setup() -> list[Figure]:
    """``make course`` up to the open browser, on a copy of the repository with an empty home and empty caches; then again."""
    cold = Figure("make course, cold caches, until JupyterLab answers", 300, "s")
    warm = Figure("make course, second start", 10, "s")
    with tempfile.TemporaryDirectory() as folder:
        tree, home = Path(folder, "tree"), Path(folder, "home")
        home.mkdir()
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(tree)], check=True)
        keep = {k: v for k, v in os.environ.items() if not k.startswith(("KAFKALAB", "XDG", "JUPYTER", "VIRTUAL_ENV"))}
        environment = keep | {"HOME": str(home), "TMPDIR": folder, "BROWSER": "none"}
        for figure in (cold, warm):
            figure.values.append(timed_course(tree, home, environment))
    return [cold, warm]


def timed_course(tree: Path, home: Path, environment: dict[str, str]) -> float:
    """Seconds until ``make course`` has a JupyterLab that answers."""
    began = time.perf_counter()
    course = subprocess.Popen(
        ["make", "course"],
        cwd=tree,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )

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


RECORD_BYTES = 100
WARM_UP, COUNTED = 300_000, 1_000_000  # records
PRODUCER = {"acks": "all", "batch.size": 65536, "linger.ms": 10}


def bench_producer() -> list[Figure]:
    """confluent-kafka against Kafka's own measuring tool, by turns: same record, acks, batch and linger, both warmed up."""
    figures = []
    for brokers in (1, 3):
        where = f"{brokers} broker{'s' if brokers > 1 else ''}, RF {brokers}"
        ratio = Figure(f"producer, {where}: Python, of the records/s of kafka-producer-perf-test", 0.8, "×", at_least=True)
        python, java = (Figure(f"producer, {where}: {name}", None, "records/s") for name in ("Python", "Java"))
        with Cluster(brokers, backend="local") as cluster:
            for _ in range(5):
                java.values.append(on_new_topic(cluster, brokers, java_rate))
                python.values.append(on_new_topic(cluster, brokers, python_rate))
                ratio.values.append(python.values[-1] / java.values[-1])
        figures += [ratio, python, java]
    return figures


def on_new_topic(cluster: Cluster, copies: int, rate: Callable[[Cluster], T]) -> T:
    """What `rate` measures on a topic that is empty before, and must hold all records afterwards."""
    admin = AdminClient(cluster.client_config())
    admin.create_topics([NewTopic(TOPIC, 3, copies)])[TOPIC].result()
    cluster.wait_for(lambda v: all(len(p.isr) == copies for p in v.topics[TOPIC]), "the topic")
    measured = rate(cluster)
    reader = Consumer(cluster.client_config(group_id="bench"))
    there = sum(reader.get_watermark_offsets(TopicPartition(TOPIC, p), timeout=10)[1] for p in range(3))
    reader.close()
    assert there == WARM_UP + COUNTED, f"{there} records are there"
    admin.delete_topics([TOPIC])[TOPIC].result()
    cluster.wait_for(lambda v: TOPIC not in v.topics, "the topic to be gone")
    return measured


def java_rate(cluster: Cluster) -> float:
    """Records a second of ``kafka-producer-perf-test``, those of the warm-up left out."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as payload:
        payload.write("x" * RECORD_BYTES)  # given, since to make a random one costs the tool more than to send it
        payload.flush()
        command = [*perf_test("producer", cluster), "--payload-file", payload.name]
        command += ["--num-records", str(WARM_UP + COUNTED), "--warmup-records", str(WARM_UP), "--throughput", "-1"]
        command += ["--command-property", *[f"{key}={value}" for key, value in PRODUCER.items()]]
        told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    [steady] = re.findall(r"^\d+ steady state records sent, ([\d.]+) records/sec", told, re.MULTILINE)
    return float(steady)


def python_rate(cluster: Cluster, user: str | None = None, listener: str | None = None) -> float:
    """Records a second of a producer in Python that has its values ready and hears of nothing but the end."""
    settings = {**PRODUCER, "enable.idempotence": True, "queue.buffering.max.messages": 500_000}
    producer = Producer({**cluster.client_config(user, listener), **settings})
    value = b"x" * RECORD_BYTES
    send(producer, value, WARM_UP)
    return COUNTED / timed(lambda: send(producer, value, COUNTED))


def send(producer: Producer, value: bytes, count: int) -> None:
    """Send so many records and wait until all are acknowledged."""
    produce = producer.produce
    for _ in range(count):
        try:
            produce(TOPIC, value)
        except BufferError:
            while len(producer) > 250_000:
                producer.poll(0.01)
            produce(TOPIC, value)
    producer.flush()


def bench_rebalance() -> list[Figure]:
    """Kill one of three members of a group until the other two have its partitions, under both protocols by turns."""
    figures = {
        "classic": Figure("member killed → its partitions taken over, classic protocol", 6, "s"),
        "consumer": Figure("the same, new protocol (KIP-848)", 6, "s"),
    }
    # With the new protocol the broker says after how long a member counts as dead: as long as with the classic one here.
    as_patient = {"group.consumer.min.session.timeout.ms": 1000, "group.consumer.session.timeout.ms": 3000}
    as_patient |= {"group.consumer.min.heartbeat.interval.ms": 100, "group.consumer.heartbeat.interval.ms": 500}
    with Cluster(3, settings=as_patient, backend="local") as cluster:
        make_topic(cluster)
        for number in range(5):
            for protocol, figure in figures.items():
                group = f"{protocol}-{number}"
                members = [ConsoleConsumer(cluster, TOPIC, group=group, group_protocol=protocol) for _ in range(3)]
                wait_until_shared(*members, timeout=60)
                members.pop(0).kill()
                figure.values.append(timed(lambda members=members: wait_until_shared(*members, timeout=60)))
                for member in members:
                    member.close()
    return list(figures.values())


def bench_tls() -> list[Figure]:
    """A producer and a consumer over TLS, of what the same ones reach in plain text on the same broker, by turns.

    The broker has Java's better compiler: without it, as in the lessons, Java's encryption is several times slower.
    """
    sending = Figure("producer over TLS, of its records/s in plain text", None, "×")
    reading = Figure("consumer over TLS, of its records/s in plain text", None, "×")
    listeners = [Listener(), Listener("SSL", "SSL")]
    secured = Cluster(1, backend="local", listeners=listeners, security=Security(authorizer=False), java_options=LONG_RUNNING)
    with secured as cluster:
        for name in ("PLAINTEXT", "SSL"):
            on_new_topic(cluster, 1, lambda c, name=name: both_rates(c, name))  # warm-up
        for _ in range(5):
            plain, tls = (on_new_topic(cluster, 1, lambda c, name=name: both_rates(c, name)) for name in ("PLAINTEXT", "SSL"))
            sending.values.append(tls[0] / plain[0])
            reading.values.append(tls[1] / plain[1])
    return [sending, reading]


def both_rates(cluster: Cluster, listener: str) -> tuple[float, float]:
    """Records a second of a producer, and then of a consumer that reads them all."""
    user = "bench"  # its certificate; in plain text it is nobody
    sent = python_rate(cluster, user, listener)
    settings = cluster.client_config(user, listener, group_id="bench", enable_auto_commit=False, fetch_queue_backoff_ms=5)
    consumer = Consumer(settings)
    consumer.assign([TopicPartition(TOPIC, partition, 0) for partition in range(3)])
    return sent, (WARM_UP + COUNTED) / timed(lambda: read_all(consumer, WARM_UP + COUNTED))


def bench_registry() -> list[Figure]:
    """A schema registry that has been prepared before: its start, its start with schemas in its topic, its memory."""
    figures = [
        Figure("schema registry started, warm", 8, "s"),
        Figure("the same, after it was killed", 8, "s"),
        Figure("memory of the schema registry (RSS)", 300, "MB"),
    ]
    with Cluster(3, backend="local") as cluster:
        SchemaRegistry(cluster).start().stop()  # downloads and prepares it, the first time
        for _ in range(5):
            registry = SchemaRegistry(cluster)
            figures[0].values.append(timed(registry.start))
            registry.kill()
            figures[1].values.append(timed(registry.restart))
            figures[2].values.append(registry.memory() / 1e6)
            registry.stop()
    return figures


def bench_microscope() -> list[Figure]:
    """A log of 10,000 records under the microscope: from a record acknowledged to the record drawn."""
    figure = Figure("log microscope: a record written → seen, among 10,000", 0.5, "s")
    with Cluster(3, backend="local") as cluster:
        make_topic(cluster)
        producer = Producer(cluster.client_config(enable_idempotence=True, linger_ms=0))
        for number in range(10_000):
            producer.produce(TOPIC, f"value {number}", partition=0)
        producer.flush()
        microscope = LogMicroscope(cluster, TOPIC)
        segments = microscope.widget.children[-1]

        def seen(value: str) -> None:
            wait_until(lambda: value in segments.value, 10, "the record to be drawn", interval=0.01)

        for number in range(15):
            producer.produce(TOPIC, f"new {number}", partition=0)
            producer.flush()
            figure.values.append(timed(partial(seen, f"new {number}")))
    return [figure]


PER_TRANSACTION = (1, 10, 100, 1000)


def bench_transactions() -> list[Figure]:
    """Records a second without transactions, and in transactions of several sizes, by turns."""
    plain = Figure("producer without transactions", None, "records/s")
    figures = [Figure(f"the same, {size:,} records per transaction", None, "records/s") for size in PER_TRANSACTION]
    with Cluster(3, backend="local") as cluster:
        make_topic(cluster)
        producers = {size: Producer(cluster.client_config(transactional_id=f"bench-{size}")) for size in PER_TRANSACTION}
        without = Producer(cluster.client_config(enable_idempotence=True))
        for producer in producers.values():
            producer.init_transactions()
        for _ in range(5):
            plain.values.append(transaction_rate(without, TOPIC, None))
            for (size, producer), figure in zip(producers.items(), figures, strict=True):
                figure.values.append(transaction_rate(producer, TOPIC, size))
    return [plain, *figures]


JOBS, WORKERS, JOB_SECONDS = 20, 4, 0.5


def bench_share() -> list[Figure]:
    """Twenty jobs of half a second on one partition, four workers: a classic consumer group and a share group by turns."""
    figure = Figure("share group, faster than a classic group: 20 jobs of 0.5 s, 4 workers", 3, "×", at_least=True)
    impatient = {"heartbeat.interval.ms": 500, "min.heartbeat.interval.ms": 500}
    settings = {f"group.share.{name}": value for name, value in impatient.items()}
    with Cluster(1, backend="local", settings=settings) as cluster:
        for number in range(5):
            took = {kind: timed_jobs(cluster, kind, f"{kind}-{number}") for kind in ("classic", "share")}
            figure.values.append(took["classic"] / took["share"])
    return [figure]


def timed_jobs(cluster: Cluster, kind: str, group: str) -> float:
    """Seconds from the first job sent to the last one done. Before that, the group has done some jobs.

    Its first ones come late: members hear of their assignment with a heartbeat, and a share group's state is made when it begins.
    """
    admin = AdminClient(cluster.client_config())
    admin.create_topics([NewTopic(group, 1, 1)])[group].result()
    if kind == "share":
        begin = ConfigEntry("share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.GROUP, group, incremental_configs=[begin])
        admin.incremental_alter_configs([resource])[resource].result()
    done: set[str] = set()
    ending = threading.Event()
    work = {"classic": work_classic, "share": work_shared}[kind]
    threads = ThreadPoolExecutor(WORKERS)
    members = [threads.submit(work, cluster, group, done, ending) for _ in range(WORKERS)]
    look = {"classic": lambda: cluster.describe().groups.get(group), "share": lambda: cluster.share_group(group)}[kind]

    def all_there() -> bool:
        found = look()
        return found is not None and found.state == "Stable" and len(found.members) == WORKERS

    def none_failed() -> None:
        for member in members:
            if member.done():
                member.result()  # raises what the member raised

    producer = Producer(cluster.client_config())

    def do(jobs: range) -> None:
        for number in jobs:
            producer.produce(group, f"job {number}")
            producer.flush()  # a batch each: a broker hands out whole batches
        wait_until(lambda: len(done) == jobs.stop, 120, "all jobs", last_seen=lambda: done, unless=none_failed, interval=0.01)

    try:
        wait_until(all_there, 60, "the members", last_seen=look, unless=none_failed)
        do(range(WORKERS))
        took = timed(partial(do, range(WORKERS, WORKERS + JOBS)))
    finally:
        ending.set()
    for member in members:
        member.result()
    return took


def work_classic(cluster: Cluster, group: str, done: set[str], ending: threading.Event) -> None:
    """A member of a consumer group."""
    consumer = Consumer(cluster.client_config(group_id=group, auto_offset_reset="earliest", enable_auto_commit=False))
    consumer.subscribe([group])
    while not ending.is_set():
        if (record := consumer.poll(0.1)) is not None and record.error() is None:
            ending.wait(JOB_SECONDS)
            done.add(record.value().decode())
            consumer.commit(record, asynchronous=False)
    consumer.close()


def work_shared(cluster: Cluster, group: str, done: set[str], ending: threading.Event) -> None:
    """A member of a share group."""
    consumer = ShareConsumer(cluster.client_config(group_id=group, share_acknowledgement_mode="explicit", max_poll_records=1))
    consumer.subscribe([group])
    while not ending.is_set():
        for record in consumer.poll(0.1):
            if (error := record.error()) is not None:
                raise KafkaException(error)
            ending.wait(JOB_SECONDS)
            done.add(record.value().decode())
            consumer.acknowledge(record, AcknowledgeType.ACCEPT)
        for error in consumer.commit_sync(10).values():  # an error or None for each partition
            if error is not None:
                raise error
    consumer.close()


KEYED, KEYED_FOR_PYTHON = 1_000_000, 100_000  # records; a Python function takes its time


def counting(builder: Any) -> None:
    """A topology without Python: Kafka Streams runs it as if it were written in Java."""
    builder.stream("bench").groupByKey().count()


def counting_in_python(builder: Any) -> None:
    """The same with a Python function that sees each record."""
    builder.stream("bench").filter(lambda key, value: value is not None).groupByKey().count()


def bench_streams_rate() -> list[Figure]:
    """Records of 1000 keys counted by an application of Kafka Streams, without a Python function and with one, by turns."""
    native = Figure("Kafka Streams, count by key, native serdes", 100_000, "records/s", at_least=True)
    python = Figure("the same with a Python function in the topology", None, "records/s")
    factor = Figure("the first, of the records/s with a Python function", None, "×")
    with Cluster(1, backend="local") as cluster:
        make_keyed_topic(cluster, KEYED, keys=1000)
        for number in range(5):
            for topology, records, figure in ((counting, KEYED, native), (counting_in_python, KEYED_FOR_PYTHON, python)):
                group = f"{topology.__name__}-{number}"
                with StreamsApp(cluster, topology, application_id=group, auto_offset_reset="earliest"):
                    figure.values.append(committed_rate(cluster, group, records))
            factor.values.append(native.values[-1] / python.values[-1])
    return [native, python, factor]


def make_keyed_topic(cluster: Cluster, records: int, keys: int) -> None:
    """A topic with one partition and so many records, whose keys take turns."""
    admin = AdminClient(cluster.client_config())
    admin.create_topics([NewTopic(TOPIC, 1, 1)])[TOPIC].result()
    cluster.wait_for(lambda v: v.led([TOPIC]), "the topic")
    send_keyed(cluster, records, keys)


def send_keyed(cluster: Cluster, records: int, keys: int) -> None:
    """Send so many records."""
    producer = Producer({**cluster.client_config(), **PRODUCER, "queue.buffering.max.messages": 500_000})
    for number in range(records):
        while len(producer) > 400_000:
            producer.poll(0.01)
        producer.produce(TOPIC, b"0123456789", key=str(number % keys))
    producer.flush()


def committed_rate(cluster: Cluster, group: str, records: int) -> float:
    """Records a second that a group commits, from its first commit to at least so many records."""
    first = wait_for_commit(cluster, group, 1)
    began = time.perf_counter()
    last = wait_for_commit(cluster, group, records)
    return (last - first) / (time.perf_counter() - began)


def wait_for_commit(cluster: Cluster, group: str, records: int) -> int:
    """Wait until a group has committed at least so many records of the topic; how many these are."""
    with Consumer(cluster.client_config(group_id=group)) as consumer:

        def committed() -> int:
            [place] = consumer.committed([TopicPartition(TOPIC, 0)], timeout=30)
            return place.offset

        return wait_until(lambda: (so_far := committed()) >= records and so_far, 300, f"{records} records", interval=0.01)


def bench_streams_start() -> list[Figure]:
    """An application whose jars and archive are there: from its start to RUNNING; the memory of Python and Java together."""
    figures = [
        Figure("Kafka Streams application to RUNNING, warm", 4, "s"),
        Figure("its memory (PSS)", 180, "MB"),
    ]
    with Cluster(1, backend="local") as cluster:
        make_keyed_topic(cluster, records=1000, keys=10)
        StreamsApp(cluster, counting, application_id="warm-up").start().stop()
        for number in range(7):
            app = StreamsApp(cluster, counting, application_id=f"started-{number}")
            figures[0].values.append(timed(app.start))
            figures[1].values.append(psutil.Process(app.pid).memory_full_info().pss / 1e6)
            app.stop()
    return figures


RESTORED = 1_000_000  # keys


def latest(builder: Any) -> None:
    """A table of all keys, in a store with a changelog."""
    from org.apache.kafka.streams.kstream import Materialized

    builder.stream("bench").toTable(Materialized.as_("latest"))


def bench_streams_restore() -> list[Figure]:
    """Kill the instance that has a store of a million keys, until the other instance goes on; without and with a standby."""
    how = ("without a standby", "with a standby")
    seconds = [Figure(f"instance with 1,000,000 keys killed → the other goes on, {kind}", None, "s") for kind in how]
    read = [Figure(f"records it read to restore the store, {kind}", None, "records") for kind in how]
    for _ in range(3):
        for standbys in (0, 1):
            with Cluster(1, backend="local") as cluster:
                took, records = restored(cluster, standbys)
            seconds[standbys].values.append(took)
            read[standbys].values.append(records)
    return [*seconds, *read]


def restored(cluster: Cluster, standbys: int) -> tuple[float, int]:
    """Seconds until the other instance has processed a record, 3 s of which it takes to miss the killed one; records read."""
    make_keyed_topic(cluster, 1, RESTORED)
    apps = [
        StreamsApp(cluster, latest, name=name, heap="512m", application_id="latest", num_standby_replicas=standbys).start()
        for name in ("one", "two")
    ]
    owner = wait_until(lambda: next((app for app in apps if has_rows(app)), None), 60, "one of them to have the store")
    [other] = [app for app in apps if app is not owner]
    send_keyed(cluster, RESTORED, RESTORED)
    wait_for_commit(cluster, "latest", RESTORED + 1)
    before = other.restored.get("latest", 0)
    owner.kill()
    send_keyed(cluster, 1, RESTORED)
    took = timed(lambda: wait_for_commit(cluster, "latest", RESTORED + 2))
    return took, other.restored.get("latest", 0) - before


def has_rows(app: StreamsApp) -> bool:
    """Whether it has the store's only partition."""
    try:
        return bool(app.store("latest"))
    except StreamsFailed:
        return False


def bench_connect() -> list[Figure]:
    """A worker of Kafka Connect whose jars and archive are there, and a connector that reads a file."""
    figures = [
        Figure("Connect worker ready, warm", 4, "s"),
        Figure("connector and task RUNNING after POST", 2, "s"),
        Figure("memory of the worker (PSS)", 220, "MB"),
    ]
    with Cluster(1, backend="local") as cluster, tempfile.NamedTemporaryFile("w") as source:
        ConnectCluster(cluster).start().stop()  # downloads and prepares it, the first time
        for number in range(5):
            connect = ConnectCluster(cluster, settings={"group.id": f"bench-{number}"})
            figures[0].values.append(timed(connect.start))
            name, config = f"file-{number}", {"connector.class": "FileStreamSource", "file": source.name, "topic": TOPIC}
            figures[1].values.append(timed(partial(run_connector, connect.url, name, config)))
            figures[2].values.append(psutil.Process(connect.workers[0].pid).memory_full_info().pss / 1e6)
            connect.stop()
    return figures


def run_connector(url: str, name: str, config: dict[str, str]) -> None:
    """POST a connector, and wait until it and its task are RUNNING."""
    body = json.dumps({"name": name, "config": config}).encode()
    with urlopen(Request(f"{url}/connectors", body, {"Content-Type": "application/json"}), timeout=60):
        pass

    def states() -> list[str]:
        with urlopen(f"{url}/connectors/{name}/status", timeout=10) as page:
            status = json.load(page)
        return [status["connector"]["state"], *(task["state"] for task in status["tasks"])]

    wait_until(lambda: states() == ["RUNNING", "RUNNING"], 60, "RUNNING", ignore=(OSError,), last_seen=states, interval=0.02)


ROWS = {
    "start": bench_start,
    "tool": bench_tool,
    "failover": bench_failover,
    "producer": bench_producer,
    "rebalance": bench_rebalance,
    "reading": bench_reading,
    "tls": bench_tls,
    "registry": bench_registry,
    "microscope": bench_microscope,
    "transactions": bench_transactions,
    "share": bench_share,
    "streams-rate": bench_streams_rate,
    "streams-start": bench_streams_start,
    "streams-restore": bench_streams_restore,
    "connect": bench_connect,
    **bench_pipeline.ROWS,
    "docker": bench_docker,
    "notebooks": bench_notebooks,
    "setup": bench_setup,
}


def main(arguments: list[str]) -> int:
    """Measure, print the table; 1 if a bound is not kept."""
    parser = argparse.ArgumentParser(description="The course's figures, measured on this machine.")
    parser.add_argument("rows", nargs="*", metavar="ROW", help="measure only rows whose names contain one of these")
    parser.add_argument(
        "--save", type=Path, metavar="FILE", help="write the figures as JSON, too, for tools/ten_million.py; others in it stay"
    )
    given = parser.parse_args(arguments)
    if unknown := [row for row in given.rows if not any(row in name for name in ROWS)]:
        sys.exit(f"no row is called {', '.join(unknown)}; there are {', '.join(ROWS)}")
    chosen = [bench for name, bench in ROWS.items() if not given.rows or any(row in name for row in given.rows)]
    figures = [figure for bench in chosen for figure in bench()]
    memory = psutil.virtual_memory().total / 2**30
    title = f"{psutil.cpu_count()} CPUs, {memory:.0f} GiB, {sys.platform}"
    table = Table("what", "median", "spread", "rounds", "must be", "kept", title=title)
    for figure in figures:
        table.add_row(*figure.cells())
    Console(width=max(110, shutil.get_terminal_size().columns)).print(table)
    if given.save is not None:
        earlier = json.loads(given.save.read_text())["figures"] if given.save.exists() else []
        saved = {figure["what"]: figure for figure in (*earlier, *map(asdict, figures))}
        given.save.write_text(json.dumps({"machine": title, "figures": list(saved.values())}, indent=1) + "\n")
    return int(not all(figure.kept for figure in figures))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

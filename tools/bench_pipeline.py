"""Rows of ``make bench`` about the truck pipeline: how fast, how late, and what more events, trucks and executors do to it."""

from __future__ import annotations

import itertools
import json
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import psutil
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import DataStreamWriter

from bench_figures import Figure, long_running_session, timed
from kafkacourse.ch11_spark_pipeline.dashboard import Dashboard
from kafkalab import Cluster, PostgreSQL, SchemaRegistry, SparkCluster, wait_until
from kafkalab.distribution import tools_dir
from kafkalab.spark import kafka_options
from kafkalab.spark.session import jvm_process, start_session
from kafkalab.spark.streaming import new_progress
from truck_pipeline import Pipeline, Settings, Trucks, TruckSender, send_drivers, transform
from truck_pipeline.events import encoder, written_schemas

ROUNDS = 3
PARTITIONS = 8
OTHERS = {"dangerous": 4, "dead_letters": 1, "drivers": 1}  # partitions of the other topics, as in chapter 11
FLEET = Trucks(1000, interval=5)  # 200 events a second by the trucks' clocks: the stream remembers 120,000 ids


@dataclass
class Site:
    """Three brokers, a registry and a database; topics of trucks' reports, and runs of the pipeline over them."""

    cluster: Cluster
    settings: Settings
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def fill(self, topic: str, fleet: Trucks, events: int) -> Settings:
        """A topic that holds so many events, and the settings of a pipeline that reads it at full speed."""
        self.create(topic)
        reports, encode = fleet.reports(events), encoder(self.settings.registry, topic)
        producer = Producer({**self.cluster.client_config(), "linger.ms": 20, "queue.buffering.max.messages": len(reports)})
        for report in reports:
            producer.produce(topic, encode(report.event) if report.event else report.malformed, key=str(report.driver))
        producer.flush()
        return replace(self.settings, positions=topic, trigger="0 seconds", most=100_000)

    def create(self, *topics: str, partitions: int = PARTITIONS) -> None:
        """Create topics with three replicas."""
        admin = AdminClient(self.cluster.client_config())
        for created in admin.create_topics([NewTopic(topic, partitions, 3) for topic in topics]).values():
            created.result()
        self.cluster.wait_for(lambda view: view.led(topics), "the topics")

    def anew(self, spark: SparkSession, settings: Settings) -> Pipeline:
        """A pipeline that has read nothing yet, with tables of its own."""
        number = next(self._numbers)
        return Pipeline(spark, replace(settings, checkpoint=f"{settings.checkpoint}/{number}", schema=f"bench_{number}"))

    def run(self, spark: SparkSession, settings: Settings, events: int) -> Pipeline:
        """Run a pipeline from the beginning of its topic to the end; its tables must hold so many events."""
        pipeline = self.anew(spark, settings).start()
        pipeline.catch_up()
        pipeline.stop()
        [(counted,)] = pipeline.tables.ask("SELECT sum(events) FROM {schema}.driving")
        assert counted == events, f"{counted} of {events} events were counted"
        return pipeline

    def count(self, spark: SparkSession, settings: Settings) -> None:
        """Only read the same topic, and count its records, with the same source."""
        self._follow(settings, _records(spark, settings).writeStream.foreachBatch(_count))

    def decode(self, spark: SparkSession, settings: Settings) -> None:
        """Only read the same topic, decode its events, and drop those that are late or come again."""
        decoded = transform.decoded(_records(spark, settings), written_schemas(settings.registry, settings.positions))
        self._follow(settings, transform.deduplicate(decoded, settings.patience).writeStream.format("noop"))

    def _follow(self, settings: Settings, writer: DataStreamWriter) -> None:
        query = writer.option("checkpointLocation", f"{settings.checkpoint}/{next(self._numbers)}").start()
        query.processAllAvailable()
        query.stop()

    def bytes_on_disk(self, topic: str) -> int:
        """What a topic takes, over all its replicas."""
        command = [str(tools_dir() / "kafka-log-dirs.sh"), "--bootstrap-server", self.cluster.bootstrap_servers]
        command += ["--describe", "--topic-list", topic]
        said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        [brokers] = [json.loads(line)["brokers"] for line in said.splitlines() if line.startswith("{")]
        return sum(p["size"] for broker in brokers for folder in broker["logDirs"] for p in folder["partitions"])


def _records(spark: SparkSession, settings: Settings) -> DataFrame:
    options = {**settings.source(settings.positions), "maxOffsetsPerTrigger": settings.most}
    return spark.readStream.format("kafka").options(**options).load()


def _count(batch: DataFrame, _: int) -> None:
    batch.count()


@contextmanager
def opened() -> Iterator[Site]:
    """A site with the topics that every pipeline writes to, and with the drivers."""
    with (
        Cluster(3, backend="local") as cluster,
        SchemaRegistry(cluster) as registry,
        PostgreSQL(backend="local") as database,
        tempfile.TemporaryDirectory() as folder,
    ):
        site = Site(cluster, Settings(kafka_options(cluster), registry.url, database.url, folder))
        for topic, partitions in OTHERS.items():
            site.create(getattr(site.settings, topic), partitions=partitions)
        send_drivers(cluster.client_config())
        yield site


RATE_EVENTS = 300_000
RATE_WARM_UPS, RATE_ROUNDS = 6, 5  # until then each run is faster than the one before it


def bench_rate() -> list[Figure]:
    """The pipeline works off a backlog, by turns with streams that do less; the processor time of each part."""
    rate = Figure("pipeline: Kafka → tables, local[2], three brokers", 20_000, "events/s", at_least=True)
    ratio = Figure("the same, of a stream that only reads and counts", 0.3, "×", at_least=True)
    counting = Figure("stream that only reads and counts", None, "events/s")
    decoding = Figure("stream that decodes and drops repeats, and writes nothing", None, "events/s")
    decoding_ratio = Figure("only decoding and dropping, of a stream that only reads and counts", None, "×")
    parts = {part: Figure(f"processor time per event: {part}", None, "µs") for part in PARTS}
    disk = Figure("an event in the topic, each replica", None, "bytes")
    answers = [Figure(what, None, "bytes") for what in ANSWERS]
    with opened() as site, long_running_session() as spark:
        settings = site.fill("backlog", FLEET, RATE_EVENTS)
        disk.values.append(site.bytes_on_disk("backlog") / 3 / RATE_EVENTS)
        for number in range(RATE_WARM_UPS + RATE_ROUNDS):
            plain = RATE_EVENTS / timed(partial(site.count, spark, settings))
            decoded = RATE_EVENTS / timed(partial(site.decode, spark, settings))
            before = processor_time(spark)
            whole = RATE_EVENTS / timed(partial(site.run, spark, settings, RATE_EVENTS))
            spent = {part: seconds - before[part] for part, seconds in processor_time(spark).items()}
            if number < RATE_WARM_UPS:
                continue
            counting.values.append(plain)
            decoding.values.append(decoded)
            decoding_ratio.values.append(decoded / plain)
            rate.values.append(whole)
            ratio.values.append(whole / plain)
            for part, figure in parts.items():
                figure.values.append(spent[part] / RATE_EVENTS * 1e6)
        for figure, size in zip(answers, size_of_answers(site, spark, settings, RATE_EVENTS), strict=True):
            figure.values.append(size / RATE_EVENTS)
    return [rate, ratio, counting, decoding, decoding_ratio, *parts.values(), disk, *answers]


ANSWERS = ("alarms in their topic, per event, each replica", "rows in PostgreSQL with their indexes, per event")

_SIZE = "SELECT pg_total_relation_size('{schema}.driving') + pg_total_relation_size('{schema}.dangerous_driving')"


def size_of_answers(site: Site, spark: SparkSession, settings: Settings, events: int) -> tuple[float, int]:
    """Run the pipeline once more. Return the bytes that it writes to a replica of the alarms' topic, and to PostgreSQL."""
    before = site.bytes_on_disk(settings.dangerous)
    tables = site.run(spark, settings, events).tables
    [(rows,)] = tables.ask(_SIZE)
    return (site.bytes_on_disk(settings.dangerous) - before) / 3, rows


PARTS = ("Spark", "brokers", "PostgreSQL", "Python")


def processor_time(spark: SparkSession) -> dict[str, float]:
    """Seconds of processor time so far, by part of the pipeline. Other programs on the machine don't add to it."""
    spark_id, seconds = jvm_process(spark).pid, dict.fromkeys(PARTS, 0.0)
    for process in (me := psutil.Process(), *me.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):
            times, java = process.cpu_times(), "Spark" if process.pid == spark_id else "brokers"
            part = {"java": java, "postgres": "PostgreSQL"}.get(process.name(), "Python")
            # The server of PostgreSQL starts a process for each connection: what has ended counts with it.
            seconds[part] += times.user + times.system + times.children_user + times.children_system
    return seconds


LATENCY_RATE, LATENCY_FIRST, LATENCY_SECONDS, WARM_UP_EVENTS = 1000, 20, 40, 100_000


class Watched(Dashboard):
    """A dashboard that notes, for each dangerous event, when it was sent and how long after that it was first drawn.

    Attributes
    ----------
    drawn
        Both in seconds, by the events' correlation ids.
    """

    def __init__(self, *arguments: Any) -> None:
        self.drawn: dict[str, tuple[float, float]] = {}
        self._stored: list[tuple[Any, ...]] = []
        super().__init__(*arguments)

    def _look(self) -> None:
        # Asked first: whatever this finds, the dashboard's own queries find, too.
        self._stored = self._pipeline.tables.ask("SELECT correlation, extract(epoch FROM sent) FROM {schema}.dangerous_driving")
        super()._look()

    def _draw(self) -> None:
        super()._draw()
        now = time.time()
        for correlation, sent in self._stored:
            self.drawn.setdefault(correlation, (float(sent), now - float(sent)))


def bench_latency() -> list[Figure]:
    """Trucks send 1,000 events a second; from an event sent to the dashboard that draws it.

    Events of the first 20 seconds don't count: the stream's first batch takes longer, and the next ones work off what came
    meanwhile. The session is the lessons' own. In one that is made to run for long, Java's second compiler would take half of
    what Spark gets of two processors, for minutes.
    """
    what = f"event sent → dashboard, at {LATENCY_RATE:,} events/s"
    figures = [Figure(f"{what}, median", 3, "s"), Figure(f"{what}, p99", 6, "s")]
    batch = Figure(f"a micro-batch, at {LATENCY_RATE:,} events/s", None, "s")
    with opened() as site, start_session("bench") as spark:
        site.run(spark, site.fill("warm-up", FLEET, WARM_UP_EVENTS), WARM_UP_EVENTS)
        for number in range(ROUNDS):
            topic = f"live-{number}"
            site.create(topic)
            settings = replace(site.settings, positions=topic)
            reports = replace(FLEET, interval=1).reports(LATENCY_RATE * (LATENCY_FIRST + LATENCY_SECONDS))
            sender = TruckSender(site.cluster.client_config(), settings, reports, LATENCY_RATE)
            pipeline = site.anew(spark, settings).start()
            dashboard = Watched(pipeline, site.cluster.client_config())
            counts_from = time.time() + LATENCY_FIRST
            sender.start().wait()
            dangerous = sum(event.dangerous for event in sender.ledger)
            wait_until(lambda: len(dashboard.drawn) == dangerous, 120, "the dashboard to show all of them")
            dashboard.close()
            pipeline.stop()
            batches = new_progress(pipeline.query)
            batch.values.append(statistics.median(one["durationMs"]["triggerExecution"] for one in batches) / 1000)
            counted = [seconds for sent, seconds in dashboard.drawn.values() if sent >= counts_from]
            percentiles = statistics.quantiles(counted, n=100)
            figures[0].values.append(percentiles[49])
            figures[1].values.append(percentiles[98])
    return [*figures, batch]


EXECUTOR_EVENTS = 200_000


def bench_executors() -> list[Figure]:
    """The same backlog on one and on two executors of a standalone cluster, by turns, and what keeps them busy."""
    rate = Figure("pipeline on 1 executor, standalone", None, "events/s")
    factor = Figure("pipeline on 2 executors, of the events/s on 1", None, "×")
    machine = [Figure(f"processors of the machine busy, {number} executors", None, "of them") for number in (1, 2)]
    own = [Figure(f"executor's processor busy, {number} executors", None, "of it") for number in (1, 2)]
    with opened() as site:
        settings = replace(site.fill("for-executors", FLEET, EXECUTOR_EVENTS), most=50_000)  # an executor has 512 MB
        for _ in range(ROUNDS):
            speeds = []
            for number in (1, 2):
                with SparkCluster(number) as workers:
                    spark = long_running_session(workers)
                    site.run(spark, settings, EXECUTOR_EVENTS)  # warm-up
                    psutil.cpu_percent()
                    before = executors_time()
                    took = timed(partial(site.run, spark, settings, EXECUTOR_EVENTS))
                    own[number - 1].values.append((executors_time() - before) / took / number)
                    machine[number - 1].values.append(psutil.cpu_percent() / 100)
                    spark.stop()
                speeds.append(EXECUTOR_EVENTS / took)
            rate.values.append(speeds[0])
            factor.values.append(speeds[1] / speeds[0])
    return [rate, factor, *machine, *own]


def executors_time() -> float:
    """Seconds of processor time of all executors so far."""
    seconds = 0.0
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if any("CoarseGrainedExecutorBackend" in argument for argument in process.cmdline()):
                times = process.cpu_times()
                seconds += times.user + times.system
    return seconds


GROWTH = (3_000, 30_000, 300_000)


def bench_growth() -> list[Figure]:
    """A backlog of 1×, 10× and 100× events: seconds, and the memory of Spark's JVM, whose heap is at most 1 GB."""
    seconds = {events: Figure(f"pipeline, backlog of {events:,} events", None, "s") for events in GROWTH}
    memory = {events: Figure(f"Spark's memory after {events:,} events (PSS)", None, "MB") for events in GROWTH}
    with opened() as site, long_running_session() as spark:
        backlogs = {events: site.fill(f"backlog-{events}", FLEET, events) for events in GROWTH}
        site.run(spark, backlogs[GROWTH[-1]], GROWTH[-1])  # warm-up
        for _, (events, settings) in itertools.product(range(ROUNDS), backlogs.items()):
            seconds[events].values.append(timed(partial(site.run, spark, settings, events)))
            memory[events].values.append(memory_of(spark))
    return [*seconds.values(), *memory.values()]


FLEETS, FLEET_EVENTS = (1_000, 10_000, 100_000), 200_000


def bench_state() -> list[Figure]:
    """The same number of events from 1,000, 10,000 and 100,000 trucks: seconds, and the state."""
    seconds = {trucks: Figure(f"pipeline, {FLEET_EVENTS:,} events of {trucks:,} trucks", None, "s") for trucks in FLEETS}
    rows = {trucks: Figure(f"rows of state, {trucks:,} trucks", None, "rows") for trucks in FLEETS}
    memory = {trucks: Figure(f"memory of the state, {trucks:,} trucks", None, "MB") for trucks in FLEETS}
    row = Figure("memory of a row of state", None, "bytes")
    with opened() as site, long_running_session() as spark:
        # All within the pipeline's patience: every id and every window is remembered.
        backlogs = {trucks: site.fill(f"fleet-{trucks}", Trucks(trucks, interval=1), FLEET_EVENTS) for trucks in FLEETS}
        site.run(spark, backlogs[FLEETS[0]], FLEET_EVENTS)  # warm-up
        for _, (trucks, settings) in itertools.product(range(ROUNDS), backlogs.items()):
            began = time.perf_counter()
            pipeline = site.run(spark, settings, FLEET_EVENTS)
            seconds[trucks].values.append(time.perf_counter() - began)
            most, size = most_state(pipeline)
            rows[trucks].values.append(most)
            memory[trucks].values.append(size / 1e6)
            row.values.append(size / most)
    return [*seconds.values(), *rows.values(), *memory.values(), row]


def most_state(pipeline: Pipeline) -> tuple[int, int]:
    """Rows and bytes of the state when there were most rows."""
    assert pipeline.query is not None
    states = [progress["stateOperators"][0] for progress in pipeline.query.recentProgress]
    return max((state["numRowsTotal"], state["memoryUsedBytes"]) for state in states)


def memory_of(spark: SparkSession) -> float:
    """The memory of Spark's JVM (PSS), in MB."""
    return psutil.Process(jvm_process(spark).pid).memory_full_info().pss / 1e6


ROWS: dict[str, Callable[[], list[Figure]]] = {
    "pipeline-rate": bench_rate,
    "pipeline-latency": bench_latency,
    "pipeline-executors": bench_executors,
    "pipeline-growth": bench_growth,
    "pipeline-state": bench_state,
}

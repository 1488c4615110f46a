"""Rows of ``make bench`` about the truck pipeline: how fast, how late, and what more events and trucks do to it."""

from __future__ import annotations

import itertools
import json
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import psutil
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import DataStreamWriter

from bench_figures import Measured, create, local, long_running_session, memory, timed
from kafkacourse.ch11_spark_pipeline.dashboard import Dashboard
from kafkalab import Cluster, PostgreSQL, SchemaRegistry, wait_until
from kafkalab.distribution import tools_dir
from kafkalab.spark import kafka_options
from kafkalab.spark.session import jvm_process, start_session
from kafkalab.spark.streaming import new_progress
from truck_pipeline import Pipeline, Settings, Trucks, TruckSender, send_drivers, transform
from truck_pipeline.alarms import Alarms
from truck_pipeline.events import encoder
from truck_pipeline.writers import Writers

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
        create(self.cluster, topic, PARTITIONS, 3)
        reports, encode = fleet.reports(events), encoder(replace(self.settings, positions=topic))
        producer = Producer({**self.cluster.client_config(), "linger.ms": 20, "queue.buffering.max.messages": len(reports)})
        for report in reports:
            producer.produce(topic, encode(report.event) if report.event else report.malformed, key=str(report.driver))
        producer.flush()
        return replace(self.settings, positions=topic, trigger="0 seconds")

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
        decoded = transform.decoded(_records(spark, settings), Writers(settings).ask())
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
        local(3) as cluster,
        SchemaRegistry(cluster) as registry,
        PostgreSQL(backend="local") as database,
        tempfile.TemporaryDirectory() as folder,
    ):
        site = Site(cluster, Settings(kafka_options(cluster), registry.url, database.url, folder))
        for topic, partitions in OTHERS.items():
            create(cluster, getattr(site.settings, topic), partitions, 3)
        send_drivers(cluster.client_config())
        yield site


EVENTS, WARM_UPS = 1_200_000, 3  # until then each run is faster than the one before it


def rate() -> Measured:
    """The pipeline works off a backlog, by turns with streams that do less; the processor time of each part."""
    with opened() as site, long_running_session() as spark:
        settings = site.fill("backlog", FLEET, EVENTS)
        for number in range(WARM_UPS + 7):
            counted = EVENTS / timed(site.count, spark, settings)
            decoded = EVENTS / timed(site.decode, spark, settings)
            before = processor_time(spark)
            whole = EVENTS / timed(site.run, spark, settings, EVENTS)
            spent = {part: seconds - before[part] for part, seconds in processor_time(spark).items()}
            if number < WARM_UPS:
                continue
            yield "pipeline: Kafka → tables, local[2], three brokers", "≥ 100000 events/s", whole
            yield "the same, of a stream that only reads and counts", "≥ 0.3 ×", whole / counted
            yield "stream that only reads and counts", "events/s", counted
            yield "stream that decodes and drops repeats, and writes nothing", "events/s", decoded
            yield "only decoding and dropping, of a stream that only reads and counts", "×", decoded / counted
            for part, seconds in spent.items():
                yield f"processor time per event: {part}", "µs", seconds / EVENTS * 1e6
        yield "an event in the topic, each replica", "bytes", site.bytes_on_disk("backlog") / 3 / EVENTS
        before_alarms = site.bytes_on_disk(settings.dangerous)
        [(rows,)] = site.run(spark, settings, EVENTS).tables.ask(SIZE_OF_TABLES)
        alarms = site.bytes_on_disk(settings.dangerous) - before_alarms
        yield "alarms in their topic, per event, each replica", "bytes", alarms / 3 / EVENTS
        yield "rows in PostgreSQL with their indexes, per event", "bytes", rows / EVENTS


SIZE_OF_TABLES = "SELECT pg_total_relation_size('{schema}.driving') + pg_total_relation_size('{schema}.dangerous_driving')"
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


def latency() -> Measured:
    """Trucks send 1,000 events a second; from an event sent to the dashboard that draws it.

    Events of the first 20 seconds don't count: the stream's first batch takes longer, and the next ones work off what came
    meanwhile. The session is the lessons' own. In one that is made to run for long, Java's second compiler would take half of
    what Spark gets of two processors, for minutes.
    """
    with opened() as site, start_session("bench") as spark:
        site.run(spark, site.fill("warm-up", FLEET, 100_000), 100_000)
        for number in range(ROUNDS):
            create(site.cluster, topic := f"live-{number}", PARTITIONS, 3)
            settings = replace(site.settings, positions=topic)
            reports = replace(FLEET, interval=1).reports(1000 * 60)
            sender = TruckSender(site.cluster.client_config(), settings, reports, 1000)
            pipeline = site.anew(spark, settings).start()
            dashboard = Watched(pipeline, site.cluster.client_config())
            counts_from = time.time() + 20
            sender.start().wait()
            dangerous = sum(event.dangerous for event in sender.ledger)
            wait_until(lambda: len(dashboard.drawn) == dangerous, 120, "the dashboard to show all of them")
            dashboard.close()
            pipeline.stop()
            counted = [seconds for sent, seconds in dashboard.drawn.values() if sent >= counts_from]
            percentiles = statistics.quantiles(counted, n=100)
            yield "event sent → dashboard, at 1,000 events/s, median", "≤ 1.2 s", percentiles[49]
            yield "event sent → dashboard, at 1,000 events/s, p99", "≤ 2 s", percentiles[98]
            batches = [progress["durationMs"]["triggerExecution"] for progress in new_progress(pipeline.query)]
            yield "a micro-batch, at 1,000 events/s", "s", statistics.median(batches) / 1000


LASTS = 20  # seconds of a round
WITH_A_PAUSE = 310  # seconds: the real-time query notes its position every 5 minutes, and no record passes meanwhile


def alarms() -> Measured:
    """Trucks send 1,000 events a second; from a dangerous event sent to its alarm read from Kafka, by the real-time trigger.

    The producer of the trucks waits 20 ms for a batch to fill. The first rounds don't count: Java still compiles.
    """
    slots = {"spark.master": f"local[{PARTITIONS}]"}
    with opened() as site, long_running_session(settings=slots) as spark:
        settings, client = site.settings, site.cluster.client_config()
        create(site.cluster, settings.positions, PARTITIONS, 3)
        create(site.cluster, settings.early, 1, 3)
        encoder(settings)(FLEET.reports(1)[0].event)  # registers the schema, which must be there at the start
        early = Alarms(spark, settings).start()
        with Consumer({**client, "group.id": "bench", "enable.auto.commit": False}) as consumer:
            consumer.assign([TopicPartition(settings.early, 0, 0)])
            for number, lasts in enumerate([LASTS] * WARM_UPS + [WITH_A_PAUSE]):
                reports = replace(FLEET, interval=1, seed=number).reports(1000 * lasts)
                began = processor_time(spark)["Spark"]
                TruckSender({**client, "linger.ms": 20}, settings, reports, 1000).start()
                dangerous = sum(report.event is not None and report.event.dangerous for report in reports)
                took = statistics.quantiles(_heard(consumer, early, dangerous), n=100)
                if number >= WARM_UPS:
                    yield "event sent → alarm read from Kafka, at 1,000 events/s, real-time, median", "≤ 50 ms", took[49]
                    yield "event sent → alarm read from Kafka, at 1,000 events/s, real-time, p99", "≤ 500 ms", took[98]
                    yield "Spark's part of a processor meanwhile", "×", (processor_time(spark)["Spark"] - began) / lasts
        early.stop()


def _heard(consumer: Consumer, early: Alarms, number: int) -> list[float]:
    """Read so many alarms, and return the milliseconds from each event sent to its alarm read."""
    latencies: list[float] = []

    def all_read() -> bool:
        while len(latencies) < number and (record := consumer.poll(0.1)):
            if record.error():
                raise KafkaException(record.error())
            sent = datetime.fromisoformat(json.loads(record.value())["sent"])
            latencies.append((time.time() - sent.timestamp()) * 1000)
        return len(latencies) == number

    wait_until(all_read, 2 * WITH_A_PAUSE, "all alarms", unless=early.query and early.query.exception)
    return latencies


def growth() -> Measured:
    """A backlog of 1×, 10× and 100× events: seconds, and the memory of Spark's JVM, whose heap is at most 1 GB."""
    with opened() as site, long_running_session() as spark:
        backlogs = {events: site.fill(f"backlog-{events}", FLEET, events) for events in (3_000, 30_000, 300_000)}
        site.run(spark, backlogs[300_000], 300_000)  # warm-up
        for _, (events, settings) in itertools.product(range(ROUNDS), backlogs.items()):
            yield f"pipeline, backlog of {events:,} events", "s", timed(site.run, spark, settings, events)
            yield f"Spark's memory after {events:,} events (PSS)", "MB", memory(jvm_process(spark).pid)


def state() -> Measured:
    """The same number of events from 1,000, 10,000 and 100,000 trucks: seconds, and the state."""
    events = 200_000
    with opened() as site, long_running_session() as spark:
        # All within the pipeline's patience: every id and every window is remembered.
        fleets = (1_000, 10_000, 100_000)
        backlogs = {trucks: site.fill(f"fleet-{trucks}", Trucks(trucks, interval=1), events) for trucks in fleets}
        site.run(spark, backlogs[1_000], events)  # warm-up
        for _, (trucks, settings) in itertools.product(range(ROUNDS), backlogs.items()):
            began = time.perf_counter()
            pipeline = site.run(spark, settings, events)
            yield f"pipeline, {events:,} events of {trucks:,} trucks", "s", time.perf_counter() - began
            states = [progress["stateOperators"][0] for progress in pipeline.query.recentProgress]
            rows, size = max((state["numRowsTotal"], state["memoryUsedBytes"]) for state in states)
            yield f"rows of state, {trucks:,} trucks", "rows", rows
            yield f"memory of the state, {trucks:,} trucks", "MB", size / 1e6
            yield "memory of a row of state", "bytes", size / rows


ROWS = {f"pipeline-{row.__name__}": row for row in (rate, latency, alarms, growth, state)}

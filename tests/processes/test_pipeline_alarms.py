"""Alarms in real time, by the command in a process of its own: none is missing, and what a crash does to them."""

from __future__ import annotations

import json
import signal
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition

from command_support import Process, spark_environment
from kafkalab import Cluster
from kafkalab.spark import kafka_options
from kafkalab.spark.session import start_session
from pipeline_driver import kill_all
from pipeline_support import SCHEMAS, prepare, send, settings_file
from small_registry import SmallRegistry
from support import create, delete, empty
from truck_pipeline import DRIVERS, Event, Report, Settings, Trucks
from truck_pipeline.__main__ import main
from truck_pipeline.alarms import Alarms
from truck_pipeline.checkpoint import CheckpointRefused

pytestmark = pytest.mark.cluster

TOPICS = Settings({}, "", "", "")
STARTED = "the alarms have started"
ONE_COMPILER = "--driver-java-options -XX:TieredStopAtLevel=1"  # Java's second one pays off in minutes


@pytest.fixture
def topics(cluster: Cluster) -> Cluster:
    """The cluster, with the topics of alarms and nothing else."""
    empty(cluster)
    prepare(cluster, TOPICS)
    create(cluster, TOPICS.early, 1)
    return cluster


class Early:
    """The topic of early alarms, read from its beginning."""

    def __init__(self, cluster: Cluster) -> None:
        self._consumer = Consumer(cluster.client_config(group_id="early"))
        self._consumer.assign([TopicPartition(TOPICS.early, 0, 0)])
        self.alarms: list[dict[str, object]] = []

    def close(self) -> None:
        self._consumer.close()

    def read(self) -> Counter[str]:
        """How often each alarm came so far, by its key."""
        for record in self._consumer.consume(1000, 0.2):
            if record.error():
                raise KafkaException(record.error())
            alarm = json.loads(record.value())
            assert record.key().decode() == alarm["correlationId"]
            self.alarms.append(alarm)
        return Counter(str(alarm["correlationId"]) for alarm in self.alarms)


@pytest.fixture
def early(topics: Cluster) -> Iterator[Early]:
    reader = Early(topics)
    yield reader
    reader.close()


def dangerous(reports: list[Report]) -> list[Event]:
    """Each dangerous event, as often as it was sent."""
    return [report.event for report in reports if report.event and report.event.dangerous]


def wanted(reports: list[Report]) -> Counter[str]:
    return Counter(event.correlation for event in dangerous(reports))


def test_none_is_missing_and_a_crash_repeats_some(topics: Cluster, early: Early, tmp_path: Path) -> None:
    first, second, third = (Trucks(seed=seed, twice=0.2, malformed=0.1).reports(150) for seed in (1, 2, 3))
    names = {driver.id: driver.first_name for driver in DRIVERS}
    (spark_home := tmp_path / "spark").mkdir()
    environment = spark_environment(spark_home, ONE_COMPILER)
    with SmallRegistry(SCHEMAS) as registry:
        client = {"bootstrap.servers": topics.bootstrap_servers}
        own = {"registry": {"url": registry.url}, "checkpoint": {"folder": f"{tmp_path}/point"}}
        arguments = ("alarms", "--settings", str(settings_file(tmp_path, client, **own)))
        with Process(environment, tmp_path, *arguments) as alarms:
            assert alarms.wait_for_start(STARTED)["writes"] == [TOPICS.early]
            send(topics, TOPICS, first)
            alarms.wait_for(lambda: early.read() == wanted(first), "an alarm for each report of danger")
            events = {event.correlation: event for event in dangerous(first)}
            for alarm in early.alarms:
                event = events[str(alarm["correlationId"])]
                assert (alarm["eventType"], alarm["driverId"]) == (event.kind, event.driver)
                assert alarm.get("first_name") == names.get(event.driver)
            send(topics, TOPICS, second)
            alarms.wait_for(lambda: early.read().total() > wanted(first).total(), "alarms after the first ones")
            kill_all(alarms.process.pid)  # Python and Spark's JVM
            alarms.process.wait()
        send(topics, TOPICS, third)
        sent = wanted(first + second + third)
        with Process(environment, tmp_path, *arguments) as again:
            again.wait_for_start(STARTED)
            again.wait_for(lambda: early.read() >= sent, "every alarm, at least as often as it was sent")
            assert early.read().keys() == sent.keys()
            assert again.end(signal.SIGTERM) == 0
            assert (
                again.lines("ending: SIGTERM") and again.lines("the alarms have ended") and '"level": "ERROR"' not in again.log
            )


def test_what_is_refused(topics: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with SmallRegistry(SCHEMAS) as registry, start_session("alarms", settings={"spark.master": "local[2]"}) as spark:
        settings = Settings(kafka_options(topics), registry.url, "", f"{tmp_path}/point")
        Alarms(spark, settings).start().stop()
        create(topics, "wide", 3)
        client = {"bootstrap.servers": topics.bootstrap_servers}
        own = {"registry": {"url": registry.url}, "checkpoint": {"folder": f"{tmp_path}/wide"}, "topics": {"positions": "wide"}}
        with pytest.raises(SystemExit, match="1"):
            main(["alarms", "--settings", str(settings_file(tmp_path, client, **own))])
        [line] = capsys.readouterr().err.splitlines()
        assert json.loads(line)["msg"].startswith("wide has 3 partitions, and Spark can run 2 tasks at a time. ")
        assert not (tmp_path / "wide").exists() and not spark.streams.active
        create(topics, "other", 2)
        with pytest.raises(CheckpointRefused, match="its topic is truck_position, not other"):
            Alarms(spark, replace(settings, positions="other")).start()
        with pytest.raises(LookupError, match="there is no topic nowhere"):
            Alarms(spark, replace(settings, early="nowhere")).start()
        delete(topics, TOPICS.positions)
        create(topics, TOPICS.positions, 2)
        with pytest.raises(CheckpointRefused, match="belongs to a topic that was deleted"):
            Alarms(spark, settings).start()

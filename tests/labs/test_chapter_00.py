"""The labs of chapter 00: what is wrong is told apart from what is right, with a sentence that helps."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from kafkalab import Cluster, check
from kafkalab.cluster.ports import Reservation, reserve_port
from kafkalab.distribution import java_command, java_version, put_tools_on_path
from kafkalab.lifeline import Run, reap

JAVA = java_version(java_command())


# -- 00_environment -------------------------------------------------------------------------------------------------


@dataclass
class Node:
    """A node started by hand, seen as a learner's check sees it."""

    seen: Cluster
    cluster_id: str


@pytest.fixture
def start_node() -> Iterator[Callable[[int], Node]]:
    """Starts nodes with the commands of the lab; what was started ends with the test."""
    put_tools_on_path()
    runs: list[Run] = []
    held: list[Reservation] = []

    def start(node_id: int) -> Node:
        run = Run.create("node")
        runs.append(run)
        ports = [reserve_port(), reserve_port()]
        held.extend(ports)
        port, controller_port = (reservation.port for reservation in ports)
        properties = run.directory / "server.properties"
        properties.write_text(
            f"node.id={node_id}\nprocess.roles=broker,controller\n"
            f"listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}\n"
            f"controller.listener.names=CONTROLLER\ncontroller.quorum.bootstrap.servers=127.0.0.1:{controller_port}\n"
            f"log.dirs={run.directory / 'data'}\noffsets.topic.replication.factor=1\nlog.cleaner.dedupe.buffer.size=4194304\n"
        )
        cluster_id = subprocess.run(["kafka-storage.sh", "random-uuid"], capture_output=True, text=True, check=True).stdout.strip()
        subprocess.run(
            ["kafka-storage.sh", "format", "--standalone", "--cluster-id", cluster_id, "--config", str(properties)],
            capture_output=True,
            check=True,
        )
        with open(run.directory / "broker.log", "w") as log:
            subprocess.Popen(
                ["kafka-server-start.sh", str(properties)], env=run.environment(), stdout=log, stderr=subprocess.STDOUT
            )
        admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{port}", "log_level": 2})
        admin.describe_cluster(request_timeout=60).result()
        return Node(Cluster.attached(f"127.0.0.1:{port}").start(), cluster_id)

    yield start
    for run in runs:
        reap(run)
    for reservation in held:
        reservation.close()


def test_environment_right(start_node: Callable[[int], Node], capsys: pytest.CaptureFixture[str]) -> None:
    node = start_node(7)
    with node.seen:
        assert check("00_environment", node.seen, java=JAVA, cluster_id=node.cluster_id), capsys.readouterr().out
        # Right but for one answer.
        assert not check("00_environment", node.seen, java=JAVA, cluster_id="another-id")
        assert "another id" in capsys.readouterr().out
        assert not check("00_environment", node.seen, java=JAVA, cluster_id=[node.cluster_id])
        assert "a list of lines" in capsys.readouterr().out
        assert not check("00_environment", node.seen, java=1, cluster_id=node.cluster_id)
        assert "number before the first dot" in capsys.readouterr().out


def test_environment_untouched(capsys: pytest.CaptureFixture[str]) -> None:
    with reserve_port() as silent:
        assert not check("00_environment", Cluster.attached(f"127.0.0.1:{silent.port}"), java=None, cluster_id=None)
    printed = capsys.readouterr().out
    assert "0 of 4 requirements" in printed
    assert "Nobody was reached" in printed


def test_environment_node_with_another_number(start_node: Callable[[int], Node], capsys: pytest.CaptureFixture[str]) -> None:
    node = start_node(1)
    with node.seen:
        assert not check("00_environment", node.seen, java=JAVA, cluster_id=node.cluster_id)
    assert "The node calls itself 1" in capsys.readouterr().out


def test_environment_not_ones_own_node(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    with Cluster.attached(cluster.bootstrap_servers) as attached:
        assert not check("00_environment", attached, java=JAVA, cluster_id=attached.describe().cluster_id)
    assert "a cluster of 3 brokers" in capsys.readouterr().out


# -- 00_first_record ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def greetings(cluster: Cluster) -> Cluster:
    """The lab's topic with the records of others."""
    admin = AdminClient(cluster.client_config())
    admin.create_topics([NewTopic("greetings", 6, 3)])["greetings"].result()
    producer = Producer(cluster.client_config())
    for partition in range(6):
        for number in range(10 + partition):
            producer.produce("greetings", value=f"somebody's record {number}", partition=partition)
    producer.flush()
    return cluster


def read(cluster: Cluster, coordinates: tuple[str, int, int]) -> bytes:
    consumer = Consumer(cluster.client_config(group_id="reader", enable_auto_commit=False))
    consumer.assign([TopicPartition(*coordinates)])
    value = consumer.poll(30).value()
    consumer.close()
    return value


def test_first_record(greetings: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    """Untouched, then the right record with wrong answers, then all right: a record that was sent stays sent."""
    assert not check("00_first_record", greetings, coordinates=None, read_back=None)
    printed = capsys.readouterr().out
    assert "0 of 3 requirements" in printed
    assert "did you wait until it was sent?" in printed

    receipts = []
    producer = Producer(greetings.client_config())
    producer.produce("greetings", key="me", value="My first record", on_delivery=lambda _, record: receipts.append(record))
    producer.flush()
    topic, partition, offset = receipts[0].topic(), receipts[0].partition(), receipts[0].offset()
    right = b"My first record"

    def refused(sentence: str, coordinates: object, read_back: object = right) -> None:
        assert not check("00_first_record", greetings, coordinates=coordinates, read_back=read_back)
        assert sentence in capsys.readouterr().out

    refused("the next one to be written", (topic, partition, offset + 1))  # the end offset
    refused("At this address stands \"somebody's record", (topic, (partition + 1) % 6, 3))
    refused("has no offset", (topic, partition, offset + 7))
    refused("has no partition 6", (topic, 6, offset))
    refused("not to orders", ("orders", partition, offset))
    refused("three parts", (partition, offset))
    refused("Three things make it up", None)
    refused("This is text", (topic, partition, offset), "My first record")
    refused("begins where its TopicPartition says", (topic, partition, offset), read(greetings, (topic, partition, 0)))
    refused("Give check() what you read", (topic, partition, offset), None)

    assert check(
        "00_first_record", greetings, coordinates=(topic, partition, offset), read_back=read(greetings, (topic, partition, offset))
    ), capsys.readouterr().out

"""What tests of several contracts use: topics, records, settings, and which back ends a test is for."""

from __future__ import annotations

import uuid

import pytest
from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import AdminClient, ConfigEntry, ConfigResource, ResourceType

from kafkalab import Cluster
from kafkalab.cluster.offsets import watermarks
from support import PATIENCE, create

__all__ = ["DOCKER_AT_LENGTH", "ONLY_LOCAL", "configs", "count_records", "in_sync", "make_topic", "send"]

ONLY_LOCAL = pytest.mark.parametrize("backend", ["local"], indirect=True)
"""For what only local processes can do."""

DOCKER_AT_LENGTH = pytest.mark.parametrize(
    "backend", ["local", pytest.param("docker", marks=[pytest.mark.docker, pytest.mark.at_length])], indirect=True
)
"""For what kafkalab does itself, whatever its back end: on Docker `make test-all` looks at it again."""


def make_topic(cluster: Cluster, partitions: int = 6, replicas: int = 3, **config: str) -> str:
    """A topic of a name of its own, with all its replicas in sync."""
    topic = f"t-{uuid.uuid4().hex[:6]}"
    create(cluster, topic, partitions, replicas, **config)
    return topic


def in_sync(cluster: Cluster, topic: str) -> None:
    """Wait until all replicas of a topic are in sync."""
    cluster.wait_for(lambda v: v.in_sync(topic), f"all replicas of {topic} in sync", PATIENCE)


def send(cluster: Cluster, topic: str, count: int, bootstrap: str | None = None, **settings: object) -> list[KafkaError | None]:
    """Send so many records; what each delivery report says."""
    outcomes: list[KafkaError | None] = []
    # A short socket timeout: a broker that hangs or is cut off still takes a client's questions.
    config = cluster.client_config(acks="all", enable_idempotence=True, socket_timeout_ms=3000, **settings)
    producer = Producer(config | ({"bootstrap.servers": bootstrap} if bootstrap else {}))
    for i in range(count):
        producer.produce(topic, f"v{i}", on_delivery=lambda error, _: outcomes.append(error))
    assert producer.flush(PATIENCE) == 0
    return outcomes


def count_records(cluster: Cluster, topic: str) -> int:
    """How many records a topic holds."""
    return sum(high - low for low, high in watermarks(cluster, topic).values())


def configs(cluster: Cluster, broker: int = 0) -> dict[str, ConfigEntry]:
    """The settings that a broker says it has."""
    resource = ConfigResource(ResourceType.BROKER, str(broker))
    admin = AdminClient(cluster.client_config())
    return admin.describe_configs([resource])[resource].result()

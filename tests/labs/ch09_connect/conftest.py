"""Fixtures for the tests of chapter 9's labs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AdminClient

from connect_support import ask
from kafkalab import Cluster, ConnectCluster
from support import BACKEND


@pytest.fixture(scope="module")
def single() -> Iterator[Cluster]:
    """A broker, for all tests of a module."""
    with Cluster(brokers=1, backend=BACKEND) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def _worker(single: Cluster) -> Iterator[ConnectCluster]:
    connect = ConnectCluster(single)
    connect.add_plugin("debezium-postgres")
    with connect:
        yield connect


@pytest.fixture
def connect(single: Cluster, _worker: ConnectCluster) -> Iterator[ConnectCluster]:
    """A worker without connectors of earlier tests; nor has its cluster any topic or offset of theirs."""
    yield _worker
    for name in ask(_worker, "GET", "/connectors"):
        ask(_worker, "PUT", f"/connectors/{name}/stop")
        ask(_worker, "DELETE", f"/connectors/{name}/offsets")
        ask(_worker, "DELETE", f"/connectors/{name}")
    admin = AdminClient(single.client_config())
    if topics := [topic for topic in single.describe(groups=False).topics if not topic.startswith("connect-")]:
        for deleted in admin.delete_topics(topics).values():
            deleted.result()
        single.wait_for(lambda v: not set(topics) & set(v.topics), "the topics to be gone")

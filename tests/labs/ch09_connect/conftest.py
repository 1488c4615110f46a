"""Fixtures for the tests of chapter 9's labs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from connect_support import ask
from kafkalab import Cluster, ConnectCluster, PostgreSQL
from support import BACKEND, delete_topics


@pytest.fixture(scope="package")
def single() -> Iterator[Cluster]:
    """A broker, for all tests of the chapter."""
    with Cluster(brokers=1, backend=BACKEND) as cluster:
        yield cluster


@pytest.fixture(scope="package")
def server() -> Iterator[PostgreSQL]:
    """A database server, for all tests of the chapter; each makes its tables, and drops them."""
    with PostgreSQL() as server:
        yield server


@pytest.fixture(scope="package")
def _worker(single: Cluster) -> Iterator[ConnectCluster]:
    connect = ConnectCluster(single)
    for plugin in ("debezium-postgres", "jdbc", "mqtt-source"):
        connect.add_plugin(plugin)
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
    topics = single.describe(groups=False).topics
    delete_topics(single, [topic for topic in topics if not topic.startswith("connect-")])

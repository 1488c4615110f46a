"""What `SchemaRegistry` guarantees, beside a cluster on every back end."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlparse

import psutil
import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.error import SchemaRegistryError

from contract_support import DOCKER_AT_LENGTH
from kafkalab import Cluster, SchemaRegistry
from kafkalab.errors import ClusterNotRunning, PortInUse, RegistryFailed
from support import commands, in_a_fork

pytestmark = DOCKER_AT_LENGTH  # it talks to a cluster as any client does

MOST_MEMORY = 300 << 20


def avro(*fields: str | dict) -> Schema:
    """A record with these fields: strings, unless more is said."""
    described = [{"name": f, "type": "string"} if isinstance(f, str) else f for f in fields]
    return Schema(json.dumps({"type": "record", "name": "Employee", "fields": described}), "AVRO")


AGE = {"name": "age", "type": "int", "default": -1}


@pytest.fixture(scope="module")
def cluster(backend: str) -> Iterator[Cluster]:
    with Cluster(1, backend=backend) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def registry(cluster: Cluster) -> Iterator[SchemaRegistry]:
    with SchemaRegistry(cluster) as registry:
        yield registry


@pytest.fixture
def client(registry: SchemaRegistry) -> SchemaRegistryClient:
    # A client of its own for each test: it remembers what it was told.
    return SchemaRegistryClient({"url": registry.url})


def test_start_returns_a_registry_that_answers(
    registry: SchemaRegistry, client: SchemaRegistryClient, measured: Callable[[str], None]
) -> None:
    assert registry.running
    assert registry.start() is registry
    assert client.get_compatibility() == "BACKWARD"
    assert registry.product in ("Apicurio Registry", "Confluent Schema Registry")
    if registry.product == "Apicurio Registry":
        assert registry.memory() < MOST_MEMORY
    measured(f"{registry.product}: {registry.memory() >> 20} MB")


def test_native_libraries_are_unpacked_into_its_folder(cluster: Cluster, registry: SchemaRegistry) -> None:
    """Else they stay in the folder for temporary data when it's killed."""
    if registry.product != "Apicurio Registry":
        pytest.skip("in a container they go with it")
    [command] = [words for words in commands(cluster.nodes.run.id) if "io.quarkus.runner.GeneratedMain" in words]
    [folder] = [word.partition("=")[2] for word in command if word.startswith("-Djava.io.tmpdir=")]
    assert Path(folder).parent == cluster.nodes.run.directory
    assert list(Path(folder).glob("**/*.so")), "it has compressed an answer by now"


def test_it_listens_on_loopback_only(registry: SchemaRegistry) -> None:
    port = urlparse(registry.url).port
    others = {a.address for found in psutil.net_if_addrs().values() for a in found if a.family == socket.AF_INET} - {
        "127.0.0.1"
    }
    for address in others:
        with socket.socket() as probe:
            probe.settimeout(2)
            assert probe.connect_ex((address, port)) != 0, f"{address}:{port} answers"


def test_its_other_ports_are_on_loopback_too(registry: SchemaRegistry) -> None:
    """Its management port, for one, which only its own start asks."""
    assert registry._server is not None
    if registry.product == "Confluent Schema Registry":  # in a container: what it publishes
        container = registry._server._container
        container.reload()
        published = [binding for bindings in container.ports.values() for binding in bindings or ()]
        assert {binding["HostIp"] for binding in published} == {"127.0.0.1"}
        return
    process = psutil.Process(registry._server._process.pid)
    listening = [c.laddr for c in process.net_connections(kind="inet") if c.status == psutil.CONN_LISTEN]
    assert len(listening) == 2 and urlparse(registry.url).port in {address.port for address in listening}
    assert {address.ip.removeprefix("::ffff:") for address in listening} == {"127.0.0.1"}


def test_what_is_not_compatible_is_refused(client: SchemaRegistryClient) -> None:
    first = client.register_schema("refused", avro("firstName"))
    assert client.register_schema("refused", avro("firstName", AGE)) != first
    assert client.register_schema("refused", avro("firstName")) == first
    with pytest.raises(SchemaRegistryError) as refused:
        client.register_schema("refused", avro("fName"))
    assert refused.value.http_status_code == 409
    assert client.get_versions("refused") == [1, 2]


def test_a_killed_registry_comes_back_with_its_schemas(
    registry: SchemaRegistry, client: SchemaRegistryClient, measured: Callable[[str], None]
) -> None:
    address, ids = registry.url, [client.register_schema(f"kept-{n}", avro(f"f{n}")) for n in range(5)]
    client.set_compatibility("kept-0", "FULL")
    registry.kill()
    assert not registry.running
    began = time.monotonic()
    registry.restart()
    measured(
        f"{registry.product}: {time.monotonic() - began:.1f} s to a restarted one that answers (8 s are allowed on an idle machine)"
    )
    assert registry.running and registry.url == address
    anew = SchemaRegistryClient({"url": registry.url})
    assert [anew.get_latest_version(f"kept-{n}").schema_id for n in range(5)] == ids
    assert anew.get_compatibility("kept-0") == "FULL"
    assert anew.register_schema("kept-5", avro("f5")) not in ids


def test_a_forked_child_leaves_it_alone(registry: SchemaRegistry) -> None:
    in_a_fork(registry.stop)
    assert registry.running


def test_its_schemas_are_in_the_cluster(registry: SchemaRegistry, client: SchemaRegistryClient, cluster: Cluster) -> None:
    client.register_schema("somewhere", avro("a"))
    assert "_schemas" in cluster.describe(groups=False, internal=True).topics


def test_without_a_cluster_there_is_no_registry(backend: str) -> None:
    with pytest.raises(ClusterNotRunning):
        SchemaRegistry(Cluster(1, backend=backend)).start()


def test_a_port_that_is_taken(cluster: Cluster) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(PortInUse):
            SchemaRegistry(cluster, port=taken.getsockname()[1]).start()


@pytest.mark.at_length  # one that was killed comes back with them, too
def test_a_registry_that_was_ended_leaves_its_schemas_to_the_next(
    registry: SchemaRegistry, client: SchemaRegistryClient, cluster: Cluster
) -> None:
    client.register_schema("left", avro("a"))
    registry.stop()
    assert not registry.running
    with SchemaRegistry(cluster) as second:
        assert "left" in SchemaRegistryClient({"url": second.url}).get_subjects()
    registry.start()


def test_it_ends_with_its_cluster(registry: SchemaRegistry, cluster: Cluster) -> None:
    url = registry.url
    cluster.stop()
    assert not registry.running
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", urlparse(url).port)) != 0
    with pytest.raises(RegistryFailed, match=r"call start\(\) first"):
        registry.restart()

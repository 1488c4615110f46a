"""How a cluster starts, grows, changes its version and stops, on every back end."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from confluent_kafka.admin import AdminClient
from docker.client import from_env

from contract_support import DOCKER_AT_LENGTH, configs, count_records, in_sync, make_topic, send
from kafkalab import Cluster, wait_until
from kafkalab.cluster import Listener
from kafkalab.cluster.ports import HOST, reserve_port
from kafkalab.cluster.wire import BrokerConnection
from kafkalab.distribution import KAFKA_VERSION, install_tools
from kafkalab.errors import BackendUnavailable, BrokerFailed, ClusterNotRunning, DowngradeRefused, PortInUse
from support import PATIENCE

RACK = "räck 🙂\nprocess.roles=nonsense\\"


def outcomes_of(*acts: Callable[[], object]) -> list[object]:
    """What each of some acts, carried out at the same time, returned or raised."""

    def outcome(act: Callable[[], object]) -> object:
        try:
            return act()
        except BaseException as error:
            return error

    with ThreadPoolExecutor(len(acts)) as pool:
        return list(pool.map(outcome, acts))


def neighbouring_ports() -> tuple[int, socket.socket]:
    """A free port, and a server that listens on the next one."""
    while True:
        with reserve_port() as free:
            pass
        try:
            return free.port, socket.create_server((HOST, free.port + 1))
        except OSError:
            continue


@pytest.fixture(scope="module")
def taken() -> Iterator[int]:
    """The port of a server; the one before it is free."""
    _, server = neighbouring_ports()
    with server:
        yield server.getsockname()[1]


@pytest.fixture(scope="module")
def neighbours(backend: str, taken: int) -> Iterator[tuple[Cluster, Cluster]]:
    """Two clusters of one broker, started at the same time.

    One of them has a port, a rack and settings of its own; the other one has a listener with a usual port.
    """
    with reserve_port() as free:
        pass
    one = Cluster(1, ports=[free.port], racks=[RACK], settings={"auto.create.topics.enable": False}, backend=backend)
    other = Cluster(1, listeners=[Listener(), Listener("MORE", port=taken - 1)], backend=backend)
    try:
        assert outcomes_of(one.start, other.start) == [one, other]
        yield one, other
    finally:
        one.stop()
        other.stop()


def test_clusters_side_by_side(neighbours: tuple[Cluster, Cluster]) -> None:
    one, other = neighbours
    topic = make_topic(one, 1, 1)
    assert send(one, topic, 5) == [None] * 5
    assert topic not in other.describe().topics
    assert one.describe().cluster_id != other.describe().cluster_id


def test_a_setting_may_hold_any_text(neighbours: tuple[Cluster, Cluster]) -> None:
    """One that is not ASCII, or has several lines, is not taken for other settings."""
    told = configs(neighbours[0])
    assert told["broker.rack"].value == RACK
    assert told["process.roles"].value == "broker,controller"
    assert told["auto.create.topics.enable"].value == "false"


def test_fixed_ports(neighbours: tuple[Cluster, Cluster], make_cluster: Callable[..., Cluster]) -> None:
    one, _ = neighbours
    (port,) = one._lifecycle.spec.ports
    assert one.bootstrap_servers == f"127.0.0.1:{port}"
    with pytest.raises(PortInUse, match=str(port)):
        make_cluster(1, ports=[port]).start()


def test_a_stopped_cluster(neighbours: tuple[Cluster, Cluster], make_cluster: Callable[..., Cluster]) -> None:
    with pytest.raises(ClusterNotRunning, match="call start"):
        make_cluster(1).describe()
    one, other = neighbours
    make_topic(one, 1, 1)
    ended: list[str] = []
    one.nodes.on_stop(lambda: ended.append("first"))
    directory, address = one.nodes.run.directory, one.clients.bootstrap(0)
    one.stop()
    assert ended == ["first"]
    assert not directory.exists()
    with pytest.raises(OSError):
        BrokerConnection(address).metadata()
    with pytest.raises(ClusterNotRunning, match="call start"):
        one.kill(0)
    one.stop()  # again: nothing happens
    assert "not running" in repr(one)
    assert other.describe().brokers[0].state == "up"
    one.start()  # and anew, with nothing in it
    assert not one.describe().topics


def test_add_broker(neighbours: tuple[Cluster, Cluster]) -> None:
    _, cluster = neighbours
    assert cluster.add_broker() == 1
    view = cluster.describe(groups=False)
    assert view.brokers[1].state == "up" and not view.brokers[1].voter
    topic = make_topic(cluster, 4, 2)
    assert {b for p in cluster.describe(groups=False).topics[topic] for b in p.replicas} == {0, 1}
    cluster.stop_broker(1)
    assert cluster.describe(groups=False).moved_from(topic, 1)  # it handed over first
    cluster.restart(1)
    in_sync(cluster, topic)


def test_usual_ports_where_they_are_free(neighbours: tuple[Cluster, Cluster], taken: int) -> None:
    """Broker 0 has the listener's own, which is free; the next one, which the added broker 1 would have, is taken."""
    _, cluster = neighbours
    first, second = (int(address.rpartition(":")[2]) for address in cluster.clients.servers("MORE").split(","))
    assert first == taken - 1 and second != taken
    assert f"broker 1 has MORE at port {second}, for {taken} was taken" in repr(cluster)
    AdminClient({"bootstrap.servers": f"{HOST}:{second}"}).list_topics(timeout=10)


@DOCKER_AT_LENGTH
def test_one_cluster_used_by_two_threads(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(1)
    assert outcomes_of(cluster.start, cluster.start) == [cluster, cluster]
    assert len(cluster.describe(groups=False).brokers) == 1  # not started twice
    assert sorted(map(str, outcomes_of(cluster.add_broker, cluster.add_broker))) == ["1", "2"]

    seen = len(cluster.nodes.faults)

    def stop_soon() -> None:
        wait_until(lambda: len(cluster.nodes.faults) > seen, PATIENCE, "the restart to begin")
        cluster.stop()

    restarted, stopped = outcomes_of(lambda: cluster.restart(1), stop_soon)
    assert isinstance(restarted, ClusterNotRunning) and stopped is None
    assert "was stopped while the restart of broker 1 was under way" in str(restarted)


@DOCKER_AT_LENGTH
def test_stop_waits_for_a_start_that_is_under_way(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(1)
    with ThreadPoolExecutor(1) as pool:
        starting = pool.submit(cluster.start)
        wait_until(lambda: cluster._lifecycle._access is not None, PATIENCE, "the start to be under way", interval=0.001)
        with pytest.raises(ClusterNotRunning, match="is still starting, in another thread"):
            cluster.describe()
        cluster.stop()
        assert starting.result() is cluster
    assert not cluster.nodes.running


@DOCKER_AT_LENGTH
def test_a_setting_that_kafka_refuses(make_cluster: Callable[..., Cluster]) -> None:
    with pytest.raises(BrokerFailed, match=r"(?s)log.retention.hours.*Its last lines"):
        make_cluster(1, settings={"log.retention.hours": "three"}).start()


def test_a_version_that_there_is_not(neighbours: tuple[Cluster, Cluster], make_cluster: Callable[..., Cluster]) -> None:
    _, running = neighbours
    missing = make_cluster(1, version="9.9.9")
    where = (
        "apache/kafka:9.9.9 could not be pulled"
        if missing.nodes.backend == "docker"
        else "there is no Kafka '9.9.9' here; there are"
    )
    with pytest.raises((ValueError, BackendUnavailable), match=where):
        missing.start()
    faults, states = list(running.nodes.faults), running.nodes.states()
    with pytest.raises((ValueError, BackendUnavailable), match=where):
        running.restart(0, version="9.9.9")
    assert (
        not missing.nodes.running and running.nodes.faults == faults and running.nodes.states() == states and states[0] == "up"
    )


@pytest.mark.network
def test_another_version_has_the_same_data_and_stays() -> None:
    with Cluster(1, backend="local", version="4.2.1") as cluster:
        topic = make_topic(cluster, 2, 1)
        assert send(cluster, topic, 20) == [None] * 20
        assert "Kafka version: 4.2.1" in cluster.nodes.logs(0) and f"Kafka version: {KAFKA_VERSION}" not in cluster.nodes.logs(
            0
        )
        cluster.restart(0, version=KAFKA_VERSION)
        in_sync(cluster, topic)
        assert f"Kafka version: {KAFKA_VERSION}" in cluster.nodes.logs(0)
        assert count_records(cluster, topic) == 20
        cluster.restart(0)
        assert cluster.nodes.logs(0).rstrip().count("Kafka version: 4.2.1") == 1

        tool = [str(install_tools() / "kafka-features.sh"), "--bootstrap-server", cluster.bootstrap_servers]
        subprocess.run([*tool, "upgrade", "--release-version", "4.3"], check=True)
        wait_until(
            lambda: cluster.nodes.features()[0].finalized["metadata.version"] == 30,
            PATIENCE,
            "the broker to know the new level",
        )
        faults = list(cluster.nodes.faults)
        with pytest.raises(DowngradeRefused, match=r"Broker 0 can't go back to Kafka 4\.2\.1.*level 30.*only up to level 29"):
            cluster.restart(0, version="4.2.1")
        assert cluster.nodes.faults == faults and count_records(cluster, topic) == 20  # it wasn't touched


@pytest.mark.docker
def test_another_version_on_docker_is_another_container_with_the_same_data() -> None:
    client = from_env()
    client.images.get(f"apache/kafka:{KAFKA_VERSION}").tag("apache/kafka", "4.3.999")  # as good as another version
    try:
        with Cluster(1, backend="docker") as cluster:
            topic, address = make_topic(cluster, 1, 1), cluster.clients.bootstrap(0)
            assert send(cluster, topic, 20) == [None] * 20
            cluster.isolate(0)
            cluster.restart(0, version="4.3.999")
            label = {"label": f"kafkalab.run={cluster.nodes.run.id}"}
            (container,) = client.containers.list(all=True, filters=label)
            assert container.image.tags and container.attrs["Config"]["Image"] == "apache/kafka:4.3.999"
            assert cluster.clients.bootstrap(0) == address and count_records(cluster, topic) == 20
            volumes = {mount["Name"] for mount in container.attrs["Mounts"]}
            cluster.restart(0)
        assert not volumes & {volume.name for volume in client.volumes.list()}
    finally:
        client.images.remove("apache/kafka:4.3.999")
        client.close()

"""What services say before they start, and of their own present life alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

import kafkalab.services.connect as connect_module
import kafkalab.services.java_process as java_module
import kafkalab.services.mirror as mirror_module
import kafkalab.services.postgresql_process as postgresql_module
from kafkalab import SchemaRegistry
from kafkalab.errors import ConnectFailed, DatabaseFailed
from kafkalab.lifeline import Run
from kafkalab.services import ConnectCluster, MirrorMaker, MqttBroker, PostgreSQL

FLOW = {"first->second.enabled": True}
CLUSTERS = {"first": None, "second": None}


@pytest.mark.parametrize("port", [99_999, -1, "9092", True, 8081.0])
def test_a_port_that_cannot_be_one_is_named_at_once(port: object) -> None:
    with pytest.raises(ValueError, match=f"the port of the schema registry is a number from 0 to 65535, not {port!r}"):
        SchemaRegistry(None, port=port)


def test_mirrormaker_reads_settings_as_clusters_do() -> None:
    mirror = MirrorMaker(CLUSTERS, {**FLOW, "first.offset.lag.max": 0})
    assert mirror.settings == {"first->second.enabled": "true", "first.offset.lag.max": "0"}
    with pytest.raises(ValueError, match=r"the setting first\.group\.id has no value"):
        MirrorMaker(CLUSTERS, {**FLOW, "first.group.id": None})


def test_mirrormakers_reason_is_of_its_present_life(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    run = Run("mirror-1")
    run.directory.mkdir(parents=True)
    said = [b"org.kafka.OldException: of the first life\n", b"org.kafka.NewException: of the second life\n"]

    def says(*_: object, **__: object) -> SimpleNamespace:
        with (run.directory / "mirror.log").open("ab") as log:
            log.write(said.pop(0))
        return SimpleNamespace(pid=1 << 30, poll=lambda: 1)  # no process has that number

    monkeypatch.setattr("kafkalab.services.server.subprocess.Popen", says)
    monkeypatch.setattr(mirror_module, "connect_classpath", lambda _: "")
    monkeypatch.setattr(java_module, "archive_options", tuple)
    monkeypatch.setattr(java_module, "java_command", lambda: "java")
    mirror = MirrorMaker(CLUSTERS, FLOW)
    monkeypatch.setattr(mirror, "_properties", dict)
    server = mirror._make_server(run)
    mirror._launch(server)
    assert "MirrorMaker ended by itself: OldException: of the first life (mirror.log)" in server.obituary()
    mirror._launch(server)
    assert "MirrorMaker ended by itself: NewException: of the second life (mirror.log)" in server.obituary()
    assert "OldException" not in server.obituary()
    assert "OldException" in server.logs()  # which holds all lives


@pytest.mark.parametrize("workers", [0, -1, True, "2", 1.5])
def test_a_number_of_workers_that_cannot_be_one_is_named_at_once(workers: object) -> None:
    with pytest.raises(ValueError, match="the number of workers is a number from 1 on"):
        ConnectCluster(None, workers)


@pytest.mark.parametrize("port", [99_999, -1, "5432"])
def test_a_port_of_postgresql_that_cannot_be_one_is_named_at_once(port: object) -> None:
    with pytest.raises(ValueError, match=f"the port of PostgreSQL is a number from 0 to 65535, not {port!r}"):
        PostgreSQL(port=port)


@pytest.mark.parametrize("port", [99_999, -1, "1883"])
def test_a_port_of_the_mqtt_broker_that_cannot_be_one_is_named_at_once(port: object) -> None:
    with pytest.raises(ValueError, match=f"the port of the MQTT broker is a number from 0 to 65535, not {port!r}"):
        MqttBroker(port=port)


def test_root_is_told_what_postgresql_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafkalab.services.postgresql_process.os.geteuid", lambda: 0)
    monkeypatch.setattr("kafkalab.services.postgresql_process.shutil.which", lambda _: None)
    with pytest.raises(DatabaseFailed, match="doesn't run as root, and setpriv .* is not here: work as another user"):
        postgresql_module._unprivileged()


class FakeCluster:
    """Keeps what it is to call when it stops."""

    def __init__(self) -> None:
        self.nodes = self
        self.callbacks: list[Callable[[], None]] = []

    def on_stop(self, callback: Callable[[], None]) -> None:
        self.callbacks.append(callback)


def test_a_worker_that_cannot_be_added_leaves_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    class FakeWorker:
        destroyed = 0

        def __init__(self, *_: object) -> None:
            pass

        def start(self) -> None:
            raise ConnectFailed("it ended")

        def stop(self) -> None:
            pass

        def destroy(self) -> None:
            FakeWorker.destroyed += 1

    monkeypatch.setattr(connect_module, "ConnectWorker", FakeWorker)
    monkeypatch.setattr(connect_module, "connect_plugins", lambda _: [])
    connect = ConnectCluster(FakeCluster())
    with pytest.raises(ConnectFailed, match="there are no Connect workers yet"):
        connect.add_worker()
    there = connect._workers = [FakeWorker()]
    with pytest.raises(ConnectFailed, match="it ended"):
        connect.add_worker()
    assert connect.workers == tuple(there) and FakeWorker.destroyed == 1
    connect.stop()


def test_connect_asks_its_cluster_once_to_be_told_of_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connect_module, "connect_plugins", lambda _: [])
    cluster = FakeCluster()
    connect = ConnectCluster(cluster)
    for _ in range(2):
        assert connect.plugins.is_dir()
        connect.stop()
    [ends] = cluster.callbacks
    folder = connect.plugins
    ends()
    assert not folder.exists()
    assert connect.plugins.is_dir() and len(cluster.callbacks) == 2  # the cluster has forgotten the first one
    connect.stop()


@pytest.mark.parametrize(("brokers", "copies"), [(1, "1"), (2, "2"), (4, "3")])
def test_connects_topics_get_as_many_replicas_as_there_are_brokers_and_at_most_three(
    monkeypatch: pytest.MonkeyPatch, brokers: int, copies: str
) -> None:
    monkeypatch.setattr(connect_module, "connect_plugins", lambda _: [])
    addresses = [f"127.0.0.1:{number}" for number in range(brokers)] + [""]  # a controller of its own has none
    view = SimpleNamespace(brokers={number: SimpleNamespace(address=address) for number, address in enumerate(addresses)})
    cluster = FakeCluster()
    cluster.bootstrap_servers, cluster.describe = addresses[0], lambda groups: view  # type: ignore[attr-defined]
    connect = ConnectCluster(cluster)
    settings = connect.worker_settings()
    assert {settings[f"{kind}.storage.replication.factor"] for kind in ("config", "offset", "status")} == {copies}
    connect.stop()
    own = ConnectCluster(cluster, settings={"status.storage.replication.factor": 1})
    assert own.worker_settings()["status.storage.replication.factor"] == "1"
    own.stop()

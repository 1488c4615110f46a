"""What `PostgreSQL` guarantees."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from docker.client import from_env
from docker.errors import NotFound
from docker.models.containers import Container

from database_support import tell
from kafkalab import resources
from kafkalab.cluster.backends import docker_engine
from kafkalab.cluster.ports import HOST, reserve_port
from kafkalab.errors import BackendUnavailable, DatabaseFailed, NotEnoughResources, PortInUse
from kafkalab.lifeline import RUN_LABEL, marked_processes
from kafkalab.services import PostgreSQL
from support import own_runs


@pytest.fixture(scope="module")
def server(backend: str) -> Iterator[PostgreSQL]:
    with PostgreSQL(backend=backend) as server:
        yield server


def test_what_was_committed_survives_a_kill_and_a_restart(server: PostgreSQL) -> None:
    url = server.url
    tell(server, "CREATE TABLE driver (id INT PRIMARY KEY, name TEXT)")
    tell(server, "INSERT INTO driver VALUES (10, 'Diana'), (11, 'Micky')")
    with psycopg.connect(url) as open_one:
        open_one.execute("INSERT INTO driver VALUES (12, 'Laurence')")
        server.kill()
        assert not server.running
        with pytest.raises(psycopg.OperationalError):
            open_one.execute("SELECT 1")
    server.start()
    assert server.url == url and tell(server, "SELECT id FROM driver ORDER BY id") == [(10,), (11,)]
    server.restart()
    assert server.url == url and tell(server, "SELECT count(*) FROM driver") == [(2,)]
    assert "database system was not properly shut down" in server.logs()


def containers(server: PostgreSQL) -> list[Container]:
    return from_env().containers.list(all=True, filters={"label": f"{RUN_LABEL}={server._run.id}"})


def test_it_listens_on_loopback_only_and_asks_for_the_password(server: PostgreSQL, backend: str) -> None:
    if backend == "docker":
        [container] = containers(server)
        assert [p for p in container.ports.values() if p] == [[{"HostIp": HOST, "HostPort": str(server.port)}]]
    else:
        assert tell(server, "SHOW listen_addresses") == [(HOST,)]
    wrong = server.url.replace(server.password, "guessed")
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(wrong)


def test_changes_can_be_captured(server: PostgreSQL) -> None:
    tell(server, "CREATE TABLE truck (name TEXT PRIMARY KEY)")
    tell(server, "CREATE PUBLICATION trucks FOR TABLE truck")
    tell(server, "SELECT pg_create_logical_replication_slot('changes', 'pgoutput')")
    tell(server, "INSERT INTO truck VALUES ('Mack')")
    how = "'proto_version', '1', 'publication_names', 'trucks'"
    changes = tell(server, f"SELECT data FROM pg_logical_slot_get_binary_changes('changes', NULL, NULL, {how})")
    assert [change for (change,) in changes if change[:1] == b"I" and b"Mack" in change]


def test_a_setting_of_ones_own_wins(backend: str) -> None:
    with PostgreSQL({"wal_level": "replica", "work_mem": "1MB"}, backend=backend) as server:
        assert tell(server, "SHOW wal_level") == [("replica",)] and tell(server, "SHOW work_mem") == [("1MB",)]


def test_one_that_cannot_start_says_why_and_leaves_nothing(monkeypatch: pytest.MonkeyPatch, backend: str) -> None:
    before = own_runs()
    with monkeypatch.context() as short:
        short.setattr(resources, "available_memory", lambda: 40 << 20)
        with pytest.raises(NotEnoughResources, match="PostgreSQL needs about 60 MB of memory, but only 40 MB"):
            PostgreSQL(backend=backend).start()
    server = PostgreSQL({"not_there": 1}, backend=backend)
    with pytest.raises(DatabaseFailed, match='unrecognized configuration parameter "not_there"'):
        server.start()
    with reserve_port() as held, pytest.raises(PortInUse, match=str(held.port)):
        PostgreSQL(port=held.port, backend=backend).start()
    assert own_runs() == before
    with pytest.raises(DatabaseFailed, match="call start"):
        server.url  # noqa: B018
    with pytest.raises(DatabaseFailed, match="doesn't run"):
        server.kill()


def test_nothing_is_left_when_it_stops(backend: str) -> None:
    server = PostgreSQL(backend=backend).start()
    run, own = server._run, server._server
    assert run is not None
    [held] = own._reservations
    left = containers(server) if backend == "docker" else marked_processes(run.id)
    assert left
    server.stop()
    assert not run.directory.exists() and not marked_processes(run.id)
    for container in left if backend == "docker" else []:
        with pytest.raises(NotFound):
            container.reload()
    assert held._held.fileno() == -1  # the reservation has let go of its port
    server.stop()  # again


def test_a_container_that_cannot_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(docker_engine, "can_be_had", lambda image: False)
    with pytest.raises(BackendUnavailable, match="no Docker engine answers that has the image postgres:18 or can pull it"):
        PostgreSQL(backend="docker").start()
    monkeypatch.setenv("KAFKALAB_BACKEND", "docker")
    with PostgreSQL() as server:  # beside brokers in containers, a process will do
        assert tell(server, "SHOW listen_addresses") == [(HOST,)]
    with pytest.raises(ValueError, match="'local' or 'docker', not 'attached'"):
        PostgreSQL(backend="attached")

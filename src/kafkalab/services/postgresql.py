"""`PostgreSQL`: a real database server, from a notebook cell."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from typing import Protocol, Self

import psycopg

from kafkalab.cluster.backends import preferred
from kafkalab.cluster.backends.failure import ended, log_tail
from kafkalab.cluster.ports import HOST
from kafkalab.cluster.spec import require_port
from kafkalab.environment import POSTGRESQL, forget
from kafkalab.errors import BackendUnavailable, DatabaseFailed
from kafkalab.lifeline import Owner, Run, reap
from kafkalab.rebinding import end_nameless, note_started
from kafkalab.resources import require_memory
from kafkalab.settings import as_text
from kafkalab.waiting import wait_until

__all__ = ["PostgreSQL"]

_MEMORY = 60 << 20
_START_SECONDS = 120.0

_SETTINGS: Mapping[str, str] = {
    # Change data capture reads rows from the write-ahead log. Only at this level it holds them.
    "wal_level": "logical",
    "shared_buffers": "16MB",
    # Safe when a process is killed, but not when the machine loses power.
    "fsync": "off",
}


class _Server(Protocol):
    port: int

    @property
    def running(self) -> bool: ...
    @property
    def status(self) -> int | None: ...
    def launch(self) -> None: ...
    def revive(self) -> None: ...
    def kill(self) -> None: ...
    def shut_down(self) -> None: ...
    def destroy(self) -> None: ...
    def logs(self) -> str: ...


class PostgreSQL:
    """A PostgreSQL server on loopback. It's set up for change data capture, too (``wal_level=logical``).

    It's a process from a Python package with PostgreSQL's programs (as root it runs as the user ``nobody``), or a container of
    the official image. It ends with this process, and its data with it.

    Parameters
    ----------
    settings
        Server settings. They override those that kafkalab adds.
    port
        Its port; with 0 any free one.
    backend
        ``local`` for the process, ``docker`` for the container. None takes the container where a cluster would run on Docker
        and the image is there or can be pulled; else the process.

    Raises
    ------
    ValueError
        If the port isn't a possible one, a setting has no value, or there's no such back end.

    Attributes
    ----------
    host, user, password, database
        What clients need besides `port`. The user is the superuser. Each object has a new password.

    Examples
    --------
    >>> with PostgreSQL() as server, psycopg.connect(server.url) as connection:  # doctest: +SKIP
    ...     connection.execute("CREATE TABLE driver (id INT PRIMARY KEY, name TEXT)")
    """

    host, user, database = HOST, "postgres", "postgres"

    def __init__(self, settings: Mapping[str, object] | None = None, *, port: int = 0, backend: str | None = None) -> None:
        require_port(port, 0, "the port of PostgreSQL")
        if backend not in (None, "local", "docker"):
            raise ValueError(f"the back end of PostgreSQL is 'local' or 'docker', not {backend!r}")
        self.password = secrets.token_urlsafe(12)
        self._settings = {**_SETTINGS, **as_text(settings or {})}
        self._wanted, self._backend = port, backend
        self._run: Run | None = None
        self._owner = Owner()
        self._server: _Server | None = None
        end_nameless()

    # -- life ---------------------------------------------------------------------------------------------------

    def start(self) -> Self:
        """Start it, or start it again with its data after a kill. On return, it answers. Does nothing if it already runs.

        Raises
        ------
        DatabaseFailed
            When it ends by itself; with its log's last lines. When root starts it on a system without ``setpriv``.
        BackendUnavailable
            When ``docker`` was asked for, and no engine has the image or can pull it.
        PortInUse, NotEnoughResources
            Why it could not start.
        WaitTimeout
            When it runs but does not answer in time.
        """
        if self.running:
            return self
        if self._server is not None:
            self._begin(self._server, self._server.revive)
            return self
        # What is set for another server's clients would turn this server's clients away, in cells too: libpq reads it.
        forget(POSTGRESQL)
        kind = _kind(self._backend)
        require_memory(_MEMORY, "PostgreSQL")
        try:
            self._run, self._owner = Run.create("postgresql"), Owner()
            self._server = kind(self._run, self._settings, self.password, self._wanted)
            self._begin(self._server, self._server.launch)
        except BaseException:
            self.stop()
            raise
        note_started(self, "PostgreSQL server", lambda: self._server is not None, self.stop)
        return self

    def stop(self) -> None:
        """End it. On return, its processes, its port and its data are gone.

        Does nothing in a process that was forked after `start`: the server belongs to its parent.
        """
        if not self._owner.is_me:
            return
        server, self._server = self._server, None
        if server is not None:
            server.destroy()
        run, self._run = self._run, None
        if run is not None:
            reap(run)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<PostgreSQL: {'running' if self.running else 'not running'}>"

    @property
    def running(self) -> bool:
        """Whether it runs."""
        return self._server is not None and self._server.running

    # -- faults -------------------------------------------------------------------------------------------------

    def kill(self) -> None:
        """Kill all its processes with SIGKILL, as a crash would. On return, they're gone. Committed data survives.

        Raises
        ------
        DatabaseFailed
            When it doesn't run.
        """
        if self._server is None or not self.running:
            raise DatabaseFailed("PostgreSQL can't be killed: it doesn't run")
        self._server.kill()

    def restart(self) -> None:
        """Start it again at the same port, with its data. If it runs, stop it cleanly first. On return, it answers.

        Raises
        ------
        DatabaseFailed
            When it was not started, or ends before it answers.
        """
        server = self._started()
        server.shut_down()
        self._begin(server, server.revive)

    # -- sight --------------------------------------------------------------------------------------------------

    @property
    def port(self) -> int:
        """The port on which it listens."""
        return self._started().port

    @property
    def url(self) -> str:
        """Its address for PostgreSQL's clients, with the password: ``psycopg.connect(server.url)``."""
        return f"postgresql://{self.user}:{self.password}@{self.host}:{self.port}/{self.database}"

    def logs(self) -> str:
        """Return its log since its first start."""
        return self._started().logs()

    # -- parts --------------------------------------------------------------------------------------------------

    def _started(self) -> _Server:
        if self._server is None:
            raise DatabaseFailed("PostgreSQL is not running: call start() first")
        return self._server

    def _begin(self, server: _Server, begin: Callable[[], None]) -> None:
        """Start the server with `begin`, and wait until it answers."""
        before = len(server.logs())
        begin()

        def answers() -> bool:
            if not server.running:
                log = server.logs()[before:]
                why = ended("PostgreSQL", server.status, {"postgresql.log": log})
                raise DatabaseFailed(f"{why}\nIts last lines:\n{log_tail(log)}")
            with psycopg.connect(self.url, connect_timeout=10):
                return True

        wait_until(answers, _START_SECONDS, "PostgreSQL to answer", ignore=(psycopg.OperationalError,))


def _kind(backend: str | None) -> Callable[[Run, Mapping[str, str], str, int], _Server]:
    if backend == "docker" or (backend is None and preferred() == "docker"):
        from kafkalab.cluster.backends.docker_engine import can_be_had  # Docker's client takes half a second to load
        from kafkalab.services.postgresql_container import IMAGE, ContainerServer

        if can_be_had(IMAGE):
            return ContainerServer
        if backend == "docker":
            raise BackendUnavailable(f"no Docker engine answers that has the image {IMAGE} or can pull it")
    from kafkalab.services.postgresql_process import ProcessServer

    return ProcessServer

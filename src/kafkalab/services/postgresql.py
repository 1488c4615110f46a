"""`PostgreSQL`: a real database server, from a notebook cell."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

import psycopg

from kafkalab.cluster.backends import preferred
from kafkalab.cluster.ports import HOST
from kafkalab.cluster.spec import require_port
from kafkalab.environment import POSTGRESQL, forget
from kafkalab.errors import BackendUnavailable, DatabaseFailed
from kafkalab.lifeline import Run
from kafkalab.resources import require_memory
from kafkalab.services.base import RestartableServer
from kafkalab.settings import as_text

if TYPE_CHECKING:
    from kafkalab.services.postgresql_container import ContainerServer
    from kafkalab.services.postgresql_process import ProcessServer

__all__ = ["PostgreSQL"]

_Server: TypeAlias = "ContainerServer | ProcessServer"

_MEMORY = 60 << 20

_SETTINGS: Mapping[str, str] = {
    # Change data capture reads rows from the write-ahead log. Only at this level it holds them.
    "wal_level": "logical",
    "shared_buffers": "16MB",
    # Safe when a process is killed, but not when the machine loses power.
    "fsync": "off",
}


class PostgreSQL(RestartableServer["_Server"]):
    """A PostgreSQL server on loopback. It's set up for change data capture, too (``wal_level=logical``).

    It's a process from a Python package with PostgreSQL's programs (as root it runs as the user ``nobody``), or a container of
    the official image. It ends with this process, and its data with it. Committed data survives a kill.

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

    _KIND, _WHO, _NOUN, _FAILURE = "postgresql", "PostgreSQL", "PostgreSQL server", DatabaseFailed
    _NOT_YET = (psycopg.OperationalError,)

    def __init__(self, settings: Mapping[str, object] | None = None, *, port: int = 0, backend: str | None = None) -> None:
        require_port(port, 0, "the port of PostgreSQL")
        if backend not in (None, "local", "docker"):
            raise ValueError(f"the back end of PostgreSQL is 'local' or 'docker', not {backend!r}")
        super().__init__()
        self.password = secrets.token_urlsafe(12)
        self._settings = {**_SETTINGS, **as_text(settings or {})}
        self._port, self._backend = port, backend

    @property
    def port(self) -> int:
        """The port on which it listens."""
        return self._required().port

    @property
    def url(self) -> str:
        """Its address for PostgreSQL's clients, with the password: ``psycopg.connect(server.url)``."""
        return f"postgresql://{self.user}:{self.password}@{self.host}:{self.port}/{self.database}"

    # -- parts --------------------------------------------------------------------------------------------------

    def _require(self) -> None:
        # What is set for another server's clients would turn this server's clients away, in cells too: libpq reads it.
        forget(POSTGRESQL)
        require_memory(_MEMORY, "PostgreSQL")

    def _make_server(self, run: Run) -> _Server:
        if self._backend == "docker" or (self._backend is None and preferred() == "docker"):
            from kafkalab.cluster.backends.docker_engine import can_be_had  # Docker's client takes half a second to load
            from kafkalab.services.postgresql_container import IMAGE, ContainerServer

            if can_be_had(IMAGE):
                return ContainerServer(run, self._settings, self.password, self._port)
            if self._backend == "docker":
                raise BackendUnavailable(f"no Docker engine answers that has the image {IMAGE} or can pull it")
        from kafkalab.services.postgresql_process import ProcessServer

        return ProcessServer(run, self._settings, self.password, self._port)

    def _launch(self, server: _Server) -> None:
        server.begin()

    def _is_ready(self, server: _Server) -> bool:
        with psycopg.connect(self.url, connect_timeout=10):
            return True

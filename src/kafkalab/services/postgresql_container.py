"""A PostgreSQL server in a container of the official image."""

from __future__ import annotations

from collections.abc import Mapping

from kafkalab.lifeline import Run
from kafkalab.services.container import ServerContainer

__all__ = ["IMAGE", "ContainerServer"]

IMAGE = "postgres:18"

_PORT = 5432


class ContainerServer:
    """Its parts are those of `kafkalab.services.postgresql_process.ProcessServer`."""

    def __init__(self, run: Run, settings: Mapping[str, str], password: str, port: int) -> None:
        run.uses_docker()
        self._settings, self._password = settings, password
        self._container = ServerContainer("PostgreSQL", run.id, port)
        self.port = self._container.port

    @property
    def running(self) -> bool:
        """Whether its container runs."""
        return self._container.running

    @property
    def status(self) -> int | None:
        """Its exit status, once it has ended."""
        return self._container.status

    def launch(self) -> None:
        """Make its container and its data, and start it. The image is pulled first, if need be."""
        options = [word for name, value in self._settings.items() for word in ("-c", f"{name}={value}")]
        environment = {"POSTGRES_PASSWORD": self._password, "POSTGRES_INITDB_ARGS": "--no-sync"}
        self._container.create(IMAGE, _PORT, environment, ["postgres", *options])
        self.revive()

    def revive(self) -> None:
        """Start its container."""
        self._container.start()

    def kill(self) -> None:
        """SIGKILL; on return its container has ended, and so have all its processes."""
        self._container.end("SIGKILL")

    def shut_down(self) -> None:
        """Stop it cleanly, without waiting for its clients."""
        self._container.end("SIGINT")

    def destroy(self) -> None:
        """Remove its container with its data, and let go of its port."""
        self._container.destroy()

    def logs(self) -> str:
        """Its log so far, of all its lives."""
        return self._container.logs()

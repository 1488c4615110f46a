"""A PostgreSQL server in a container of the official image."""

from __future__ import annotations

from collections.abc import Mapping

from kafkalab.lifeline import Run
from kafkalab.services.container import ServerContainer

__all__ = ["IMAGE", "ContainerServer"]

IMAGE = "postgres:18"

_PORT = 5432


class ContainerServer:
    """One container, with the methods of `kafkalab.services.postgresql_process.ProcessServer`."""

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
        """Create its container and start it, which creates its data. Pull the image first if it's missing."""
        options = [word for name, value in self._settings.items() for word in ("-c", f"{name}={value}")]
        environment = {"POSTGRES_PASSWORD": self._password, "POSTGRES_INITDB_ARGS": "--no-sync"}
        self._container.create(IMAGE, _PORT, environment, ["postgres", *options])
        self.revive()

    def revive(self) -> None:
        """Start its container."""
        self._container.start()

    def kill(self) -> None:
        """Send SIGKILL. On return, its container has ended with all its processes."""
        self._container.end("SIGKILL")

    def shut_down(self) -> None:
        """Stop it cleanly, without waiting for its clients."""
        self._container.end("SIGINT")

    def destroy(self) -> None:
        """Remove its container with its data, and release its port."""
        self._container.destroy()

    def logs(self) -> str:
        """Return its log since its first start."""
        return self._container.logs()

"""A PostgreSQL server in a container of the official image."""

from __future__ import annotations

import signal
from collections.abc import Mapping

from kafkalab.errors import DatabaseFailed
from kafkalab.lifeline import Run
from kafkalab.services.container import ServerContainer

__all__ = ["IMAGE", "ContainerServer"]

IMAGE = "postgres:18"

_PORT = 5432


class ContainerServer(ServerContainer):
    """One container, with the methods of `kafkalab.services.postgresql_process.ProcessServer`."""

    _END_SIGNAL = signal.SIGINT  # without waiting for its clients

    def __init__(self, run: Run, settings: Mapping[str, str], password: str, port: int) -> None:
        run.uses_docker()
        super().__init__("PostgreSQL", DatabaseFailed, run.id, port)
        self._settings, self._password = settings, password

    def prepare(self) -> None:
        """Create its container. Pull the image first if it's missing."""
        options = [word for name, value in self._settings.items() for word in ("-c", f"{name}={value}")]
        environment = {"POSTGRES_PASSWORD": self._password, "POSTGRES_INITDB_ARGS": "--no-sync"}
        self.create(IMAGE, _PORT, environment, ["postgres", *options])

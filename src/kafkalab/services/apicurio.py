"""Apicurio Registry as a JVM process on this machine, with its Confluent-compatible API and its store in the cluster."""

from __future__ import annotations

import shutil
from pathlib import Path

from kafkalab.cluster import Cluster
from kafkalab.cluster.ports import HOST
from kafkalab.distribution import JVM_OPTIONS, Report, java_command
from kafkalab.distribution.registry import REGISTRY_MAIN, ensure_registry, has_registry, registry_archive, registry_classpath
from kafkalab.errors import RegistryFailed
from kafkalab.resources import require_memory
from kafkalab.security.files import private_folder, write_private
from kafkalab.services.answers import answers_well
from kafkalab.services.server import ServerProcess
from kafkalab.settings import format_properties

__all__ = ["ApicurioServer", "is_prepared", "prepare"]

_MEMORY = 260 << 20


class ApicurioServer(ServerProcess):
    """One server process of a cluster's run. It keeps its schemas in topics of the cluster.

    Parameters
    ----------
    cluster
        A running cluster.
    port
        Its port. With 0, any free one.
    folder
        The folder for its log.
    report
        Called with the progress of its download and preparation.
    """

    product = "Apicurio Registry"

    def __init__(self, cluster: Cluster, port: int, folder: Path, report: Report) -> None:
        super().__init__(cluster.nodes.run, "registry", "the schema registry", RegistryFailed, ports=(port, 0), folder=folder)
        self._cluster, self._report = cluster, report
        self._management_port = self.ports[1]

    @property
    def url(self) -> str:
        """Return the address of its API that is compatible with Confluent's."""
        return f"http://{HOST}:{self.port}/apis/ccompat/v7"

    def prepare(self) -> None:
        """Download it and prepare it for quick starts, unless this machine has it."""
        require_memory(_MEMORY, "a schema registry")
        home = ensure_registry(self._report)
        if not registry_archive().exists():
            registry_archive().make(registry_classpath(home), self._report)

    def begin(self) -> None:
        """Start its process."""
        home = ensure_registry(self._report)
        kafka = self._cluster.clients.service_config()
        settings = {
            "quarkus.http.host": HOST,
            "quarkus.http.port": self.port,
            "quarkus.management.host": HOST,
            "quarkus.management.port": self._management_port,
            "quarkus.log.level": "WARN",
            "quarkus.http.access-log.enabled": "false",
            "java.util.logging.manager": "org.jboss.logmanager.LogManager",
            # Like Confluent's server: schemas in the cluster itself, and BACKWARD by default.
            "apicurio.storage.kind": "kafkasql",
            "apicurio.kafkasql.bootstrap.servers": kafka.pop("bootstrap.servers"),
            "apicurio.kafkasql.topic": "_schemas",
            "apicurio.rules.global.compatibility": "BACKWARD",
            # Its tables are in memory, filled from the topic. They need no pool of twenty connections.
            "apicurio.datasource.jdbc.initial-size": 2,
            "apicurio.datasource.jdbc.min-size": 2,
            "apicurio.storage.snapshot.location": self.folder,
            "java.io.tmpdir": self.folder,  # for native libraries, so that they're removed with it
            # At its start it looks twice for a snapshot of its tables, for 5 s each by default. There are none here.
            "apicurio.kafkasql.consumer.poll.timeout": 100,
        }
        if kafka:  # of a secured cluster: in a file, because everybody can read a process's arguments
            private_folder(self.folder)
            login = {f"apicurio.kafka.common.{name}": value for name, value in kafka.items()}
            settings["quarkus.config.locations"] = write_private(self.folder / "kafka.properties", format_properties(login))
        options = registry_archive().options(registry_classpath(home))
        self.launch(
            [str(java_command()), "-Xmx128m", *JVM_OPTIONS, *options,
             *(f"-D{name}={value}" for name, value in settings.items()),
             "-cp", registry_classpath(home), REGISTRY_MAIN],
        )  # fmt: skip

    def answers(self) -> bool:
        """Return whether it answers and knows all its schemas."""
        return answers_well(f"http://{HOST}:{self._management_port}/health/ready") and answers_well(f"{self.url}/subjects")

    def destroy(self) -> None:
        """Kill it, release its ports, and remove its folder."""
        super().destroy()
        shutil.rmtree(self.folder, ignore_errors=True)


def is_prepared() -> bool:
    """Return whether it's in the cache and prepared for quick starts."""
    return has_registry() and registry_archive().is_whole(thoroughly=True)


def prepare(report: Report) -> None:
    """Download it and prepare it for quick starts.

    Raises
    ------
    DownloadError, HashMismatch, JavaError
        If it can't be downloaded or prepared. The message says why.
    """
    home = ensure_registry(report)
    registry_archive().make(registry_classpath(home), report)

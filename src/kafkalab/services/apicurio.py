"""Apicurio Registry as a JVM process on this machine, with its Confluent-compatible API and its store in the cluster."""

from __future__ import annotations

import shutil
import signal
import subprocess
from pathlib import Path

import psutil

from kafkalab.cluster import Cluster
from kafkalab.cluster.backends.failure import ended, log_tail
from kafkalab.cluster.ports import HOST, reserve_port
from kafkalab.distribution import JVM_OPTIONS, Report, java_command
from kafkalab.distribution.registry import REGISTRY_MAIN, ensure_registry, has_registry, registry_archive, registry_classpath
from kafkalab.errors import RegistryFailed
from kafkalab.resources import require_memory
from kafkalab.services.answers import answers_well
from kafkalab.waiting import wait_until

__all__ = ["ApicurioServer", "is_prepared", "prepare"]

_MEMORY = 260 << 20
_READY_SECONDS = 90
_END_SECONDS = 20


class ApicurioServer:
    """One server process. `kafkalab.services.SchemaRegistry` is its public side.

    Parameters
    ----------
    cluster
        A running cluster. The server keeps its schemas in topics there, and its process belongs to the cluster's run.
    port
        Its port. With 0, any free one.
    folder
        The folder for its log.
    report
        Called with the progress of its download and preparation.
    """

    product = "Apicurio Registry"

    def __init__(self, cluster: Cluster, port: int, folder: Path, report: Report) -> None:
        self._cluster, self._folder, self._report = cluster, folder, report
        # Reserved as long as this object lives, so that it gets the same ports after a crash.
        self._held = [reserve_port(port), reserve_port()]
        self._port, self._management_port = (held.port for held in self._held)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Return the address of its API that is compatible with Confluent's."""
        return f"http://{HOST}:{self._port}/apis/ccompat/v7"

    @property
    def running(self) -> bool:
        """Return whether its process runs."""
        return self._process is not None and self._process.poll() is None

    def launch(self) -> None:
        """Start it. On return, it answers. The first time on this machine, download and prepare it."""
        require_memory(_MEMORY, "a schema registry")
        self._home = ensure_registry(self._report)
        archive = registry_archive()
        if not archive.exists():
            archive.make(registry_classpath(self._home), self._report)
        self.revive()

    def revive(self) -> None:
        """Start its process again at the same port. On return, it answers and knows all its schemas."""
        began = len(self.logs())
        self._spawn(registry_archive().options(registry_classpath(self._home)))
        self._await_ready(began)

    def kill(self) -> None:
        """Send SIGKILL. On return, its process is gone."""
        self._end(signal.SIGKILL)

    def terminate(self) -> None:
        """Send SIGTERM. On return, its process is gone."""
        self._end(signal.SIGTERM)

    def destroy(self) -> None:
        """Kill it, release its ports, and remove its log."""
        self._end(signal.SIGKILL)
        for held in self._held:
            held.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def logs(self) -> str:
        """Return its log so far."""
        path = self._folder / "registry.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def memory(self) -> int:
        """Return its resident memory, in bytes."""
        assert self._process is not None
        return int(psutil.Process(self._process.pid).memory_info().rss)

    # -- parts --------------------------------------------------------------------------------------------------

    def _spawn(self, options: list[str]) -> None:
        self._folder.mkdir(mode=0o700, exist_ok=True)
        settings = {
            "quarkus.http.host": HOST,
            "quarkus.http.port": self._port,
            "quarkus.management.host": HOST,
            "quarkus.management.port": self._management_port,
            "quarkus.log.level": "WARN",
            "quarkus.http.access-log.enabled": "false",
            "java.util.logging.manager": "org.jboss.logmanager.LogManager",
            # Like Confluent's server: schemas in the cluster itself, and BACKWARD by default.
            "apicurio.storage.kind": "kafkasql",
            "apicurio.kafkasql.bootstrap.servers": self._cluster.bootstrap_servers,
            "apicurio.kafkasql.topic": "_schemas",
            "apicurio.rules.global.compatibility": "BACKWARD",
            # Its tables are in memory, filled from the topic. They need no pool of twenty connections.
            "apicurio.datasource.jdbc.initial-size": 2,
            "apicurio.datasource.jdbc.min-size": 2,
            "apicurio.storage.snapshot.location": self._folder,
            "java.io.tmpdir": self._folder,  # for native libraries, so that they're removed with it
            # At its start it looks twice for a snapshot of its tables, for 5 s each by default. There are none here.
            "apicurio.kafkasql.consumer.poll.timeout": 200,
        }
        with (self._folder / "registry.log").open("a") as log:
            self._process = subprocess.Popen(
                [str(java_command()), "-Xmx128m", *JVM_OPTIONS, *options,
                 *(f"-D{name}={value}" for name, value in settings.items()),
                 "-cp", registry_classpath(self._home), REGISTRY_MAIN],
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                env=self._cluster.run.environment(), start_new_session=True, cwd=self._folder,
            )  # fmt: skip

    def _await_ready(self, began: int) -> None:
        def ready() -> bool:
            if not self.running:
                logs = {"registry.log": self.logs()[began:]}
                status = self._process.poll() if self._process else None
                why = ended("the schema registry", status, logs)
                raise RegistryFailed(f"{why}\nIts last lines:\n{log_tail(self.logs())}")
            return answers_well(f"http://{HOST}:{self._management_port}/health/ready") and answers_well(f"{self.url}/subjects")

        wait_until(
            ready, _READY_SECONDS, "the schema registry to answer", last_seen=lambda: log_tail(self.logs()), ignore=(OSError,)
        )

    def _end(self, sign: signal.Signals) -> None:
        if self._process is not None and self.running:
            self._process.send_signal(sign)
            try:
                self._process.wait(_END_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()


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

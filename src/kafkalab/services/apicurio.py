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
from kafkalab.cluster.resources import require_memory
from kafkalab.distribution import JVM_OPTIONS, Report, java_command
from kafkalab.distribution.registry import REGISTRY_MAIN, ensure_registry, has_registry, registry_archive, registry_classpath
from kafkalab.errors import RegistryFailed
from kafkalab.services.answers import answers_well
from kafkalab.waiting import wait_until

__all__ = ["ApicurioServer", "is_prepared", "prepare"]

_MEMORY = 260 << 20
_READY_SECONDS = 90
_END_SECONDS = 20


class ApicurioServer:
    """One server process; `kafkalab.services.SchemaRegistry` adds the words that learners read.

    Parameters
    ----------
    cluster
        Runs; the server keeps its schemas in topics of it, and is a process of the cluster's run.
    port
        Its port; 0 for any free one.
    folder
        For its log.
    report
        Told of progress when it is downloaded or prepared.
    """

    product = "Apicurio Registry"

    def __init__(self, cluster: Cluster, port: int, folder: Path, report: Report) -> None:
        self._cluster, self._folder, self._report = cluster, folder, report
        # Held as long as this server is: after a crash it listens there again.
        self._held = [reserve_port(port), reserve_port()]
        self._port, self._management_port = (held.port for held in self._held)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where clients of Confluent's API find it."""
        return f"http://{HOST}:{self._port}/apis/ccompat/v7"

    @property
    def running(self) -> bool:
        """Whether its process runs."""
        return self._process is not None and self._process.poll() is None

    def launch(self) -> None:
        """Start it; on return it answers. The first time on this machine it is downloaded and prepared."""
        require_memory(_MEMORY, "a schema registry")
        self._home = ensure_registry(self._report)
        archive = registry_archive()
        if not archive.exists():
            archive.make(registry_classpath(self._home), self._report)
        self.revive()

    def revive(self) -> None:
        """Start its process anew, at the same port; on return it answers, with all that it knew."""
        began = len(self.logs())
        self._spawn(registry_archive().options(registry_classpath(self._home)))
        self._await_ready(began)

    def kill(self) -> None:
        """SIGKILL; on return its process is gone."""
        self._end(signal.SIGKILL)

    def terminate(self) -> None:
        """SIGTERM; on return its process is gone."""
        self._end(signal.SIGTERM)

    def destroy(self) -> None:
        """End it at once, let go of its ports and remove its log."""
        self._end(signal.SIGKILL)
        for held in self._held:
            held.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def logs(self) -> str:
        """Its log so far."""
        path = self._folder / "registry.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def memory(self) -> int:
        """Resident memory, in bytes."""
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
            # As Confluent's server does: schemas in the cluster itself, BACKWARD unless somebody says otherwise.
            "apicurio.storage.kind": "kafkasql",
            "apicurio.kafkasql.bootstrap.servers": self._cluster.bootstrap_servers,
            "apicurio.kafkasql.topic": "_schemas",
            "apicurio.rules.global.compatibility": "BACKWARD",
            # Its tables in memory, filled from the topic, need no pool of twenty connections.
            "apicurio.datasource.jdbc.initial-size": 2,
            "apicurio.datasource.jdbc.min-size": 2,
            "apicurio.storage.snapshot.location": self._folder,
            "java.io.tmpdir": self._folder,  # native libraries are unpacked there, and go with it
            # At its start it asks twice for a snapshot of its tables, for 5 s each unless told otherwise; none is made here.
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
    """Whether it is in the cache and starts quickly."""
    return has_registry() and registry_archive().is_whole(thoroughly=True)


def prepare(report: Report) -> None:
    """Download it and have it start quickly from now on.

    Raises
    ------
    DownloadError, HashMismatch, JavaError
        Why it could not be had.
    """
    home = ensure_registry(report)
    registry_archive().make(registry_classpath(home))

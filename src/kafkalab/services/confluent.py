"""Confluent's Schema Registry in a container, beside a cluster on Docker."""

from __future__ import annotations

from pathlib import Path

from kafkalab.cluster import Cluster
from kafkalab.cluster.backends.failure import ended, log_tail
from kafkalab.cluster.ports import HOST
from kafkalab.distribution import Report
from kafkalab.errors import RegistryFailed
from kafkalab.services.answers import answers_well
from kafkalab.services.container import ServerContainer
from kafkalab.waiting import wait_until

__all__ = ["IMAGE", "ConfluentServer"]

IMAGE = "confluentinc/cp-schema-registry:8.1.0"

_PORT = 8081
_PEER_PORT = 9091  # where brokers listen for each other
_READY_SECONDS = 120


class ConfluentServer:
    """One container, with the methods of `kafkalab.services.apicurio.ApicurioServer`.

    It has the cluster's label. So it's removed with the cluster's containers and networks, however the cluster ends.
    """

    product = "Confluent Schema Registry"

    def __init__(self, cluster: Cluster, port: int, folder: Path, report: Report) -> None:
        self._cluster, self._report = cluster, report
        self._container = ServerContainer("the schema registry", cluster.nodes.run.id, port)

    @property
    def url(self) -> str:
        """Return its address for clients."""
        return f"http://{HOST}:{self._container.port}"

    @property
    def running(self) -> bool:
        """Return whether its container runs."""
        return self._container.running

    def launch(self) -> None:
        """Start it. On return, it answers. Pull the image first if it's missing."""
        self._container.create(
            IMAGE,
            _PORT,
            {
                "SCHEMA_REGISTRY_HOST_NAME": "schema-registry",
                "SCHEMA_REGISTRY_LISTENERS": f"http://0.0.0.0:{_PORT}",
                "SCHEMA_REGISTRY_KAFKASTORE_BOOTSTRAP_SERVERS": self._brokers(),
                "SCHEMA_REGISTRY_HEAP_OPTS": "-Xmx128m",
            },
            networks=[f"kafkalab-{self._cluster.nodes.run.id}-{kind}" for kind in ("front", "peers")],
            report=self._report,
        )
        self.revive()

    def revive(self) -> None:
        """Start its container. On return, it answers and knows all its schemas."""
        before = len(self.logs())  # an error from an earlier life is no reason for this one's end
        self._container.start()

        def ready() -> bool:
            if not self.running:
                why = ended("the schema registry", self._container.status, {"the container's log": self.logs()[before:]})
                raise RegistryFailed(f"{why}\nIts last lines:\n{log_tail(self.logs())}")
            return answers_well(f"{self.url}/subjects")

        wait_until(
            ready, _READY_SECONDS, "the schema registry to answer", last_seen=lambda: log_tail(self.logs()), ignore=(OSError,)
        )

    def kill(self) -> None:
        """Send SIGKILL. On return, its container has ended."""
        self._container.end("SIGKILL")

    def terminate(self) -> None:
        """Send SIGTERM. On return, its container has ended."""
        self._container.end("SIGTERM")

    def destroy(self) -> None:
        """Remove it, and release its port."""
        self._container.destroy()

    def logs(self) -> str:
        """Return its log so far."""
        return self._container.logs()

    def memory(self) -> int:
        """Return the memory of its container, in bytes."""
        return self._container.memory()

    def _brokers(self) -> str:
        """Return the addresses that brokers use among themselves.

        Clients' addresses are on loopback. Inside a container, they'd lead back to the container itself.
        """
        run, client = self._cluster.nodes.run.id, self._container.client
        brokers = self._cluster.describe(groups=False).brokers_up
        nodes = [client.containers.get(f"kafkalab-{run}-node-{broker}") for broker in brokers]
        addresses = [node.attrs["NetworkSettings"]["Networks"][f"kafkalab-{run}-peers"]["IPAddress"] for node in nodes]
        return ",".join(f"PLAINTEXT://{address}:{_PEER_PORT}" for address in addresses)

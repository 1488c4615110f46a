"""Confluent's Schema Registry in a container, beside a cluster on Docker."""

from __future__ import annotations

from kafkalab.cluster import Cluster
from kafkalab.cluster.ports import HOST
from kafkalab.distribution import Report
from kafkalab.errors import RegistryFailed
from kafkalab.services.answers import answers_well
from kafkalab.services.container import ServerContainer

__all__ = ["IMAGE", "ConfluentServer"]

IMAGE = "confluentinc/cp-schema-registry:8.1.0"

_PORT = 8081
_PEER_PORT = 9091  # where brokers listen for each other


class ConfluentServer(ServerContainer):
    """One container, with the methods of `kafkalab.services.apicurio.ApicurioServer`.

    It has the cluster's label. So it's removed with the cluster's containers and networks, however the cluster ends.
    """

    product = "Confluent Schema Registry"

    def __init__(self, cluster: Cluster, port: int, report: Report) -> None:
        super().__init__("the schema registry", RegistryFailed, cluster.nodes.run.id, port)
        self._cluster, self._report = cluster, report

    @property
    def url(self) -> str:
        """Return its address for clients."""
        return f"http://{HOST}:{self.port}"

    def prepare(self) -> None:
        """Create its container. Pull the image first if it's missing."""
        self.create(
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

    def answers(self) -> bool:
        """Return whether it answers and knows all its schemas."""
        return answers_well(f"{self.url}/subjects")

    def _brokers(self) -> str:
        """Return the addresses that brokers use among themselves.

        Clients' addresses are on loopback. Inside a container, they'd lead back to the container itself.
        """
        run = self._cluster.nodes.run.id
        brokers = self._cluster.describe(groups=False).brokers_up
        nodes = [self._client.containers.get(f"kafkalab-{run}-node-{broker}") for broker in brokers]
        addresses = [node.attrs["NetworkSettings"]["Networks"][f"kafkalab-{run}-peers"]["IPAddress"] for node in nodes]
        return ",".join(f"PLAINTEXT://{address}:{_PEER_PORT}" for address in addresses)

"""Confluent's Schema Registry in a container, beside a cluster on Docker."""

from __future__ import annotations

import contextlib
import functools
from pathlib import Path

import requests
from docker.client import DockerClient
from docker.errors import APIError, DockerException, ImageNotFound, NotFound
from docker.models.containers import Container

from kafkalab.cluster import Cluster
from kafkalab.cluster.ports import HOST, reserve_port
from kafkalab.distribution import Report
from kafkalab.errors import BackendUnavailable, RegistryFailed
from kafkalab.lifeline import RUN_LABEL
from kafkalab.services.answers import answers_well
from kafkalab.waiting import wait_until

__all__ = ["IMAGE", "ConfluentServer", "can_be_had"]

IMAGE = "confluentinc/cp-schema-registry:8.1.0"

_PORT = 8081
_PEER_PORT = 9091  # of the brokers, for one another
_ANSWER_SECONDS = 10
_READY_SECONDS = 120
_END_SECONDS = 30


@functools.cache  # where no registry can be reached, the engine takes seconds to say so
def can_be_had() -> bool:
    """Whether the engine has the image, or a registry from which to pull it answers."""
    client = DockerClient.from_env(timeout=_ANSWER_SECONDS)
    try:
        try:
            client.images.get(IMAGE)
        except ImageNotFound:
            client.images.get_registry_data(IMAGE)
    except (DockerException, requests.RequestException):
        return False
    finally:
        client.close()
    return True


class ConfluentServer:
    """One container; its parts are those of `kafkalab.services.apicurio.ApicurioServer`.

    It carries the cluster's label, and so is removed with the cluster's containers and networks, however that ends.
    """

    product = "Confluent Schema Registry"

    def __init__(self, cluster: Cluster, port: int, folder: Path, report: Report) -> None:
        self._cluster, self._report = cluster, report
        self._client = DockerClient.from_env()
        self._held = reserve_port(port)
        self._port = self._held.port
        self._container: Container | None = None

    @property
    def url(self) -> str:
        """Where clients find it."""
        return f"http://{HOST}:{self._port}"

    @property
    def running(self) -> bool:
        """Whether its container runs."""
        return self._container is not None and self._status() == "running"

    def launch(self) -> None:
        """Start it; on return it answers. The image is pulled first, if need be."""
        try:
            self._client.images.get(IMAGE)
        except ImageNotFound:
            self._report(f"pulling {IMAGE}", 0, 1)
            self._client.images.pull(IMAGE)
        try:
            self._container = self._client.containers.create(
                IMAGE,
                name=f"kafkalab-{self._cluster.run.id}-registry-{self._port}",
                labels={RUN_LABEL: self._cluster.run.id},
                network=f"kafkalab-{self._cluster.run.id}-front",
                ports={f"{_PORT}/tcp": (HOST, self._port)},
                environment={
                    "SCHEMA_REGISTRY_HOST_NAME": "schema-registry",
                    "SCHEMA_REGISTRY_LISTENERS": f"http://0.0.0.0:{_PORT}",
                    "SCHEMA_REGISTRY_KAFKASTORE_BOOTSTRAP_SERVERS": self._brokers(),
                    "SCHEMA_REGISTRY_HEAP_OPTS": "-Xmx128m",
                },
            )
            self._client.networks.get(f"kafkalab-{self._cluster.run.id}-peers").connect(self._container)
        except APIError as error:
            raise BackendUnavailable(f"the Docker engine could not make the schema registry: {error.explanation}") from error
        self.revive()

    def revive(self) -> None:
        """Start its container; on return it answers, with all that it knew."""
        assert self._container is not None
        self._container.start()

        def ready() -> bool:
            if self._status() == "exited":
                raise RegistryFailed(f"the schema registry ended by itself; its log ends:\n{self.logs()[-2000:]}")
            return answers_well(f"{self.url}/subjects")

        wait_until(ready, _READY_SECONDS, "the schema registry to answer", last_seen=lambda: self.logs()[-2000:])

    def kill(self) -> None:
        """SIGKILL; on return its container has ended."""
        self._end("SIGKILL")

    def terminate(self) -> None:
        """SIGTERM; on return its container has ended."""
        self._end("SIGTERM")

    def destroy(self) -> None:
        """Remove it, and let go of its port."""
        if self._container is not None:
            with contextlib.suppress(NotFound):
                self._container.remove(force=True, v=True)
        self._held.close()
        self._client.close()

    def logs(self) -> str:
        """Its log so far."""
        return "" if self._container is None else self._container.logs().decode(errors="replace")

    def memory(self) -> int:
        """Memory of its container, in bytes."""
        assert self._container is not None
        return int(self._container.stats(stream=False)["memory_stats"]["usage"])

    # -- parts --------------------------------------------------------------------------------------------------

    def _brokers(self) -> str:
        """Addresses of the brokers for their peers: inside a container, those for clients would lead to itself."""
        run = self._cluster.run.id
        brokers = self._cluster.describe(groups=False).brokers_up
        nodes = [self._client.containers.get(f"kafkalab-{run}-node-{broker}") for broker in brokers]
        addresses = [node.attrs["NetworkSettings"]["Networks"][f"kafkalab-{run}-peers"]["IPAddress"] for node in nodes]
        return ",".join(f"PLAINTEXT://{address}:{_PEER_PORT}" for address in addresses)

    def _status(self) -> str:
        assert self._container is not None
        return str(self._client.api.inspect_container(self._container.id)["State"]["Status"])

    def _end(self, sign: str) -> None:
        if self._container is not None and self._status() == "running":
            self._container.kill(sign)
            wait_until(lambda: self._status() != "running", _END_SECONDS, "the schema registry to end")

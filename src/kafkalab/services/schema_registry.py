"""`SchemaRegistry`: a real schema registry beside a cluster."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, TypeAlias

from kafkalab.cluster import Cluster
from kafkalab.cluster.spec import require_port
from kafkalab.distribution import announce
from kafkalab.errors import RegistryFailed
from kafkalab.lifeline import Run
from kafkalab.running import registries
from kafkalab.services.base import RestartableServer
from kafkalab.services.registry_view import RegistryView, registry_at

if TYPE_CHECKING:
    from kafkalab.services.apicurio import ApicurioServer
    from kafkalab.services.confluent import ConfluentServer

__all__ = ["SchemaRegistry"]

_Server: TypeAlias = "ApicurioServer | ConfluentServer"


class SchemaRegistry(RestartableServer["_Server"]):
    """A schema registry that keeps its schemas in topics of a cluster.

    If the cluster runs on Docker and the image is available, it's Confluent's own server. Otherwise it's Apicurio Registry,
    a process on this machine with an API compatible with Confluent's. Its first use downloads 159 MB and prepares it for a
    minute or two. `product` says which server it is. Both listen on loopback only. The compatibility level is BACKWARD until
    somebody sets another one. Schemas that it has acknowledged survive a kill, and even `stop`, as long as the cluster runs.

    Parameters
    ----------
    cluster
        A running cluster. When it stops, it stops the registry first.
    port
        Its port. With 0, any free one.

    Raises
    ------
    ValueError
        If that can't be a port.

    Examples
    --------
    >>> with Cluster() as cluster, SchemaRegistry(cluster) as registry:  # doctest: +SKIP
    ...     client = SchemaRegistryClient({"url": registry.url})
    """

    _WHO, _NOUN, _FAILURE = "the schema registry", "schema registry", RegistryFailed
    _REGISTER = registries

    def __init__(self, cluster: Cluster, *, port: int = 0) -> None:
        require_port(port, 0, "the port of the schema registry")
        super().__init__(cluster)
        self._cluster = cluster
        self._port = port

    def __repr__(self) -> str:
        return f"<SchemaRegistry: {self._server.product if self._server else 'not running'}>"

    @property
    def url(self) -> str:
        """Return the address of its API, as in ``SchemaRegistryClient({"url": registry.url})``."""
        return self._required().url

    @property
    def product(self) -> str:
        """Return which server it is: ``Confluent Schema Registry`` or ``Apicurio Registry``."""
        return self._required().product

    def describe(self) -> RegistryView:
        """Return its subjects with versions and compatibility levels.

        Raises
        ------
        RegistryFailed
            If it doesn't run, or doesn't answer.
        """
        if not self.running:
            raise RegistryFailed(f"{self._WHO} isn't running")
        try:
            return registry_at(self.url)
        except OSError as error:
            raise RegistryFailed(f"{self._WHO} doesn't answer: {error}") from error

    def memory(self) -> int:
        """Return the memory that it uses now, in bytes."""
        return self._required().memory()

    # -- parts --------------------------------------------------------------------------------------------------

    def _make_run(self) -> Run:
        run: Run = self._cluster.nodes.run  # so it's removed with the cluster, whoever takes that over
        return run

    def _make_server(self, run: Run) -> _Server:
        folder = run.directory / f"registry-{uuid.uuid4().hex[:6]}"
        if self._cluster.nodes.backend == "docker":
            from kafkalab.cluster.backends.docker_engine import can_be_had  # Docker's client takes half a second to load
            from kafkalab.services.confluent import IMAGE, ConfluentServer

            if can_be_had(IMAGE):
                return ConfluentServer(self._cluster, self._port, announce)
        from kafkalab.services.apicurio import ApicurioServer

        return ApicurioServer(self._cluster, self._port, folder, announce)

    def _launch(self, server: _Server) -> None:
        server.begin()

    def _is_ready(self, server: _Server) -> bool:
        return server.answers()

"""`SchemaRegistry`: a real schema registry beside a cluster."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from kafkalab.cluster import Cluster
from kafkalab.cluster.spec import require_port
from kafkalab.distribution import Report, announce
from kafkalab.errors import RegistryFailed
from kafkalab.lifeline import Owner
from kafkalab.rebinding import end_nameless, note_started

__all__ = ["SchemaRegistry"]


class _Server(Protocol):
    product: str

    @property
    def url(self) -> str: ...
    @property
    def running(self) -> bool: ...
    def launch(self) -> None: ...
    def revive(self) -> None: ...
    def kill(self) -> None: ...
    def terminate(self) -> None: ...
    def destroy(self) -> None: ...
    def logs(self) -> str: ...
    def memory(self) -> int: ...


class SchemaRegistry:
    """A schema registry that keeps its schemas in topics of a cluster.

    If the cluster runs on Docker and the image is available, it's Confluent's own server. Otherwise it's Apicurio Registry,
    a process on this machine with an API compatible with Confluent's. Its first use downloads 159 MB and prepares it for a
    minute or two. `product` says which server it is. Both listen on loopback only.

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

    def __init__(self, cluster: Cluster, *, port: int = 0) -> None:
        require_port(port, 0, "the port of the schema registry")
        self._cluster = cluster
        self._port = port
        self._server: _Server | None = None
        self._owner = Owner()
        end_nameless()

    # -- life ---------------------------------------------------------------------------------------------------

    def start(self) -> SchemaRegistry:
        """Start it, or start it again after it was killed. Does nothing if it already runs.

        On return, it answers. Its compatibility level is BACKWARD, unless somebody has set another one.

        Raises
        ------
        ClusterNotRunning
            If the cluster doesn't run.
        DownloadError, HashMismatch
            If it isn't in the cache and can't be downloaded, or the download doesn't match the lock.
        RegistryFailed, PortInUse, NotEnoughResources, BackendUnavailable
            If it can't start. The message says why.
        WaitTimeout
            If it runs but doesn't answer in time. The message ends with its log.
        """
        if self._server is not None:
            if not self._server.running:
                self._server.revive()
            return self
        folder = self._cluster.nodes.run.directory / f"registry-{uuid.uuid4().hex[:6]}"
        server = _kind(self._cluster)(self._cluster, self._port, folder, announce)
        try:
            server.launch()
        except BaseException:
            server.destroy()
            raise
        self._server, self._owner = server, Owner()
        self._cluster.nodes.on_stop(self.stop)
        note_started(self, "schema registry", lambda: self._server is not None, self.stop)
        return self

    def stop(self) -> None:
        """Stop it. On return, its process and port are gone. Its schemas stay in the cluster's topics.

        In a process that was forked after `start` it does nothing, because the registry belongs to the parent.
        """
        if not self._owner.is_me:
            return
        server, self._server = self._server, None
        if server is not None:
            server.destroy()

    def __enter__(self) -> SchemaRegistry:
        return self.start()

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<SchemaRegistry: {self._server.product if self._server else 'not running'}>"

    @property
    def running(self) -> bool:
        """Return whether its process runs."""
        return self._server is not None and self._server.running

    # -- faults -------------------------------------------------------------------------------------------------

    def kill(self) -> None:
        """Kill it with SIGKILL, as a crash would. On return, its process is gone.

        Raises
        ------
        RegistryFailed
            If it wasn't started.
        """
        self._started().kill()

    def restart(self) -> None:
        """Start it again at the same address. If it runs, shut it down cleanly first.

        On return, it answers and knows every schema that it has acknowledged.

        Raises
        ------
        RegistryFailed
            If it wasn't started, or ends before it answers.
        """
        server = self._started()
        server.terminate()
        server.revive()

    # -- sight --------------------------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        """Return the address of its API, as in ``SchemaRegistryClient({"url": registry.url})``."""
        return self._started().url

    @property
    def product(self) -> str:
        """Return which server it is: ``Confluent Schema Registry`` or ``Apicurio Registry``."""
        return self._started().product

    def logs(self) -> str:
        """Return its log so far."""
        return self._started().logs()

    def memory(self) -> int:
        """Return the memory that it uses now, in bytes."""
        return self._started().memory()

    # -- parts --------------------------------------------------------------------------------------------------

    def _started(self) -> _Server:
        if self._server is None:
            raise RegistryFailed("the schema registry is not running: call start() first")
        return self._server


def _kind(cluster: Cluster) -> Callable[[Cluster, int, Path, Report], _Server]:
    if cluster.nodes.backend == "docker":
        from kafkalab.cluster.backends.docker_engine import can_be_had  # Docker's client takes half a second to load
        from kafkalab.services.confluent import IMAGE, ConfluentServer

        if can_be_had(IMAGE):
            return ConfluentServer
    from kafkalab.services.apicurio import ApicurioServer

    return ApicurioServer

"""The two networks of a cluster on Docker.

Nodes find each other on *peers* only, so taking a node off that network cuts it off from its peers. Ports are published
through *front*, so they stay reachable meanwhile. Nodes know each other by fixed addresses instead of names, because
Docker forgets the name of a container that is down, and can take seconds to say so.
"""

from __future__ import annotations

from ipaddress import IPv4Network

from docker.client import DockerClient
from docker.errors import APIError
from docker.models.containers import Container
from docker.models.networks import Network
from docker.types import IPAMConfig, IPAMPool

from kafkalab.lifeline import RUN_LABEL, Run

__all__ = ["Networks"]

_SUBNET_ATTEMPTS = 10
# Docker hands out addresses from the bottom of a subnet: node 0 gets the 17th.
_FIRST_ADDRESS = 16


class Networks:
    """The networks of one cluster. They belong to its run."""

    def __init__(self, client: DockerClient, run: Run) -> None:
        self._client = client
        self._run = run
        self._subnet: IPv4Network | None = None

    @property
    def front(self) -> str:
        """The name of *front*."""
        return self._name("front")

    def create_front(self) -> None:
        """Create *front*."""
        self._create("front")

    def create_peers(self) -> None:
        """Create *peers* with a subnet we choose, because Docker allows fixed addresses only there."""
        for attempt in range(1, _SUBNET_ATTEMPTS + 1):
            free = self._create("peers")  # the engine knows which subnets are free
            free.reload()
            subnet = free.attrs["IPAM"]["Config"][0]["Subnet"]
            free.remove()
            try:
                self._create("peers", IPAMConfig(pool_configs=[IPAMPool(subnet=subnet)]))
            except APIError:  # another cluster got this subnet in between
                if attempt == _SUBNET_ATTEMPTS:
                    raise
            else:
                self._subnet = IPv4Network(subnet)
                return

    def peer_address(self, node_id: int) -> str:
        """Return the address at which its peers find a node."""
        assert self._subnet is not None, "the networks were not created"
        return str(self._subnet[_FIRST_ADDRESS + node_id])

    def connect(self, container: Container, node_id: int) -> None:
        """Connect a node's container with its peers."""
        self._peers().connect(container, ipv4_address=self.peer_address(node_id))

    def disconnect(self, container: Container) -> None:
        """Cut a container off from its peers."""
        self._peers().disconnect(container)

    def _peers(self) -> Network:
        return self._client.networks.get(self._name("peers"))

    def _name(self, kind: str) -> str:
        return f"kafkalab-{self._run.id}-{kind}"

    def _create(self, kind: str, ipam: IPAMConfig | None = None) -> Network:
        # A container's outgoing traffic and its published ports use the network whose name sorts first: *front*.
        return self._client.networks.create(self._name(kind), ipam=ipam, labels={RUN_LABEL: self._run.id})

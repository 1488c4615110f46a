"""What a cluster is meant to be, before anything runs. Immutable, and the same for every back end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from kafkalab.errors import NoSuperUser, UnknownListener
from kafkalab.security.words import SIGHT, Security

__all__ = ["SIGHT_LISTENER", "ClusterSpec", "Listener", "Node"]

Protocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]

FIRST_CONTROLLER_ID = 100

SIGHT_LISTENER = SIGHT.upper()
"""Listener of a secured cluster that is there for kafkalab itself alone."""


def _frozen(mapping: Mapping[str, object]) -> Mapping[str, str]:
    # As Kafka writes them: booleans in lower case.
    return MappingProxyType({k: str(v).lower() if isinstance(v, bool) else str(v) for k, v in mapping.items()})


@dataclass(frozen=True)
class Listener:
    """A listener for clients.

    Attributes
    ----------
    name
        Its name in ``listeners``, for example ``PLAINTEXT`` or ``SECURE``.
    protocol
        What it speaks.
    settings
        Broker settings of this listener, without their ``listener.name.<name>.`` prefix.
    client
        librdkafka settings with which a client connects to it.
    port
        Its port at broker 0; at broker 1 it is the next one, and so on. Where that one is taken, and with 0, any free one.
    """

    name: str = "PLAINTEXT"
    protocol: Protocol = "PLAINTEXT"
    settings: Mapping[str, object] = field(default_factory=dict, hash=False)
    client: Mapping[str, object] = field(default_factory=dict, hash=False)
    port: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "settings", _frozen(self.settings))
        object.__setattr__(self, "client", MappingProxyType(dict(self.client)))


@dataclass(frozen=True)
class Node:
    """One process of the cluster: a broker, a controller, or both at once ("combined")."""

    id: int
    broker: bool
    controller: bool
    rack: str | None = None


@dataclass(frozen=True)
class ClusterSpec:
    """A cluster in words.

    Attributes
    ----------
    brokers
        How many brokers; their ids are 0, 1, 2 …
    controllers
        How many dedicated controllers, with ids 100, 101 … With 0, the first three brokers (the first one
        of fewer than three) are controllers as well.
    racks
        Rack of each broker, in order of id; repeated when there are fewer racks than brokers.
    ports
        Ports of the first listener in order of broker id; no others will do. Without them it is each `Listener` that says.
    listeners
        Listeners for clients; `Cluster.bootstrap_servers` names the first one's addresses.
    settings
        Settings for every node. They win over all that kafkalab sets itself.
    heap
        Java heap of each node, as in ``-Xmx``.
    security
        How it is secured; None for a cluster that lets everybody do everything.
    java_options
        More options for each node's JVM: ``-Djava.security.krb5.conf=…``, say.
    """

    brokers: int = 3
    controllers: int = 0
    racks: tuple[str, ...] = ()
    ports: tuple[int, ...] = ()
    listeners: tuple[Listener, ...] = (Listener(),)
    settings: Mapping[str, object] = field(default_factory=dict, hash=False)
    heap: str = "96m"
    security: Security | None = None
    java_options: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.brokers < 1:
            raise ValueError(f"a cluster has at least one broker, not {self.brokers}")
        if self.controllers < 0:
            raise ValueError(f"the number of dedicated controllers is 0 or more, not {self.controllers}")
        if self.ports and len(self.ports) != self.brokers:
            raise ValueError(f"{self.brokers} brokers need {self.brokers} ports, not {len(self.ports)}")
        if not self.listeners:
            raise ValueError("a cluster has at least one listener for clients")
        object.__setattr__(self, "racks", tuple(self.racks))
        object.__setattr__(self, "ports", tuple(self.ports))
        object.__setattr__(self, "listeners", tuple(self.listeners))
        object.__setattr__(self, "java_options", tuple(self.java_options))
        object.__setattr__(self, "settings", _frozen(self.settings))
        self._require_super_users()

    def _require_super_users(self) -> None:
        """Brokers of a cluster without `security` are nobody to each other (``User:ANONYMOUS``), so nobody must be let through."""
        let_through = self.settings.get("super.users", "").replace(" ", "").split(";")
        everybody = self.settings.get("allow.everyone.if.no.acl.found") == "true"
        if self.settings.get("authorizer.class.name") and self.security is None and not everybody and "User:ANONYMOUS" not in let_through:
            raise NoSuperUser(
                f"an authorizer is set, and super.users is {self.settings.get('super.users', '')!r}: brokers talk PLAINTEXT among themselves, "
                "as User:ANONYMOUS, and would refuse each other until the start is given up. Name User:ANONYMOUS in super.users, or "
                "have the brokers prove who they are: Cluster(security=Security(…))"
            )

    def nodes(self) -> tuple[Node, ...]:
        """All nodes: brokers first, then dedicated controllers."""
        voters = 0 if self.controllers else (3 if self.brokers >= 3 else 1)
        brokers = tuple(self.broker(i, controller=i < voters) for i in range(self.brokers))
        return brokers + tuple(
            Node(FIRST_CONTROLLER_ID + i, broker=False, controller=True) for i in range(self.controllers)
        )

    def listener(self, name: str) -> Listener:
        """The listener for clients of that name.

        Raises
        ------
        UnknownListener
        """
        for listener in self.listeners:
            if listener.name == name:
                return listener
        raise UnknownListener(f"there is no listener {name!r}; there are {', '.join(x.name for x in self.listeners)}")

    def opened(self) -> tuple[str, ...]:
        """Names of the listeners that a broker opens to this machine, those for clients first."""
        return (*[x.name for x in self.listeners], *([SIGHT_LISTENER] if self.security else []))

    def wanted_ports(self, node_id: int) -> dict[str, tuple[int, bool]]:
        """The port, or 0, that each opened listener of a broker is to have, and whether no other will do."""
        wanted = {name: (0, False) for name in self.opened()}
        wanted |= {x.name: (x.port + node_id, False) for x in self.listeners if x.port}
        if node_id < len(self.ports):
            wanted[self.listeners[0].name] = self.ports[node_id], True
        return wanted

    def broker(self, node_id: int, *, controller: bool = False) -> Node:
        """The broker with that id, which may be one that is added later."""
        rack = self.racks[node_id % len(self.racks)] if self.racks else None
        return Node(node_id, broker=True, controller=controller, rack=rack)

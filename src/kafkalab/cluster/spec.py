"""The description of a cluster before anything runs. Immutable, and the same for every back end."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, get_args

from kafkalab.cluster.ports import HOST
from kafkalab.distribution import KAFKA_VERSION
from kafkalab.errors import NoSuperUser, UnknownListener
from kafkalab.security.config import OBSERVER, Security
from kafkalab.settings import as_text

__all__ = [
    "CONTROLLER",
    "FIRST_CONTROLLER_ID",
    "INTERNAL",
    "OBSERVER_LISTENER",
    "ClusterSpec",
    "Listener",
    "Node",
    "require_port",
    "require_version",
]

Protocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]

FIRST_CONTROLLER_ID = 100
"""Id of the first dedicated controller. Further ones count up from it."""

INTERNAL = "INTERNAL"
"""Listener that brokers use among themselves."""

CONTROLLER = "CONTROLLER"
"""Listener of the metadata quorum."""

OBSERVER_LISTENER = OBSERVER.upper()
"""Listener of a secured cluster that only kafkalab uses."""

_HIGHEST_PORT = 65_535
_LISTENER_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_HEAP = re.compile(r"[1-9][0-9]*[kKmMgG]")
_VERSION = re.compile(r"[1-9][0-9]*\.[0-9]+\.[0-9]+")


def require_version(version: object) -> None:
    """Raise `ValueError` unless this looks like a Kafka version. Whether it exists shows when it's downloaded."""
    if not isinstance(version, str) or not _VERSION.fullmatch(version):
        raise ValueError(f"a version of Kafka is text like {KAFKA_VERSION!r}, not {version!r}")


def _require_number(value: object, least: int, what: str) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ValueError(f"{what} is a number from {least} on, not {value!r}")


def require_port(port: object, least: int, what: str) -> None:
    """Raise `ValueError` unless this is a valid port."""
    if not isinstance(port, int) or isinstance(port, bool) or not least <= port <= _HIGHEST_PORT:
        raise ValueError(f"{what} is a number from {least} to {_HIGHEST_PORT}, not {port!r}")


def _items(values: object, what: str) -> tuple[object, ...]:
    """Return the items of a sequence. Reject text, which is a sequence of letters."""
    if isinstance(values, str) or not isinstance(values, Sequence | set | frozenset):
        raise ValueError(f"{what} is a list, not {values!r}")
    return tuple(values)


@dataclass(frozen=True)
class Listener:
    """A listener for clients.

    Attributes
    ----------
    name
        Its name in ``listeners``, for example ``PLAINTEXT`` or ``SECURE``.
    protocol
        Its security protocol.
    settings
        Broker settings for this listener, without their ``listener.name.<name>.`` prefix.
    client
        librdkafka settings for clients that connect to it.
    port
        Its port at broker 0. Broker 1 has the next one, and so on. With 0, or if that port is taken, it gets any free
        port, which the cluster's ``repr`` shows. Use ``Cluster(ports=…)`` for fixed ports.
    host
        The address of this machine where it listens, and where clients find it. Any but loopback needs TLS, and brokers that
        are local processes.
    """

    name: str = "PLAINTEXT"
    protocol: Protocol = "PLAINTEXT"
    settings: Mapping[str, object] = field(default_factory=dict, hash=False)
    client: Mapping[str, object] = field(default_factory=dict, hash=False)
    port: int = 0
    host: str = HOST

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not _LISTENER_NAME.fullmatch(self.name):
            raise ValueError(f"a listener's name has letters, digits, '-' and '_', a letter first, unlike {self.name!r}")
        if self.name.upper() in (INTERNAL, CONTROLLER, OBSERVER_LISTENER):
            raise ValueError(f"the listener name {self.name!r} is kafkalab's own; give yours another one")
        if self.protocol not in get_args(Protocol):
            raise ValueError(f"a listener speaks {', '.join(get_args(Protocol))}, not {self.protocol!r}")
        require_port(self.port, 0, f"the port of the listener {self.name}")
        self._require_host()
        object.__setattr__(self, "settings", MappingProxyType(as_text(self.settings)))
        object.__setattr__(self, "client", MappingProxyType(dict(self.client)))

    def _require_host(self) -> None:
        try:
            address = ipaddress.ip_address(self.host)
        except ValueError as error:
            raise ValueError(f"the listener {self.name} is at an address, such as 192.168.1.7, not {self.host!r}") from error
        if address.is_unspecified:
            raise ValueError(f"the listener {self.name} needs the address where others find it, not {self.host}")
        if not address.is_loopback and not self.protocol.endswith("SSL"):
            raise ValueError(
                f"the listener {self.name} at {self.host} can be reached from elsewhere, so it needs TLS: SASL_SSL or SSL"
            )


@dataclass(frozen=True)
class Node:
    """One process of the cluster: a broker, a controller, or both at once ("combined")."""

    id: int
    broker: bool
    controller: bool
    rack: str | None = None

    @property
    def name(self) -> str:
        """Its name for use in a sentence."""
        return f"broker {self.id}" if self.broker else f"controller {self.id}"


@dataclass(frozen=True, kw_only=True)
class ClusterSpec:
    """The description of a cluster. Its fields are parameters of `Cluster`, which describes them."""

    brokers: int = 3
    controllers: int = 0
    racks: Sequence[str] = ()
    ports: Sequence[int] = ()
    listeners: Sequence[Listener] = (Listener(),)
    settings: Mapping[str, object] = field(default_factory=dict, hash=False)
    heap: str = "96m"
    security: Security | None = None
    java_options: Sequence[str] = ()
    version: str = KAFKA_VERSION
    tiered_storage: bool = False

    def __post_init__(self) -> None:
        _require_number(self.brokers, 1, "the number of brokers")
        _require_number(self.controllers, 0, "the number of dedicated controllers")
        for name in ("racks", "ports", "listeners", "java_options"):
            object.__setattr__(self, name, _items(getattr(self, name), f"{name}="))
        if wrong := [rack for rack in self.racks if not isinstance(rack, str) or not rack]:
            raise ValueError(f"a rack's name is text, not {wrong[0]!r}")
        if self.ports and len(self.ports) != self.brokers:
            raise ValueError(f"{self.brokers} brokers need {self.brokers} ports, not {len(self.ports)}")
        for port in self.ports:
            require_port(port, 1, "a broker's port")
        if len(set(self.ports)) < len(self.ports):
            raise ValueError(f"each broker needs a port of its own, but ports= names one twice: {list(self.ports)}")
        if not isinstance(self.heap, str) or not _HEAP.fullmatch(self.heap):
            raise ValueError(f"heap= is a size as Java's -Xmx has it, like '96m' or '1g', not {self.heap!r}")
        for option in self.java_options:
            if not isinstance(option, str) or not option.startswith("-"):
                raise ValueError(f"an option for Java begins with '-'; {option!r} does not")
        require_version(self.version)
        self._require_listeners()
        object.__setattr__(self, "settings", MappingProxyType(as_text(self.settings)))
        self._require_super_users()
        self._require_tier()

    def _require_listeners(self) -> None:
        if not self.listeners:
            raise ValueError("a cluster has at least one listener for clients")
        if wrong := [x for x in self.listeners if not isinstance(x, Listener)]:
            raise ValueError(f"listeners= is a list of Listener(…), not of {wrong[0]!r}")
        names = [x.name.upper() for x in self.listeners]
        if twice := [name for name in names if names.count(name) > 1]:
            raise ValueError(f"there are two listeners {twice[0]!r}; give one of them another name")
        for listener in self.listeners:
            if listener.port + self.brokers - 1 > _HIGHEST_PORT:
                raise ValueError(
                    f"the last of {self.brokers} brokers would have its listener {listener.name} at port "
                    f"{listener.port + self.brokers - 1}, but the highest is {_HIGHEST_PORT}"
                )

    def _require_super_users(self) -> None:
        """Without `security`, brokers are ``User:ANONYMOUS`` to each other, so that user must be a super user."""
        super_users = str(self.settings.get("super.users", ""))
        anonymous_is_super = "User:ANONYMOUS" in super_users.replace(" ", "").split(";")
        everybody_may = self.settings.get("allow.everyone.if.no.acl.found") == "true"
        if (
            self.settings.get("authorizer.class.name")
            and self.security is None
            and not everybody_may
            and not anonymous_is_super
        ):
            raise NoSuperUser(
                f"an authorizer is set, and super.users is {super_users!r}: brokers talk PLAINTEXT among themselves, as "
                "User:ANONYMOUS, and would refuse each other until the start is given up. Name User:ANONYMOUS in super.users, "
                "or have the brokers prove who they are: Cluster(security=Security(…))"
            )

    def _require_tier(self) -> None:
        """Reject other versions and security: the tier's storage manager fits one Kafka version and talks to brokers openly."""
        if not isinstance(self.tiered_storage, bool):
            raise ValueError(f"tiered_storage= is True or False, not {self.tiered_storage!r}")
        if self.tiered_storage and self.version != KAFKA_VERSION:
            raise ValueError(f"a cluster with tiered storage runs Kafka {KAFKA_VERSION}, not {self.version}")
        if self.tiered_storage and self.security is not None:
            raise ValueError("a cluster has tiered_storage=True or security=…, not both")

    def nodes(self) -> tuple[Node, ...]:
        """All nodes: brokers first, then dedicated controllers."""
        voters = 0 if self.controllers else (3 if self.brokers >= 3 else 1)
        brokers = tuple(self.broker(i, controller=i < voters) for i in range(self.brokers))
        return brokers + tuple(self.controller(FIRST_CONTROLLER_ID + i) for i in range(self.controllers))

    def listener(self, name: str) -> Listener:
        """Return the client listener with that name.

        Raises
        ------
        UnknownListener
        """
        for listener in self.listeners:
            if listener.name == name:
                return listener
        raise UnknownListener(f"there is no listener {name!r}; there are {', '.join(x.name for x in self.listeners)}")

    def host_of(self, listener: str) -> str:
        """Return the address where that listener is: of one for clients its own, of any other loopback."""
        return next((x.host for x in self.listeners if x.name == listener), HOST)

    def login_listener(self, name: str | None) -> Listener:
        """Return the listener of that name; without a name, the first that authenticates clients, else the first.

        Raises
        ------
        UnknownListener
        """
        if name is not None:
            return self.listener(name)
        by_password = [x for x in self.listeners if x.protocol.startswith("SASL")]
        by_certificate = [x for x in self.listeners if x.protocol == "SSL"]
        return [*by_password, *by_certificate, *self.listeners][0]

    def opened(self) -> tuple[str, ...]:
        """Names of the listeners that a broker opens to this machine, client listeners first."""
        return (*[x.name for x in self.listeners], *([OBSERVER_LISTENER] if self.security else []))

    def wanted_ports(self, node_id: int) -> dict[str, tuple[int, bool]]:
        """Return the port (or 0) that each opened listener of a broker wants, and whether it must be that port."""
        wanted = dict.fromkeys(self.opened(), (0, False))
        wanted |= {x.name: (x.port + node_id, False) for x in self.listeners if x.port}
        if node_id < len(self.ports):
            wanted[self.listeners[0].name] = self.ports[node_id], True
        return wanted

    def broker(self, node_id: int, *, controller: bool = False) -> Node:
        """Return the broker with that id. It may be one that is added later."""
        rack = self.racks[node_id % len(self.racks)] if self.racks else None
        return Node(node_id, broker=True, controller=controller, rack=rack)

    def controller(self, node_id: int) -> Node:
        """Return the dedicated controller with that id. It may be one that is added later."""
        return Node(node_id, broker=False, controller=True)

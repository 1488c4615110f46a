"""How a cluster is secured, in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

__all__ = ["NODE", "SIGHT", "Security"]

NODE = "broker"
"""The user that every broker and controller is to its peers."""

SIGHT = "kafkalab"
"""The user that kafkalab itself is to the cluster, and the name (in capitals) of the listener that is there for it alone."""

_PASSWORDS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


@dataclass(frozen=True)
class Security:
    """How a cluster is secured.

    Brokers get certificates of an authority of the cluster's own. Controllers talk TLS with certificates on both sides. So
    does kafkalab itself, on a listener of its own: `Cluster.describe` and the checks see everything, whatever clients may.

    Attributes
    ----------
    users
        Password by name, for listeners with SASL.
    mechanisms
        What listeners with SASL accept: ``PLAIN``, ``SCRAM-SHA-256``, ``SCRAM-SHA-512``. ``PLAIN`` knows the users from the
        beginning, SCRAM only those that were made on the running cluster.
    between_brokers
        How brokers prove who they are to each other: ``SSL`` (by certificate), or one of the mechanisms (within TLS).
    super_users
        Who may do everything, besides the brokers and kafkalab itself.
    authorizer
        Whether what is not allowed by an ACL is forbidden.
    """

    users: Mapping[str, str] = field(default_factory=dict, hash=False, repr=False)
    mechanisms: tuple[str, ...] = ("PLAIN",)
    between_brokers: str = "SSL"
    super_users: tuple[str, ...] = ("admin",)
    authorizer: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "users", MappingProxyType(dict(self.users)))
        object.__setattr__(self, "mechanisms", tuple(self.mechanisms))
        object.__setattr__(self, "super_users", tuple(self.super_users))
        if unknown := [m for m in self.mechanisms if m not in _PASSWORDS]:
            raise ValueError(f"mechanisms are {', '.join(_PASSWORDS)}, not {unknown[0]!r}")
        if self.between_brokers not in ("SSL", *_PASSWORDS):
            raise ValueError(f"brokers prove who they are by SSL, {', '.join(_PASSWORDS)}, not {self.between_brokers!r}")
        if reserved := {NODE, SIGHT} & self.users.keys():
            raise ValueError(f"the user name {reserved.pop()!r} is kafkalab's own")

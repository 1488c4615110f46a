"""The description of a cluster's security."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

__all__ = ["NODE", "OBSERVER", "Security"]

NODE = "broker"
"""The user as which every broker and controller logs in to its peers."""

OBSERVER = "kafkalab"
"""The user as which kafkalab itself logs in. In capitals, the name of the listener that only kafkalab uses."""

# Such a name needs no escaping in a JAAS line (``user_alice="…"``) or in a certificate (``CN=alice``).
_USER_NAME = re.compile(r"[^\W\d][\w-]*")

_PASSWORDS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


@dataclass(frozen=True)
class Security:
    """How a cluster is secured.

    Brokers get certificates from the cluster's own authority. Controllers talk TLS with certificates on both sides.
    kafkalab does the same on its own listener: `Cluster.describe` and the checks see everything, whatever clients may
    do.

    Attributes
    ----------
    users
        Password by name, for listeners with SASL. Both may contain any characters. With SCRAM, Kafka accepts only ASCII
        names.
    mechanisms
        The mechanisms that SASL listeners accept: ``PLAIN``, ``SCRAM-SHA-256``, ``SCRAM-SHA-512``. ``PLAIN`` knows the
        users from the start, SCRAM only users that were created on the running cluster.
    between_brokers
        How brokers authenticate to each other: ``SSL`` (by certificate), or one of the mechanisms (over TLS).
    super_users
        Users who may do everything, besides the brokers and kafkalab itself.
    authorizer
        Whether the cluster has an authorizer, which denies everything that no ACL allows.
    """

    users: Mapping[str, str] = field(default_factory=dict, hash=False, repr=False)
    mechanisms: tuple[str, ...] = ("PLAIN",)
    between_brokers: str = "SSL"
    super_users: tuple[str, ...] = ("admin",)
    authorizer: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.users, Mapping):
            raise ValueError(f"users= gives each user a password, like {{'alice': 'secret'}}, not {self.users!r}")
        object.__setattr__(self, "users", MappingProxyType(dict(self.users)))
        for name in ("mechanisms", "super_users"):
            if isinstance(getattr(self, name), str):
                raise ValueError(f"{name}= is a list, not {getattr(self, name)!r}")
            object.__setattr__(self, name, tuple(getattr(self, name)))
        for user, password in self.users.items():
            if not isinstance(user, str) or not _USER_NAME.fullmatch(user):
                raise ValueError(f"the name of a user is text of letters, digits, '-' and '_', a letter first, unlike {user!r}")
            if not isinstance(password, str) or not password:
                raise ValueError(f"the password of {user!r} is text, not {password!r}")
        if unknown := [m for m in self.mechanisms if m not in _PASSWORDS]:
            raise ValueError(f"mechanisms are {', '.join(_PASSWORDS)}, not {unknown[0]!r}")
        if "PLAIN" not in self.mechanisms and (foreign := [user for user in self.users if not user.isascii()]):
            raise ValueError(f"Kafka's SCRAM takes user names of ASCII characters only, unlike {foreign[0]!r}; PLAIN takes any")
        if self.between_brokers not in ("SSL", *_PASSWORDS):
            raise ValueError(f"brokers prove who they are by SSL, {', '.join(_PASSWORDS)}, not {self.between_brokers!r}")
        if reserved := {NODE, OBSERVER} & self.users.keys():
            raise ValueError(f"the user name {reserved.pop()!r} is kafkalab's own")

"""All secrets of one secured cluster: its authority, key stores and passwords, and the settings that name them."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from kafkalab.errors import UnknownUser
from kafkalab.security.authority import CertificateAuthority, Identity
from kafkalab.security.config import NODE, OBSERVER, Security
from kafkalab.security.jaas import login_line

__all__ = ["KeyRing"]

_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"

# Map a certificate to its common name, so that users have the same short names with a certificate as with a password.
_NAME_RULE = "RULE:^CN=([^,]+).*$/$1/,DEFAULT"


class KeyRing:
    """The secrets of one cluster.

    Parameters
    ----------
    folder
        The folder for its files. They are removed with it.
    security
        How the cluster is secured.

    Attributes
    ----------
    authority
        Signs the certificates of brokers and clients.
    """

    def __init__(self, folder: Path, security: Security) -> None:
        self.security = security
        self.authority = CertificateAuthority(folder, "kafkalab")
        self._node_password = secrets.token_urlsafe(18)
        self._users: dict[str, Identity] = {}
        self._lock = threading.Lock()

    # -- brokers ------------------------------------------------------------------------------------------------

    def node(self, node_id: int, hosts: Sequence[str]) -> Identity:
        """Issue a new certificate for a node at these hosts. It replaces the earlier one."""
        return self.authority.issue(NODE, hosts, folder=f"node-{node_id}")

    def node_settings(
        self, identity: Identity, listeners: Mapping[str, str], *, between_brokers: str, among_controllers: str
    ) -> dict[str, str]:
        """Return the security settings of a node.

        Parameters
        ----------
        identity
            The node's certificate.
        listeners
            Protocol of each client listener, by name.
        between_brokers, among_controllers
            Names of the listeners between brokers and among controllers.
        """
        security = self.security
        settings = {
            **identity.java(),
            "ssl.principal.mapping.rules": _NAME_RULE,
            **{_of(name, "ssl.client.auth"): "required" for name in (OBSERVER, among_controllers)},
        }
        if security.authorizer:
            settings["authorizer.class.name"] = _AUTHORIZER
            settings["super.users"] = ";".join(f"User:{name}" for name in (NODE, OBSERVER, *security.super_users))
        for name, protocol in listeners.items():
            if protocol == "SSL":
                settings[_of(name, "ssl.client.auth")] = "required"
            elif protocol.startswith("SASL"):
                settings |= self._accepting(name, security.mechanisms)
        if security.between_brokers == "SSL":
            settings[_of(between_brokers, "ssl.client.auth")] = "required"
        else:
            settings["sasl.mechanism.inter.broker.protocol"] = security.between_brokers
            settings |= self._accepting(between_brokers, (security.between_brokers,))
        return settings

    def node_login(self, mechanism: str) -> str:
        """Return the JAAS line with which brokers log in to each other by a mechanism, and check logins."""
        users = {f"user_{name}": password for name, password in {**self.security.users, NODE: self._node_password}.items()}
        return login_line(mechanism, username=NODE, password=self._node_password, **(users if mechanism == "PLAIN" else {}))

    def first_scram(self) -> tuple[str, ...]:
        """Return what ``kafka-storage format --add-scram`` needs so that brokers can log in at their first start."""
        mechanism = self.security.between_brokers
        return (f"{mechanism}=[name={NODE},password={self._node_password}]",) if mechanism.startswith("SCRAM") else ()

    @property
    def node_password(self) -> str:
        """Return the password of the user as which brokers log in to each other."""
        return self._node_password

    def _accepting(self, listener: str, mechanisms: Sequence[str]) -> dict[str, str]:
        accepted = {_of(listener, f"{m.lower()}.sasl.jaas.config"): self.node_login(m) for m in mechanisms}
        return {_of(listener, "sasl.enabled.mechanisms"): ",".join(mechanisms), **accepted}

    # -- clients ------------------------------------------------------------------------------------------------

    def user(self, name: str) -> Identity:
        """Return the client certificate of a user, the same one each time."""
        with self._lock:
            if name not in self._users:
                self._users[name] = self.authority.issue(name, folder=f"user-{name}")
            return self._users[name]

    def client(self, protocol: str, user: str | None, mechanism: str | None) -> dict[str, object]:
        """Return librdkafka settings for a listener with this protocol, with or without a user."""
        settings: dict[str, object] = {"security.protocol": protocol}
        if protocol.endswith("SSL"):
            settings["ssl.ca.location"] = str(self.authority.certificate)
        if user is not None and protocol == "SSL":
            settings |= self.user(user).client()
        if user is not None and protocol.startswith("SASL"):
            settings |= {
                "sasl.mechanism": mechanism or self.security.mechanisms[0],
                "sasl.username": user,
                "sasl.password": self._password(user),
            }
        return settings

    def java_client(self, protocol: str, user: str | None, mechanism: str | None) -> dict[str, str]:
        """Return the same settings for Kafka's Java clients and tools."""
        settings = {"security.protocol": protocol}
        if protocol.endswith("SSL"):
            settings |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(self.authority.certificate)}
        if user is not None and protocol == "SSL":
            settings |= self.user(user).java()
        if user is not None and protocol.startswith("SASL"):
            mechanism = mechanism or self.security.mechanisms[0]
            line = login_line(mechanism, username=user, password=self._password(user))
            settings |= {"sasl.mechanism": mechanism, "sasl.jaas.config": line}
        return settings

    def observer(self) -> dict[str, object]:
        """Return librdkafka settings with which kafkalab itself connects to its own listener."""
        return {"security.protocol": "SSL", **self.user(OBSERVER).client()}

    def java_observer(self) -> dict[str, str]:
        """Return the same for Kafka's Java clients."""
        return {"security.protocol": "SSL", **self.user(OBSERVER).java()}

    def _password(self, user: str) -> str:
        if user not in self.security.users:
            names = ", ".join(self.security.users) or "none"
            raise UnknownUser(f"there is no user {user!r} with a password; there are {names}")
        return self.security.users[user]


def _of(listener: str, setting: str) -> str:
    return f"listener.name.{listener.lower()}.{setting}"

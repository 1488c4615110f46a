"""What clients need to reach a cluster: addresses, and configurations for librdkafka, Java and Kafka's tools."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from kafkalab.cluster.backends.access import Access
from kafkalab.cluster.backends.control import require_files
from kafkalab.errors import KafkaLabError, UnknownBroker, UnknownUser
from kafkalab.security.files import private_folder, write_private
from kafkalab.security.keyring import KeyRing
from kafkalab.settings import format_properties

__all__ = ["Clients", "client_config", "require_keyring"]


class Clients:
    """How clients reach a running cluster; `Cluster.clients` gives it.

    `Cluster.bootstrap_servers` and `Cluster.client_config` are all that most of them need.
    """

    def __init__(self, access: Callable[[], Access]) -> None:
        self._access = access

    def bootstrap(self, broker: int, listener: str | None = None) -> str:
        """Return ``host:port`` of one broker's listener, by default the first.

        Raises
        ------
        UnknownBroker, UnknownListener
        """
        access = self._access()
        if not access.require_node(broker).broker:
            raise UnknownBroker(f"node {broker} is a dedicated controller: it has no listener for clients")
        return access.address(broker, _listener_name(access, listener))

    def servers(self, listener: str | None = None) -> str:
        """Return ``host:port`` of every broker's listener of that name, by default the first, separated by commas.

        Raises
        ------
        UnknownListener
        """
        return _servers(self._access(), listener)

    def java_config(self, user: str | None = None, listener: str | None = None, mechanism: str | None = None) -> dict[str, str]:
        """Return the same as `Cluster.client_config` for a Java client of a secured cluster: Kafka's tools, or Spark.

        Without a user, the client trusts the brokers but doesn't authenticate itself.
        """
        access = self._access()
        keyring = require_keyring(access)
        chosen = access.spec.login_listener(listener)
        settings = keyring.java_client(chosen.protocol, user, mechanism)
        return {"bootstrap.servers": _servers(access, chosen.name), **settings}

    def service_config(self) -> dict[str, str]:
        """Return settings for a service of kafkalab's that is a Java client. In a secured cluster it may do everything."""
        access = self._access()
        servers = ",".join(map(access.control_address, access.brokers()))
        return {"bootstrap.servers": servers, **(access.keyring.java_observer() if access.keyring else {})}

    def command_config(self, user: str | None = None, listener: str | None = None, mechanism: str | None = None) -> Path:
        """Write `java_config` to a file for the option ``--command-config`` of Kafka's tools. Only its owner can read it.

        The file is removed with the cluster.
        """
        settings = self.java_config(user, listener, mechanism)
        folder = private_folder(self._access().run.directory / "secrets" / "clients")
        return write_private(folder / f"{user}-{listener}-{mechanism}.properties", format_properties(settings))

    def controller_config(self, controller: int) -> Path:
        """Return a controller's own settings as a file, for ``kafka-metadata-quorum.sh --command-config … add-controller``.

        The tool reads from it which controller to add: its id, its listener and its data folder, which holds the
        folder's id.

        Raises
        ------
        UnknownBroker
            If no node has that id.
        BackendUnavailable
            If the cluster was attached to.
        """
        access = self._access()
        access.require_node(controller)
        return require_files(access, "settings").settings_file(controller)


def client_config(access: Access, user: str | None, listener: str | None, mechanism: str | None) -> dict[str, object]:
    """Return a complete configuration for librdkafka; see `Cluster.client_config`."""
    if user is not None and access.keyring is None:
        raise UnknownUser(f"there is no user {user!r}: this cluster has none, for it was made without security=…")
    if user is None and listener is None:
        servers, settings = ",".join(map(access.control_address, access.brokers())), access.client_settings()
    else:
        chosen = access.spec.login_listener(listener)
        login = access.keyring.client(chosen.protocol, user, mechanism) if access.keyring else {}
        servers = _servers(access, chosen.name)
        settings = {"security.protocol": chosen.protocol, **login, **chosen.client}
    return {"bootstrap.servers": servers, "log_level": 2, **settings}


def require_keyring(access: Access) -> KeyRing:
    """Return the key ring of a secured cluster. Raises `KafkaLabError` if there is none."""
    if access.keyring is None:
        raise KafkaLabError(
            "this cluster was not made with security=Security(…): its certificates and users are not kafkalab's"
        )
    return access.keyring


def _listener_name(access: Access, listener: str | None) -> str:
    return access.spec.listeners[0].name if listener is None else access.spec.listener(listener).name


def _servers(access: Access, listener: str | None) -> str:
    name = _listener_name(access, listener)
    return ",".join(access.address(broker, name) for broker in access.brokers())

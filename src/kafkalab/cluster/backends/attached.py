"""A cluster that already runs: you can look at it and use it, but not break it."""

from __future__ import annotations

import socket
from collections.abc import Mapping

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from kafkalab.cluster.backends.access import Access
from kafkalab.cluster.spec import ClusterSpec, Node
from kafkalab.cluster.view import BrokerState
from kafkalab.errors import BackendUnavailable
from kafkalab.lifeline import Run, reap

__all__ = ["AttachedBackend"]

_REFUSALS = (KafkaError._AUTHENTICATION, KafkaError._SSL)


def _hint(servers: str) -> str:
    """Return what to look at if something listens there but no broker answers."""
    host, _, port = servers.partition(",")[0].strip().rpartition(":")
    try:
        socket.create_connection((host, int(port)), 5).close()
    except (OSError, ValueError):
        return ""
    return (
        ". Something listens there, so it may want TLS or a login: give client settings such as security.protocol, to "
        "Cluster.attached, in KAFKALAB_CLIENT_SETTINGS, or to a command by --client-settings"
    )


class AttachedBackend(Access):
    """Brokers that kafkalab didn't start, found through their bootstrap servers; see `Cluster.attached`."""

    name = "attached"

    def __init__(self, spec: ClusterSpec, run: Run, bootstrap_servers: str, client_settings: Mapping[str, object]) -> None:
        super().__init__(spec, run)
        self._settings = {"log_level": 2, **client_settings, "bootstrap.servers": bootstrap_servers}
        self._brokers: dict[int, tuple[Node, str]] = {}

    def launch(self) -> None:
        servers = str(self._settings["bootstrap.servers"])
        said: list[KafkaError] = []
        try:
            admin = AdminClient({**self._settings, "error_cb": said.append})  # type: ignore[dict-item]
        except KafkaException as error:
            raise BackendUnavailable(f"these client settings are none for {servers}: {error.args[0].str()}") from error
        try:
            metadata = admin.list_topics(timeout=10)
        except KafkaException as error:
            admin.poll(0)  # calls error_cb
            if refused := [one.str() for one in said if one.code() in _REFUSALS]:
                raise BackendUnavailable(f"nobody can log in at {servers} with these settings: {refused[0]}") from error
            raise BackendUnavailable(f"no broker answers at {servers}: {error.args[0].str()}{_hint(servers)}") from error
        self._brokers = {
            b.id: (Node(b.id, broker=True, controller=False), f"{b.host}:{b.port}") for b in metadata.brokers.values()
        }

    def destroy(self) -> None:
        reap(self.run)  # ends workers that were started for the cluster

    def nodes(self) -> dict[int, Node]:
        return {i: node for i, (node, _) in sorted(self._brokers.items())}

    def address(self, node_id: int, listener: str) -> str:
        return self._brokers[node_id][1]

    def state(self, node_id: int) -> BrokerState:
        return "up"

    def client_settings(self) -> dict[str, object]:
        return {key: value for key, value in self._settings.items() if key != "bootstrap.servers"}

    def check_alive(self, node_id: int) -> None:
        pass  # not our process; requests show whether it answers

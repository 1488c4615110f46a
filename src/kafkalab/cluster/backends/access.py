"""How to reach the nodes of a cluster. It's all there is for a cluster that kafkalab didn't start."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from kafkalab.cluster.spec import OBSERVER_LISTENER, ClusterSpec, Node
from kafkalab.cluster.view import BrokerState
from kafkalab.errors import UnknownBroker
from kafkalab.lifeline import Run
from kafkalab.security.keyring import KeyRing

__all__ = ["Access"]


class Access(ABC):
    """Nodes of one cluster, their addresses and states. Any thread may use it.

    Attributes
    ----------
    spec
        The description of the cluster.
    run
        Processes, files and containers made for the cluster belong to this run.
    keyring
        The secrets of a secured cluster.
    """

    name: ClassVar[str]

    def __init__(self, spec: ClusterSpec, run: Run) -> None:
        self.spec = spec
        self.run = run
        self.keyring = KeyRing(run.directory / "secrets", spec.security) if spec.security else None

    @abstractmethod
    def launch(self) -> None:
        """Start or find every node.

        Raises
        ------
        BrokerFailed, PortInUse, BackendUnavailable, NotEnoughResources
        """

    @abstractmethod
    def destroy(self) -> None:
        """End everything that belongs to the run. On return nothing is left. Safe to call again, at any time."""

    @abstractmethod
    def nodes(self) -> dict[int, Node]:
        """Return all nodes by id, including added ones."""

    @abstractmethod
    def address(self, node_id: int, listener: str) -> str:
        """Return the ``host:port`` at which clients on this machine reach a broker's listener."""

    @abstractmethod
    def state(self, node_id: int) -> BrokerState:
        """Return the state of the process: ``up`` here means that it runs, registered or not."""

    def end(self, node_id: int) -> str:
        """Return why the process ended, if that's neither a verb's doing nor said in its log; else an empty text."""
        return ""

    @abstractmethod
    def check_alive(self, node_id: int) -> None:
        """Raise `BrokerFailed`, with Kafka's reason and the log's last lines, if a node that should run has ended."""

    def brokers(self) -> list[int]:
        """Return the ids of all brokers."""
        return [node_id for node_id, node in self.nodes().items() if node.broker]

    def require_node(self, node_id: int) -> Node:
        """Return the node with that id.

        Raises
        ------
        UnknownBroker
        """
        nodes = self.nodes()
        if not isinstance(node_id, int) or isinstance(node_id, bool) or node_id not in nodes:
            raise UnknownBroker(f"there is no broker {node_id!r} in this cluster; it has {', '.join(map(str, nodes))}")
        return nodes[node_id]

    def moved_ports(self) -> list[str]:
        """Return a sentence for each listener that couldn't get the port its `Listener` wants."""
        sentences = []
        for broker in self.brokers():
            for listener, (wanted, _) in self.spec.wanted_ports(broker).items():
                port = self.address(broker, listener).rpartition(":")[2]
                if wanted and port != str(wanted):
                    sentences.append(f"broker {broker} has {listener} at port {port}, for {wanted} was taken")
        return sentences

    def control_address(self, node_id: int) -> str:
        """Return the ``host:port`` at which kafkalab itself asks a broker for metadata."""
        return self.address(node_id, OBSERVER_LISTENER if self.keyring else self.spec.listeners[0].name)

    def client_settings(self) -> dict[str, object]:
        """Return the librdkafka settings, besides addresses, of kafkalab itself and of clients without a user."""
        return self.keyring.observer() if self.keyring else dict(self.spec.listeners[0].client)

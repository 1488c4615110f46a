"""What a back end must do. A back end only acts; `Cluster` adds the messages that learners read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import ClassVar

from kafkalab.cluster.spec import OBSERVER_LISTENER, ClusterSpec, Node
from kafkalab.cluster.view import BrokerState
from kafkalab.errors import FaultsUnsupported
from kafkalab.lifeline import Run
from kafkalab.security.keyring import KeyRing

__all__ = ["TIER_FULL", "TIER_NOWHERE", "TIER_STORE", "Backend", "holds_partition"]

# The remote tier is a link to a folder, so one step can move it out of reach. A file in the folder's place makes every
# read and write fail. By the name of the second link, to the same folder, nodes know that there is no room.
TIER_STORE, TIER_NOWHERE, TIER_FULL = "store", "nowhere", "full"


def holds_partition(folder: str, topics: Collection[str]) -> bool:
    """Return whether this folder of a data folder holds a partition of one of these topics that isn't deleted."""
    topic, _, partition = folder.rpartition("-")
    return topic in topics and partition.isdigit()


class Backend(ABC):
    """Runs the nodes of one cluster.

    A verb returns when the *process* is in the named state. `Cluster` then waits for what the *cluster* must show. You
    may call all verbs from any thread.
    """

    name: ClassVar[str]
    breakable: ClassVar[bool] = True

    def __init__(self, spec: ClusterSpec, run: Run) -> None:
        self.spec = spec
        self.run = run
        self.keyring = KeyRing(run.directory / "secrets", spec.security) if spec.security else None
        self.isolated: set[int] = set()
        """Isolated nodes, also while they are down."""
        self.tier_target = TIER_STORE
        """Where every node finds the remote tier at the moment."""

    @abstractmethod
    def launch(self) -> None:
        """Start every node of the spec in parallel.

        Raises
        ------
        BrokerFailed, PortInUse, BackendUnavailable, NotEnoughResources
        """

    @abstractmethod
    def destroy(self) -> None:
        """End everything and remove data, ports and containers. On return nothing is left. Safe to call again, at any time."""

    @abstractmethod
    def nodes(self) -> dict[int, Node]:
        """Return all nodes by id, including added ones."""

    @abstractmethod
    def address(self, node_id: int, listener: str) -> str:
        """Return the ``host:port`` at which clients on this machine reach a broker's listener."""

    @abstractmethod
    def state(self, node_id: int) -> BrokerState:
        """Return the state of the process: ``up`` here means that it runs, registered or not."""

    @abstractmethod
    def kill(self, node_id: int) -> None:
        """Send SIGKILL. When it returns, the process is gone."""

    @abstractmethod
    def terminate(self, node_id: int, timeout: float) -> None:
        """Send SIGTERM and wait for the controlled shutdown. When it returns, the process is gone.

        Raises
        ------
        WaitTimeout
            If it still runs after `timeout` seconds.
        """

    @abstractmethod
    def pause(self, node_id: int) -> None:
        """Freeze the process: its connections stay open, but nothing answers."""

    @abstractmethod
    def resume(self, node_id: int) -> None:
        """Continue a paused process."""

    @abstractmethod
    def version(self, node_id: int) -> str:
        """Return the Kafka version that a node runs, or ran last."""

    @abstractmethod
    def fetch(self, version: str) -> None:
        """Download a version of Kafka, so that a node isn't down meanwhile.

        Raises
        ------
        ValueError, DownloadError, BackendUnavailable
            If the version isn't available.
        """

    @abstractmethod
    def revive(self, node_id: int, changed: Mapping[str, str], version: str | None) -> None:
        """Start a node that is not running, with the same id, ports and data.

        From now on it uses the changed settings, and runs that version of Kafka unless it's None.
        """

    @abstractmethod
    def add(self, node: Node) -> None:
        """Start one more broker, or one more dedicated controller."""

    @abstractmethod
    def isolate(self, node_id: int) -> None:
        """Cut a node off from its peers in both directions: data in flight is held back, and nothing new passes.

        Clients still reach it.
        """

    @abstractmethod
    def heal(self, node_id: int) -> None:
        """Undo `isolate`."""

    @abstractmethod
    def check_alive(self, node_id: int) -> None:
        """Raise `BrokerFailed`, with Kafka's reason and the log's last lines, if a node that should run has ended."""

    @abstractmethod
    def logs(self, node_id: int) -> str:
        """Return the node's log so far."""

    @abstractmethod
    def lose_log(self, node_id: int, name: str) -> None:
        """Remove a partition's folder from the disk of a node that is down; `name` as for `partition_data`."""

    @abstractmethod
    def point_tier_at(self, target: str) -> None:
        """Set where every node finds the remote tier: `TIER_STORE`, `TIER_NOWHERE` or `TIER_FULL`."""

    @abstractmethod
    def tier_data(self, mirrored: Path) -> Path:
        """Return a folder on this machine with the current content of the remote tier, for reading only.

        It contains a folder per partition, ``topic-partition-id``. `mirrored` is as for `partition_data`.
        """

    def moved_ports(self) -> list[str]:
        """Return a sentence for each listener that couldn't get the port its `Listener` wants."""
        words = []
        for node_id, node in self.nodes().items():
            for listener, (wanted, _) in self.spec.wanted_ports(node_id).items() if node.broker else ():
                port = self.address(node_id, listener).rpartition(":")[2]
                if wanted and port != str(wanted):
                    words.append(f"broker {node_id} has {listener} at port {port}, for {wanted} was taken")
        return words

    def control_address(self, node_id: int) -> str:
        """Return the ``host:port`` at which kafkalab itself asks a broker for metadata."""
        return self.address(node_id, OBSERVER_LISTENER if self.keyring else self.spec.listeners[0].name)

    def client_settings(self) -> dict[str, object]:
        """Return the librdkafka settings, besides addresses, of kafkalab itself and of clients without a user."""
        return self.keyring.observer() if self.keyring else dict(self.spec.listeners[0].client)

    def renew_certificate(self, node_id: int) -> Path:
        """Put a new certificate in place of a node's key store, and return the store's path as the node knows it."""
        raise FaultsUnsupported("the certificates of this cluster are not ours: make it with security=Security(…)")

    @abstractmethod
    def settings_file(self, node_id: int) -> Path:
        """Return a node's settings as a file on this machine. The ``log.dirs`` in it has the node's ``meta.properties``."""

    @abstractmethod
    def copy_log_dir(self, node_id: int, target: Path, topics: Collection[str] = ()) -> None:
        """Copy a node's data folder in its current state to a folder on this machine that doesn't exist yet.

        If you name topics, it copies only the folders of their partitions: see `holds_partition`.
        """

    @abstractmethod
    def partition_data(self, node_id: int, name: str, mirrored: Path) -> Path:
        """Return a folder on this machine with a node's current files of one partition, for reading only.

        It has the partition's folder and, beside it, the node's checkpoint files. It can be the data folder itself.

        Parameters
        ----------
        node_id
            Which node. It may be down.
        name
            The name of the partition's folder, ``topic-partition``.
        mirrored
            Where to copy to if a copy is needed. Later calls copy only changed files.
        """

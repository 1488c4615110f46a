"""What a back end must do. `Cluster` adds the words that learners read; a back end only acts."""

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

__all__ = ["TIER_NOWHERE", "TIER_STORE", "Backend", "holds_partition"]

# The remote tier is a link to a folder, so that it can be moved out of reach at once. A file in the folder's place lets
# every attempt to write or to read fail.
TIER_STORE, TIER_NOWHERE = "store", "nowhere"


def holds_partition(folder: str, topics: Collection[str]) -> bool:
    """Whether a folder of this name in a node's data folder holds a partition of one of these topics, which isn't deleted."""
    topic, _, partition = folder.rpartition("-")
    return topic in topics and partition.isdigit()


class Backend(ABC):
    """Runs the nodes of one cluster.

    Verbs act and return when the *process* is in the state named; `Cluster` then waits for what the *cluster* must
    show. All verbs may be called from any thread.
    """

    name: ClassVar[str]
    breakable: ClassVar[bool] = True

    def __init__(self, spec: ClusterSpec, run: Run) -> None:
        self.spec = spec
        self.run = run
        self.keyring = KeyRing(run.directory / "secrets", spec.security) if spec.security else None
        self.isolated: set[int] = set()
        """Nodes that are cut off, also while they are down."""
        self.tier_cut_off = False
        """Whether no node reaches the remote tier."""

    @abstractmethod
    def launch(self) -> None:
        """Start every node of the spec, side by side.

        Raises
        ------
        BrokerFailed, PortInUse, BackendUnavailable, NotEnoughResources
        """

    @abstractmethod
    def destroy(self) -> None:
        """End everything and remove data, ports and containers; on return nothing is left. Safe at any moment, and again."""

    @abstractmethod
    def nodes(self) -> dict[int, Node]:
        """All nodes by id, added ones included."""

    @abstractmethod
    def address(self, node_id: int, listener: str) -> str:
        """``host:port`` at which clients on this machine reach a broker's listener."""

    @abstractmethod
    def state(self, node_id: int) -> BrokerState:
        """State of the process: ``up`` here means that it runs (registered or not)."""

    @abstractmethod
    def kill(self, node_id: int) -> None:
        """SIGKILL; on return the process is gone."""

    @abstractmethod
    def terminate(self, node_id: int, timeout: float) -> None:
        """SIGTERM and wait for the controlled shutdown; on return the process is gone.

        Raises
        ------
        WaitTimeout
            When it still runs after `timeout` seconds.
        """

    @abstractmethod
    def pause(self, node_id: int) -> None:
        """Freeze the process: its connections stay open, nothing answers."""

    @abstractmethod
    def resume(self, node_id: int) -> None:
        """Let a paused process go on."""

    @abstractmethod
    def fetch(self, version: str) -> None:
        """Have a version of Kafka ready, so that a node is not down while it is fetched.

        Raises
        ------
        ValueError, DownloadError, BackendUnavailable
            When it cannot be had.
        """

    @abstractmethod
    def revive(self, node_id: int, changed: Mapping[str, str], version: str | None) -> None:
        """Start a node that is not running, with the same id, ports and data.

        From now on it has these settings changed, and runs that version of Kafka, unless it is None.
        """

    @abstractmethod
    def add(self, node: Node) -> None:
        """Start one more broker, or one more dedicated controller."""

    @abstractmethod
    def isolate(self, node_id: int) -> None:
        """Cut a node off from its peers in both directions: what is under way is held back, nothing new passes.
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
        """The node's log so far."""

    @abstractmethod
    def lose_log(self, node_id: int, name: str) -> None:
        """Remove the folder of a partition from the disk of a node that is down; `name` as for `partition_data`."""

    @abstractmethod
    def point_tier_at(self, target: str) -> None:
        """Let every node find this in place of the remote tier: one of `TIER_STORE` and `TIER_NOWHERE`."""

    @abstractmethod
    def tier_data(self, mirrored: Path) -> Path:
        """A folder of this machine that holds what the remote tier holds, as it is now, for reading only.

        It has a folder for each partition, ``topic-partition-id``. `mirrored` is as for `partition_data`.
        """

    def moved_ports(self) -> list[str]:
        """In words: which listeners are not at the port that their `Listener` wants, for it was taken."""
        words = []
        for node_id, node in self.nodes().items():
            for listener, (wanted, _) in self.spec.wanted_ports(node_id).items() if node.broker else ():
                port = self.address(node_id, listener).rpartition(":")[2]
                if wanted and port != str(wanted):
                    words.append(f"broker {node_id} has {listener} at port {port}, for {wanted} was taken")
        return words

    def control_address(self, node_id: int) -> str:
        """``host:port`` at which kafkalab itself asks a broker for metadata."""
        return self.address(node_id, OBSERVER_LISTENER if self.keyring else self.spec.listeners[0].name)

    def client_settings(self) -> dict[str, object]:
        """Librdkafka settings that kafkalab itself, and clients that are nobody in particular, need besides the addresses."""
        return self.keyring.observer() if self.keyring else dict(self.spec.listeners[0].client)

    def renew_certificate(self, node_id: int) -> Path:
        """Put a new certificate where a node's key store is, and return that store's path as the node knows it."""
        raise FaultsUnsupported("the certificates of this cluster are not ours: make it with security=Security(…)")

    @abstractmethod
    def settings_file(self, node_id: int) -> Path:
        """A node's settings as a file of this machine. The ``log.dirs`` in it has the node's ``meta.properties``."""

    @abstractmethod
    def copy_log_dir(self, node_id: int, target: Path, topics: Collection[str] = ()) -> None:
        """Copy a node's data folder, as it is at this moment, to a folder of this machine that does not exist yet.

        Where topics are named, only the folders of their partitions are copied: see `holds_partition`.
        """

    @abstractmethod
    def partition_data(self, node_id: int, name: str, mirrored: Path) -> Path:
        """A folder of this machine that holds what a node's data folder holds of one partition, as it is now, for reading only.

        It has the partition's folder and, beside it, the node's checkpoint files. It may be the data folder itself.

        Parameters
        ----------
        node_id
            Which node; it may be down.
        name
            ``topic-partition``, as the partition's folder is called.
        mirrored
            Where to copy to if the folder must be copied. Called again, only what changed is written there.
        """

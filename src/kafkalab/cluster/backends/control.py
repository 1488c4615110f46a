"""What a back end must do that runs the nodes itself. It only acts; others add the messages that learners read."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kafkalab.cluster.backends.access import Access
from kafkalab.cluster.properties import Placement, node_properties
from kafkalab.cluster.spec import ClusterSpec, Node
from kafkalab.cluster.tier_jars import tier_jars
from kafkalab.cluster.view import BrokerState
from kafkalab.distribution import KAFKA_VERSION, format_log_dir, random_uuid
from kafkalab.errors import BackendUnavailable, FaultsUnsupported
from kafkalab.lifeline import Run
from kafkalab.security.authority import Identity

__all__ = [
    "TIER_FULL",
    "TIER_NOWHERE",
    "TIER_STORE",
    "Control",
    "ManagedNode",
    "holds_partition",
    "require_breakable",
    "require_files",
]

# The remote tier is a link to a folder, so one step can move it out of reach. A file in the folder's place makes every
# read and write fail. By the name of the second link, to the same folder, nodes know that there is no room.
TIER_STORE, TIER_NOWHERE, TIER_FULL = "store", "nowhere", "full"


def holds_partition(folder: str, topics: Collection[str]) -> bool:
    """Return whether this folder of a data folder holds a partition of one of these topics that isn't deleted."""
    topic, _, partition = folder.rpartition("-")
    return topic in topics and partition.isdigit()


@dataclass
class ManagedNode:
    """A node that kafkalab runs."""

    node: Node
    version: str = KAFKA_VERSION  # that it runs, or ran last
    ended_by: str = ""  # the verb that ended it, "" while it should run
    identity: Identity | None = None  # its certificate, in a secured cluster
    changed: dict[str, str] = field(default_factory=dict)  # settings that a restart added

    @property
    def ended_state(self) -> BrokerState:
        """Its state when its process is gone."""
        return "stopped" if self.ended_by == "stop" else "dead"


class Control(Access):
    """Runs the nodes of one cluster.

    A verb returns when the *process* is in the named state. `Cluster` then waits for what the *cluster* must show. You
    may call all verbs from any thread.

    Attributes
    ----------
    managed
        The nodes by id.
    cluster_id
        Kafka's id of the cluster.
    isolated
        Isolated nodes, also while they are down.
    tier_target
        Where every node finds the remote tier at the moment.
    """

    managed: Mapping[int, ManagedNode]

    def __init__(self, spec: ClusterSpec, run: Run) -> None:
        super().__init__(spec, run)
        self.cluster_id = random_uuid()
        self.isolated: set[int] = set()
        self.tier_target = TIER_STORE

    def nodes(self) -> dict[int, Node]:
        return {node_id: managed.node for node_id, managed in self.managed.items()}

    # -- processes ----------------------------------------------------------------------------------------------

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

    # -- files --------------------------------------------------------------------------------------------------

    @abstractmethod
    def logs(self, node_id: int) -> str:
        """Return the node's log so far."""

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

    @abstractmethod
    def delete_replica(self, node_id: int, name: str) -> None:
        """Remove a partition's folder from the disk of a node that is down; `name` as for `partition_data`."""

    @abstractmethod
    def point_tier_at(self, target: str) -> None:
        """Set where every node finds the remote tier: `TIER_STORE`, `TIER_NOWHERE` or `TIER_FULL`."""

    @abstractmethod
    def tier_data(self, mirrored: Path) -> Path:
        """Return a folder on this machine with the current content of the remote tier, for reading only.

        It contains a folder per partition, ``topic-partition-id``. `mirrored` is as for `partition_data`.
        """

    # -- settings -----------------------------------------------------------------------------------------------

    @abstractmethod
    def hosts(self, node: Node) -> tuple[str, ...]:
        """Return the names and addresses of a node that its certificate must have."""

    def renew_certificate(self, node_id: int) -> Path:
        """Put a new certificate in place of a node's key store, and return the store's path as the node knows it."""
        return self._certify(self.managed[node_id]).keystore

    def _certify(self, managed: ManagedNode) -> Identity:
        """Give a node of a secured cluster a new key and certificate."""
        assert self.keyring is not None, "the cluster has no security"
        managed.identity = self.keyring.node(managed.node.id, self.hosts(managed.node))
        return managed.identity

    def format_data(self, node: Node, folder: Path) -> None:
        """Create a node's data folder, with the users that the cluster starts with."""
        first_users = self.keyring.first_scram() if self.keyring is not None else ()
        format_log_dir(folder, self.cluster_id, node.id, first_users, version=self.spec.version)

    def tier_jars(self) -> list[Path]:
        """Return the jars of the remote tier's storage manager, if the cluster has a tier."""
        return tier_jars() if self.spec.tiered_storage else []

    def properties(self, managed: ManagedNode, placement: Placement) -> dict[str, str]:
        """Return the settings of a node."""
        secured = (self.keyring, managed.identity) if self.keyring is not None and managed.identity is not None else None
        return node_properties(self.spec, managed.node, placement, secured, managed.changed)


def require_breakable(access: Access) -> Control:
    """Return the back end of a cluster for a fault. Raises `FaultsUnsupported` unless kafkalab started the cluster."""
    if not isinstance(access, Control):
        raise FaultsUnsupported(
            "this cluster was attached to, not started by kafkalab, so it is not ours to break: "
            "use Cluster(backend='local') or Cluster(backend='docker') for experiments with faults"
        )
    return access


def require_files(access: Access, what: str) -> Control:
    """Return the back end of a cluster for reading its nodes' files. Raises `BackendUnavailable` if it was attached to."""
    if not isinstance(access, Control):
        raise BackendUnavailable(f"the {what} of an attached cluster are where its brokers run")
    return access

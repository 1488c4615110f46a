"""The data of a cluster: what its brokers have on their disks and in the remote tier."""

from __future__ import annotations

import uuid
from pathlib import Path

from kafkalab.cluster.backends.control import require_breakable, require_files
from kafkalab.cluster.faults import Faults
from kafkalab.cluster.lifecycle import Lifecycle
from kafkalab.cluster.log_reader import LogReader
from kafkalab.cluster.remote_tier import RemoteTier
from kafkalab.cluster.view import PartitionView
from kafkalab.errors import KafkaLabError, NoReplica, UnknownPartition, UnknownTopic

__all__ = ["Disk"]


class Disk:
    """The data of a running cluster; `Cluster.disk` gives it."""

    def __init__(self, lifecycle: Lifecycle, faults: Faults) -> None:
        self._lifecycle = lifecycle
        self._faults = faults

    def copy_log_dir(self, broker: int, *topics: str) -> Path:
        """Copy a node's data folder in its current state to this machine, and return the copy's folder.

        The copy has one folder per partition with its segments. It's removed with the cluster.

        Parameters
        ----------
        broker
            Which node. It may be down.
        *topics
            Copy only the folders of these topics' partitions. The whole folder holds much more: each partition's
            indexes take two megabytes, and the files of a deleted topic stay for a minute.

        Raises
        ------
        BackendUnavailable
            If the cluster was attached to.
        """
        access = self._lifecycle.access()
        access.require_node(broker)
        control = require_files(access, "files")
        target = control.run.directory / f"copy-{broker}-{uuid.uuid4().hex[:6]}"
        control.copy_log_dir(broker, target, topics)
        return target

    def log_reader(self, topic: str, partition: int = 0, broker: int | None = None) -> LogReader:
        """Return a reader of one partition's log: its files on a broker's disk, and the offsets that brokers report.

        It changes nothing. For an attached cluster it sees offsets only.

        Parameters
        ----------
        topic, partition
            Which log. Internal topics have one, too.
        broker
            The broker whose disk to read; it may be down. By default the partition's current leader.

        Raises
        ------
        UnknownTopic, UnknownPartition, UnknownBroker
            If the cluster has none of that name or number.
        NoReplica
            If that broker has no replica of the partition.
        """
        placed = self._placed(topic, partition, broker)
        access, observer = self._lifecycle.running()
        return LogReader(access, observer.connect, placed, broker)

    def delete_replica(self, broker: int, topic: str, partition: int = 0) -> None:
        """Remove a partition's folder from the disk of a stopped broker, as if its disk had been replaced.

        Raises
        ------
        BrokerNotRunning
            If the broker isn't down, because its files are open.
        UnknownTopic, UnknownPartition, UnknownBroker, NoReplica
            As for `log_reader`.
        """
        self._placed(topic, partition, broker)
        with self._faults.on(broker, "delete a replica of", ("stopped", "dead")) as (control, _):
            control.delete_replica(broker, f"{topic}-{partition}")

    @property
    def remote_tier(self) -> RemoteTier:
        """The remote tier: its content, and verbs that cut it off and reconnect it.

        Raises
        ------
        KafkaLabError
            If the cluster was made without ``tiered_storage=True``.
        """
        access = self._lifecycle.access()
        if not access.spec.tiered_storage:
            raise KafkaLabError("this cluster was not made with tiered_storage=True: it has no remote tier")
        return RemoteTier(require_breakable(access))

    def _placed(self, topic: str, partition: int, broker: int | None) -> PartitionView:
        """Return where a partition is placed, after a check that this broker has a replica."""
        if broker is not None:
            self._lifecycle.access().require_node(broker)
        with self._lifecycle.observing() as observer:
            topics = observer.describe(groups=False, internal=True).topics
        if topic not in topics:
            known = ", ".join(topics) or "none yet"
            raise UnknownTopic(f"there is no topic {topic!r} in this cluster; it has {known}")
        placed = next((p for p in topics[topic] if p.partition == partition), None)
        if placed is None:
            numbers = f"0 to {len(topics[topic]) - 1}" if len(topics[topic]) > 1 else "only 0"
            raise UnknownPartition(f"{topic} has no partition {partition!r}; it has {numbers}")
        if broker is not None and broker not in placed.replicas:
            brokers = ", ".join(map(str, sorted(placed.replicas)))
            raise NoReplica(
                f"broker {broker} has no replica of partition {partition} of {topic}; these brokers have one: {brokers}"
            )
        return placed

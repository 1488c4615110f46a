"""Look at one partition's log on one broker: its files, and the offsets that brokers report."""

from __future__ import annotations

import shutil
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass

from kafkalab.cluster.backends.access import Access
from kafkalab.cluster.backends.control import TIER_NOWHERE, Control, require_files
from kafkalab.cluster.log_fetch import fetch
from kafkalab.cluster.log_files import LogFiles, LogFolder, Segment, TierFolder
from kafkalab.cluster.log_offsets import LogOffsets, OffsetReader
from kafkalab.cluster.observer import RUNNING
from kafkalab.cluster.remote_tier import tier_folder
from kafkalab.cluster.view import BrokerState, PartitionView
from kafkalab.cluster.wire import BrokerConnection
from kafkalab.errors import BackendUnavailable, NoReplica

__all__ = ["LogReader", "LogView"]

_REFETCH = 2.0  # seconds


@dataclass(frozen=True)
class LogView:
    """A partition's log on one broker at one moment.

    Attributes
    ----------
    topic, partition, broker
        The partition, and the broker whose disk is shown.
    state
        State of that broker's process.
    leader, replicas, isr
        The partition's leader or None, its replicas, and the in-sync ones.
    offsets
        The offsets that brokers reported.
    files
        The files on the broker's disk, or None if they can't be read.
    unseen
        Why they can't be read.
    fetched
        The newest batches from the leader, if its files can't be read.
    remote
        The segments in the remote tier, if there is one and its files can be read. The broker may have them, too.
    """

    topic: str
    partition: int
    broker: int
    state: BrokerState
    leader: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offsets: LogOffsets
    files: LogFiles | None
    unseen: str = ""
    fetched: Segment | None = None
    remote: tuple[Segment, ...] = ()

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The segments that are part of the log, or what the leader sent of it."""
        if self.files is not None:
            return self.files.live
        return () if self.fetched is None else (self.fetched,)

    @property
    def only_remote(self) -> tuple[Segment, ...]:
        """The segments that are in the remote tier, but no longer on the broker's disk."""
        on_disk = {segment.base_offset for segment in self.segments}
        return tuple(segment for segment in self.remote if segment.base_offset not in on_disk)


class LogReader:
    """Look at one partition's log repeatedly. `Disk.log_reader` makes one. Any thread may use it.

    Without a broker, it looks at the one that leads the partition at the time.
    """

    def __init__(
        self, access: Access, connect: Callable[[str], BrokerConnection], placed: PartitionView, broker: int | None
    ) -> None:
        self._access = access
        self._placed = placed
        self._fixed = broker
        self._broker = placed.replicas[0]  # until there is a leader
        self._offsets = OffsetReader(connect)
        self._mirror = access.run.directory / f"log-{uuid.uuid4().hex[:6]}"
        self._folder: tuple[int, LogFolder] | None = None
        self._tier = TierFolder()
        self._sent: tuple[object, float, Segment | None] = (None, 0.0, None)  # of which offsets, when, what
        self._reading = threading.Lock()

    def read(self) -> LogView:
        """Look once, now. Unreported values are left out. You can see a broker's files even while it's down."""
        with self._reading:
            access, addresses = self._access, self._addresses()
            placed, problem = self._where(addresses)
            if self._fixed is not None:
                self._broker = self._fixed
            elif placed.leader is not None:
                self._broker = placed.leader
            broker = self._broker
            files, reachable = None, True
            if not problem:
                try:
                    files = self._files(broker, placed)
                except (BackendUnavailable, NoReplica) as error:
                    problem, reachable = str(error), isinstance(error, NoReplica)
            offsets = self._offsets.read(addresses, placed)  # after the files, so that no log ends before its last record
            fetched = None if reachable else self._fetched(addresses, placed, offsets)
            return LogView(
                placed.topic,
                placed.partition,
                broker,
                access.state(broker),
                placed.leader,
                placed.replicas,
                placed.isr,
                offsets,
                files,
                problem,
                fetched,
                self._remote(placed),
            )

    def close(self) -> None:
        """Close connections and remove copied files. Safe to call again."""
        with self._reading:
            self._offsets.close()
            shutil.rmtree(self._mirror, ignore_errors=True)

    def _addresses(self) -> dict[int, str]:
        """Return brokers that can answer. Isolated ones come last, because they answer with outdated metadata."""
        access = self._access
        states = {i: access.state(i) for i in access.brokers()}
        running = sorted((i for i, state in states.items() if state in RUNNING), key=lambda i: states[i] == "isolated")
        return {i: access.control_address(i) for i in running}

    def _where(self, addresses: dict[int, str]) -> tuple[PartitionView, str]:
        """Return the partition's current placement (the last known one if no broker answers), and what is wrong with it."""
        topic, partition = self._placed.topic, self._placed.partition
        try:
            placed = self._offsets.placement(addresses, topic, partition)
        except OSError:
            return self._placed, ""
        if placed is None:
            return self._placed, f"the topic {topic} was deleted"
        self._placed = placed
        return placed, ""

    def _fetched(self, addresses: dict[int, str], placed: PartitionView, offsets: LogOffsets) -> Segment | None:
        """Return the leader's batches. Ask again after offsets moved, and now and then because the cleaner may have run."""
        of, at, before = self._sent
        start, end = offsets.start, offsets.high_watermark
        if placed.leader not in addresses or start is None or end is None:
            return before
        now = time.monotonic()
        key = (placed.leader, placed.leader_epoch, start, end)
        if key != of or now - at > _REFETCH:
            try:
                before = fetch(self._offsets.connection(addresses[placed.leader]), placed, start, end)
            except OSError:
                return before
            self._sent = (key, now, before)
        return before

    def _remote(self, placed: PartitionView) -> tuple[Segment, ...]:
        access = self._access
        if not isinstance(access, Control) or not access.spec.tiered_storage or access.tier_target == TIER_NOWHERE:
            return ()
        folder = tier_folder(access.tier_data(self._mirror / "tier"), placed.topic, placed.partition)
        return self._tier.read(folder) if folder is not None else ()

    def _files(self, broker: int, placed: PartitionView) -> LogFiles:
        if broker not in placed.replicas:
            raise NoReplica(f"broker {broker} has no replica of this partition any more; brokers {placed.replicas} have one")
        control = require_files(self._access, "files")
        data = control.partition_data(broker, f"{placed.topic}-{placed.partition}", self._mirror / str(broker))
        if self._folder is None or self._folder[0] != broker:
            self._folder = broker, LogFolder(data, placed.topic, placed.partition)
        return self._folder[1].read()

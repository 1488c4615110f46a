"""What a cluster shows at one moment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

__all__ = ["BrokerState", "BrokerView", "ClusterView", "Fault", "GroupView", "MemberView", "PartitionView", "ShareGroupView"]

BrokerState = Literal["up", "starting", "paused", "isolated", "stopped", "dead"]
"""``starting`` runs but isn't registered and unfenced yet; ``stopped`` ended cleanly; ``dead`` was killed or crashed."""


@dataclass(frozen=True)
class BrokerView:
    """One node of the cluster.

    Attributes
    ----------
    id
        ``node.id``.
    address
        ``host:port`` where clients reach it; empty for a dedicated controller.
    rack
        ``broker.rack``, or None.
    state
        See `BrokerState`.
    controller
        True for the active controller: the leader of the metadata quorum.
    voter
        True if it votes in the metadata quorum.
    end
        Why it's dead, if that can be told and no verb did it: the memory limit of the machine ended it. Otherwise empty.
    """

    id: int
    address: str
    rack: str | None
    state: BrokerState
    controller: bool
    voter: bool
    end: str = field(default="", repr=False)


@dataclass(frozen=True)
class PartitionView:
    """One partition. `leader` is None while it has none; `replicas` begins with the preferred leader."""

    topic: str
    partition: int
    leader: int | None
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


@dataclass(frozen=True)
class MemberView:
    """One member of a consumer group and its assigned partitions."""

    id: str
    client_id: str
    partitions: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class GroupView:
    """One consumer group.

    Attributes
    ----------
    id, state, members
        As Kafka reports them: ``Stable``, ``Empty``, ``PreparingRebalance`` …
    lag
        For each (topic, partition) with a committed offset: records between it and the end of the log.
    protocol
        The group protocol: ``classic``, or ``consumer`` (KIP-848).
    assignor
        The assignor: ``range``, ``cooperative-sticky``, ``uniform`` … Empty while there is none.
    """

    id: str
    state: str
    members: tuple[MemberView, ...]
    lag: Mapping[tuple[str, int], int] = field(default_factory=dict)
    protocol: Literal["classic", "consumer"] = "classic"
    assignor: str = ""


@dataclass(frozen=True)
class ShareGroupView:
    """One share group.

    Attributes
    ----------
    id, state, members
        As Kafka reports them: ``Stable``, ``Empty``. Several members may have the same partition.
    starts
        For each (topic, partition): the offset before which every record is settled: accepted or set aside.
    lag
        For each (topic, partition): records that aren't settled yet.
    """

    id: str
    state: str
    members: tuple[MemberView, ...]
    starts: Mapping[tuple[str, int], int] = field(default_factory=dict)
    lag: Mapping[tuple[str, int], int] = field(default_factory=dict)


@dataclass(frozen=True)
class ClusterView:
    """A cluster at one moment.

    Attributes
    ----------
    cluster_id
        As Kafka formatted it.
    controller
        Id of the active controller, or None while there is none, or if it can't be seen.
    controller_epoch
        Raft epoch of that leadership. It grows with every election.
    brokers
        All nodes of the spec by id, dedicated controllers included.
    topics
        Partitions by topic name, in order. Internal topics only on request.
    groups
        Consumer groups by id; empty unless requested.
    silent
        Live brokers that didn't report everything. Groups that they coordinate may be missing in `groups`, and the lag in
        partitions that they lead.
    ends
        For each (topic, partition) whose leader reported it: the end of the log. Empty unless groups are requested. Views
        that differ in nothing else are equal.
    share_groups
        Share groups by id, of brokers that can be asked for them; empty unless groups are requested.
    """

    cluster_id: str
    controller: int | None
    controller_epoch: int
    brokers: Mapping[int, BrokerView]
    topics: Mapping[str, tuple[PartitionView, ...]]
    groups: Mapping[str, GroupView] = field(default_factory=dict)
    silent: frozenset[int] = frozenset()
    ends: Mapping[tuple[str, int], int] = field(default_factory=dict, compare=False)
    share_groups: Mapping[str, ShareGroupView] = field(default_factory=dict)

    # Each predicate raises KeyError while a topic doesn't exist. `Cluster.wait_for` takes that as "not yet".

    @property
    def brokers_up(self) -> list[int]:
        """Ids of the brokers that run and accept requests, in order, without dedicated controllers."""
        return sorted(broker.id for broker in self.brokers.values() if broker.state == "up" and broker.address)

    def led(self, topics: str | Iterable[str]) -> bool:
        """Return whether every partition of a topic, or of several, has a leader."""
        return all(p.leader is not None for p in self._partitions(topics))

    def led_by(self, topics: str | Iterable[str], broker: int) -> bool:
        """Return whether a broker leads every partition of a topic, or of several."""
        return all(p.leader == broker for p in self._partitions(topics))

    def moved_from(self, topics: str | Iterable[str], broker: int) -> bool:
        """Return whether every partition of a topic, or of several, has a leader other than this broker."""
        return all(p.leader not in (broker, None) for p in self._partitions(topics))

    def in_sync(self, topics: str | Iterable[str]) -> bool:
        """Return whether all replicas of every partition of a topic, or of several, are in sync."""
        return all(set(p.isr) == set(p.replicas) for p in self._partitions(topics))

    def out_of_sync(self, topics: str | Iterable[str], broker: int) -> bool:
        """Return whether no ISR of a topic's partitions, or several topics', contains a broker, and each has members."""
        return all(p.isr and broker not in p.isr for p in self._partitions(topics))

    def _partitions(self, topics: str | Iterable[str]) -> list[PartitionView]:
        return [p for topic in ([topics] if isinstance(topics, str) else topics) for p in self.topics[topic]]

    def leaders(self, topic: str) -> dict[int, int | None]:
        """Return the leader of each partition of a topic."""
        return {p.partition: p.leader for p in self.topics[topic]}

    def isr(self, topic: str) -> dict[int, tuple[int, ...]]:
        """Return the in-sync replicas of each partition of a topic, in ascending order of id."""
        return {p.partition: tuple(sorted(p.isr)) for p in self.topics[topic]}


@dataclass(frozen=True)
class Fault:
    """A fault verb that ran: `at` is in seconds since the epoch, `verb` the verb's name.

    A verb that raised doesn't count as a fault, with two exceptions. A verb that timed out (`WaitTimeout`) or was
    interrupted has already told the node what to do, and the node may still do it. A verb that added a broker has added
    it, even if the broker isn't ready in time.
    """

    at: float
    verb: str
    broker: int

"""What can be seen of a cluster at one moment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

__all__ = ["BrokerState", "BrokerView", "ClusterView", "Fault", "GroupView", "MemberView", "PartitionView", "ShareGroupView"]

BrokerState = Literal["up", "starting", "paused", "isolated", "stopped", "dead"]
"""``starting`` runs but is not (yet) registered and unfenced; ``stopped`` ended cleanly, ``dead`` was killed or crashed."""


@dataclass(frozen=True)
class BrokerView:
    """One node of the cluster.

    Attributes
    ----------
    id
        ``node.id``.
    address
        ``host:port`` at which clients reach it; empty for a dedicated controller.
    rack
        ``broker.rack``, or None.
    state
        See `BrokerState`.
    controller
        True for the active controller: the leader of the metadata quorum.
    voter
        True if it votes in the metadata quorum.
    """

    id: int
    address: str
    rack: str | None
    state: BrokerState
    controller: bool
    voter: bool


@dataclass(frozen=True)
class PartitionView:
    """One partition: `leader` is None while it has none; `replicas` begins with the preferred leader."""

    topic: str
    partition: int
    leader: int | None
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


@dataclass(frozen=True)
class MemberView:
    """One member of a consumer group and the partitions that it owns."""

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
        Per (topic, partition) with a committed offset: records between it and the end of the log.
    protocol
        How its members agree: ``classic``, or ``consumer`` (KIP-848).
    assignor
        Who shares the partitions out: ``range``, ``cooperative-sticky``, ``uniform`` … Empty while nobody does.
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
        Per (topic, partition): the offset before which every record is settled, accepted or set aside.
    lag
        Per (topic, partition): records that are not settled.
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
        As formatted.
    controller
        Id of the active controller, or None while there is none (or where it cannot be seen).
    controller_epoch
        Raft epoch of that leadership; grows with every election.
    brokers
        All nodes of the spec by id, dedicated controllers included.
    topics
        Partitions by topic name, in order. Internal topics only if they were asked for.
    groups
        Consumer groups by id; empty if they were not asked for.
    silent
        Live brokers that were asked for their groups and did not tell: what these coordinate is missing in `groups`.
    """

    cluster_id: str
    controller: int | None
    controller_epoch: int
    brokers: Mapping[int, BrokerView]
    topics: Mapping[str, tuple[PartitionView, ...]]
    groups: Mapping[str, GroupView] = field(default_factory=dict)
    silent: frozenset[int] = frozenset()

    # Each predicate raises KeyError while a topic is not there, which `Cluster.wait_for` takes for "not yet".

    @property
    def brokers_up(self) -> list[int]:
        """Ids of the brokers that run and take requests, in order; dedicated controllers aren't among them."""
        return sorted(broker.id for broker in self.brokers.values() if broker.state == "up" and broker.address)

    def led(self, topics: str | Iterable[str]) -> bool:
        """Whether every partition of a topic, or of several, has a leader."""
        return all(p.leader is not None for p in self._partitions(topics))

    def led_by(self, topics: str | Iterable[str], broker: int) -> bool:
        """Whether a broker leads every partition of a topic, or of several."""
        return all(p.leader == broker for p in self._partitions(topics))

    def moved_from(self, topics: str | Iterable[str], broker: int) -> bool:
        """Whether every partition of a topic, or of several, has a leader, and it is not this broker."""
        return all(p.leader not in (broker, None) for p in self._partitions(topics))

    def in_sync(self, topics: str | Iterable[str]) -> bool:
        """Whether all replicas of every partition of a topic, or of several, are in sync."""
        return all(set(p.isr) == set(p.replicas) for p in self._partitions(topics))

    def out_of_sync(self, topics: str | Iterable[str], broker: int) -> bool:
        """Whether a broker is in the ISR of no partition of a topic, or of several, and each of them still has an ISR."""
        return all(p.isr and broker not in p.isr for p in self._partitions(topics))

    def _partitions(self, topics: str | Iterable[str]) -> list[PartitionView]:
        return [p for topic in ([topics] if isinstance(topics, str) else topics) for p in self.topics[topic]]

    def leaders(self, topic: str) -> dict[int, int | None]:
        """Leader of each partition of a topic."""
        return {p.partition: p.leader for p in self.topics[topic]}

    def isr(self, topic: str) -> dict[int, tuple[int, ...]]:
        """In-sync replicas of each partition of a topic, in ascending order of id."""
        return {p.partition: tuple(sorted(p.isr)) for p in self.topics[topic]}


@dataclass(frozen=True)
class Fault:
    """A fault verb that was carried out: `at` is in seconds since the epoch, `verb` the verb's name.

    A verb that raised is no fault, with two exceptions. One that ran out of time (`WaitTimeout`) or was interrupted has told
    the node what to do, and the node may still follow. One that added a broker has added it, even if it isn't ready in time.
    """

    at: float
    verb: str
    broker: int

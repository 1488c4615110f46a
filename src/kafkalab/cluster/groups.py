"""Read consumer groups from their coordinators.

librdkafka's admin client can do that, too. But it ends the whole process if a coordinator goes away during a request
(https://github.com/confluentinc/librdkafka/issues/4605), and in this course coordinators go away all the time.
"""

from __future__ import annotations

import contextlib
import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from kafka.protocol.admin import DescribeGroupsRequest, DescribeGroupsResponse, ListGroupsRequest, ListGroupsResponse
from kafka.protocol.api_message import ApiMessage
from kafka.protocol.consumer.group import OffsetFetchRequest, OffsetFetchResponse
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment
from kafka.protocol.consumer.offsets import ListOffsetsRequest, ListOffsetsResponse

from kafkalab.cluster import messages
from kafkalab.cluster.share_groups import coordinated_share_groups, members_of
from kafkalab.cluster.view import GroupView, MemberView, PartitionView, ShareGroupView
from kafkalab.cluster.wire import BrokerConnection

__all__ = ["GroupReader", "Reading"]

_LIST_GROUPS_VERSION = 5
_DESCRIBE_GROUPS_VERSION = 6
_DESCRIBE_CONSUMER_GROUPS_VERSION = 1
_OFFSET_FETCH_VERSION = 9
_LIST_OFFSETS_VERSION = 7
_LATEST = -1
_ANY_REPLICA = -1
# Of more visible partitions than this, only the ends that a lag needs are asked for: the others cost too much time.
_MOST_ENDS = 300

_Committed = dict[tuple[str, int], int]


class ConsumerGroupDescribeRequest(ApiMessage, load_json=messages):  # type: ignore[call-arg,misc]
    """Asks for groups of the new protocol (KIP-848), which kafka-python's own classes don't know."""


class ConsumerGroupDescribeResponse(ApiMessage, load_json=messages):  # type: ignore[call-arg,misc]
    """The response to `ConsumerGroupDescribeRequest`."""


@dataclass(frozen=True)
class Reading:
    """What brokers report of groups.

    Attributes
    ----------
    groups
        Consumer groups by id, with members, assignment and lag.
    share_groups
        Share groups by id, of brokers that can be asked for them (Kafka 4.2) and answer at once.
    ends
        The ends of logs. Of a partition that a broker has just ceased to lead it reports none, and so there's no lag.
    silent
        The brokers that didn't report all. A broker doesn't while it hangs, or while it takes over a dead coordinator's
        groups.
    """

    groups: dict[str, GroupView] = field(default_factory=dict)
    share_groups: dict[str, ShareGroupView] = field(default_factory=dict)
    ends: dict[tuple[str, int], int] = field(default_factory=dict)
    silent: frozenset[int] = frozenset()


class GroupReader:
    """Asks brokers for consumer groups, over its own connections: a broker that hangs delays nobody else's requests."""

    def __init__(self, connect: Callable[[str], BrokerConnection] = BrokerConnection) -> None:
        self._connect = connect
        self._connections: dict[str, BrokerConnection] = {}
        self._asking = threading.Lock()

    def read(self, brokers: Mapping[int, str], partitions: Iterable[PartitionView], internal: Collection[str] = ()) -> Reading:
        """Return what brokers report.

        Parameters
        ----------
        brokers
            ``host:port`` of each live broker by id.
        partitions
            The partitions and their leaders. The leader reports the end of a partition's log.
        internal
            Topics whose ends nobody wants to know, unless a group reads them.
        """
        groups: dict[str, GroupView] = {}
        share_groups: dict[str, ShareGroupView] = {}
        committed: dict[str, _Committed] = {}
        silent = set()
        with self._asking:
            for broker, address in brokers.items():
                try:
                    connection = self._connection(address)
                    ids = _coordinated_by(connection)
                    coordinated = _described(connection, ids)
                    groups |= coordinated
                    committed |= _committed(connection, coordinated)
                    if ids["share"]:
                        with contextlib.suppress(OSError):  # it's too old to be asked, or has just begun to coordinate them
                            share_groups |= coordinated_share_groups(ids["share"], connection)
                except (OSError, _NotReported):
                    silent.add(broker)
            wanted = {position for positions in committed.values() for position in positions}
            answering = set(brokers) - silent
            led = [p for p in partitions if p.leader in brokers]
            others = [p for p in led if p.topic not in internal and p.leader in answering]
            asked = wanted | ({(p.topic, p.partition) for p in others} if len(others) <= _MOST_ENDS else set())
            leaders: dict[int, list[PartitionView]] = defaultdict(list)
            for p in led:
                if p.leader is not None and (p.topic, p.partition) in asked:
                    leaders[p.leader].append(p)
            ends: _Committed = {}
            for leader, its_own in leaders.items():
                with contextlib.suppress(OSError):
                    ends |= _ends(self._connection(brokers[leader]), its_own)
                missing = wanted - ends.keys()  # the leader leads them no longer, or was too slow
                if any((p.topic, p.partition) in missing for p in its_own):
                    silent.add(leader)
        with_lag = {id_: replace(group, lag=_lag(committed.get(id_, {}), ends)) for id_, group in sorted(groups.items())}
        return Reading(with_lag, share_groups, ends, frozenset(silent))

    def close(self) -> None:
        """Close all connections."""
        with self._asking:
            for connection in self._connections.values():
                connection.close()
            self._connections.clear()

    def _connection(self, address: str) -> BrokerConnection:
        if address not in self._connections:
            self._connections[address] = self._connect(address)
        return self._connections[address]


class _NotReported(Exception):
    """A broker answered that it can't report at the moment."""


def _coordinated_by(connection: BrokerConnection) -> dict[str, list[str]]:
    """Return the ids of a broker's groups, by type."""
    request = ListGroupsRequest(states_filter=[], types_filter=[], version=_LIST_GROUPS_VERSION)
    listing = connection.ask(request, ListGroupsResponse, _LIST_GROUPS_VERSION)
    if listing.error_code:
        raise _NotReported
    by_type: dict[str, list[str]] = defaultdict(list)
    for listed in listing.groups:
        # Kafka Connect's workers are a group, too, but divide connectors. A group that only committed has no type.
        if listed.protocol_type in ("consumer", "share", ""):
            by_type[listed.group_type].append(listed.group_id)
    return by_type


def _described(connection: BrokerConnection, ids: Mapping[str, list[str]]) -> dict[str, GroupView]:
    return {**_classic(connection, ids["classic"]), **_of_new_protocol(connection, ids["consumer"])}


def _classic(connection: BrokerConnection, ids: list[str]) -> dict[str, GroupView]:
    if not ids:
        return {}
    answer = connection.ask(
        DescribeGroupsRequest(groups=ids, version=_DESCRIBE_GROUPS_VERSION), DescribeGroupsResponse, _DESCRIBE_GROUPS_VERSION
    )
    return {
        g.group_id: GroupView(
            g.group_id,
            g.group_state,
            _members((m.member_id, m.client_id, _assigned(m.member_assignment)) for m in g.members),
            assignor=g.protocol_data,
        )
        for g in answer.groups
        if not g.error_code  # the group was deleted in between
    }


def _assigned(assignment: bytes) -> list[tuple[str, int]]:
    if not assignment:  # while the group is being rebalanced
        return []
    topics = ConsumerProtocolAssignment.decode(assignment).assigned_partitions
    return [(topic.topic, partition) for topic in topics for partition in topic.partitions]


def _of_new_protocol(connection: BrokerConnection, ids: list[str]) -> dict[str, GroupView]:
    if not ids:
        return {}
    request = ConsumerGroupDescribeRequest(
        group_ids=ids, include_authorized_operations=False, version=_DESCRIBE_CONSUMER_GROUPS_VERSION
    )
    answer = connection.ask(request, ConsumerGroupDescribeResponse, _DESCRIBE_CONSUMER_GROUPS_VERSION)
    return {
        g.group_id: GroupView(
            g.group_id,
            g.group_state,
            members_of(g.members),
            protocol="consumer",
            assignor=g.assignor_name,
        )
        for g in answer.groups
        if not g.error_code
    }


def _members(described: Iterable[tuple[str, str, list[tuple[str, int]]]]) -> tuple[MemberView, ...]:
    members = (MemberView(id_, client, tuple(sorted(owned))) for id_, client, owned in described)
    return tuple(sorted(members, key=lambda m: (m.client_id, m.id)))


def _committed(connection: BrokerConnection, groups: Iterable[str]) -> dict[str, _Committed]:
    wanted = [OffsetFetchRequest.OffsetFetchRequestGroup(group_id=id_, topics=None) for id_ in groups]
    if not wanted:
        return {}
    request = OffsetFetchRequest(groups=wanted, version=_OFFSET_FETCH_VERSION)
    answer = connection.ask(request, OffsetFetchResponse, _OFFSET_FETCH_VERSION)
    return {
        g.group_id: {
            (t.name, p.partition_index): p.committed_offset for t in g.topics for p in t.partitions if p.committed_offset >= 0
        }
        for g in answer.groups
    }


def _ends(connection: BrokerConnection, led: Iterable[PartitionView]) -> _Committed:
    topics: dict[str, list[int]] = defaultdict(list)
    for p in led:
        topics[p.topic].append(p.partition)
    topic, partition = ListOffsetsRequest.ListOffsetsTopic, ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition
    request = ListOffsetsRequest(
        replica_id=_ANY_REPLICA,
        isolation_level=0,
        topics=[
            topic(name=name, partitions=[partition(partition_index=p, timestamp=_LATEST) for p in numbers])
            for name, numbers in topics.items()
        ],
        version=_LIST_OFFSETS_VERSION,
    )
    answer = connection.ask(request, ListOffsetsResponse, _LIST_OFFSETS_VERSION)
    return {(t.name, p.partition_index): p.offset for t in answer.topics for p in t.partitions if not p.error_code}


def _lag(committed: _Committed, ends: _Committed) -> _Committed:
    return {position: max(0, ends[position] - offset) for position, offset in committed.items() if position in ends}

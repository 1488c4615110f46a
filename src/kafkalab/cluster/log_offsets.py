"""Ask brokers where a partition's log begins and ends, on its leader and on every replica."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from kafka.protocol.admin import DescribeConfigsRequest, DescribeConfigsResponse
from kafka.protocol.consumer.offsets import ListOffsetsRequest, ListOffsetsResponse

from kafkalab.cluster.view import PartitionView
from kafkalab.cluster.wire import BrokerConnection

__all__ = ["LogOffsets", "OffsetReader"]

_LIST_OFFSETS_VERSION = 9
_DESCRIBE_CONFIGS_VERSION = 4
_TOPIC = 2
_POLICY, _TIERED = "cleanup.policy", "remote.storage.enable"

# Special timestamps that ask for an offset: org.apache.kafka.common.requests.ListOffsetsRequest
_LATEST, _EARLIEST, _EARLIEST_LOCAL, _LATEST_TIERED = -1, -2, -4, -5
# The kind of client. A consumer learns what it may read, from the leader only. A debugging replica learns where any
# replica's own log ends.
_CONSUMER, _DEBUGGING = -1, -2
_UNCOMMITTED, _COMMITTED = 0, 1


@dataclass(frozen=True)
class LogOffsets:
    """Offsets of one partition. A value is None if no broker reported it.

    Attributes
    ----------
    start
        Log start offset: the first one that can be read, from disk or from the remote tier.
    high_watermark
        The offset after the last record that all in-sync replicas have.
    last_stable
        Last stable offset: where the first open transaction begins, else the high watermark.
    local_start
        With a remote tier: the first offset that is still on the leader's disk.
    tiered
        With a remote tier: the last offset in it, or -1 if it has none.
    ends
        Log end offset of each replica that answered: the offset of its next record.
    compacted
        Whether the topic's ``cleanup.policy`` has ``compact``.
    """

    start: int | None = None
    high_watermark: int | None = None
    last_stable: int | None = None
    local_start: int | None = None
    tiered: int | None = None
    ends: Mapping[int, int] = field(default_factory=dict)
    compacted: bool = False


class OffsetReader:
    """Ask brokers for the offsets of one partition, over its own connections."""

    def __init__(self, connect: Callable[[str], BrokerConnection]) -> None:
        self._connect = connect
        self._connections: dict[str, BrokerConnection] = {}

    def placement(self, addresses: Mapping[int, str], topic: str, partition: int) -> PartitionView | None:
        """Return a partition's leader and replicas, as the first broker that answers knows them, or None if it doesn't exist.

        Raises
        ------
        OSError
            If no broker answers.
        """
        problem: OSError = ConnectionError("no broker of this cluster runs")
        for address in addresses.values():
            try:
                partitions = self.connection(address).metadata().topics.get(topic, ())
            except OSError as error:
                problem = error
            else:
                return next((p for p in partitions if p.partition == partition), None)
        raise problem

    def read(self, addresses: Mapping[int, str], placed: PartitionView) -> LogOffsets:
        """Return the partition's offsets.

        Parameters
        ----------
        addresses
            ``host:port`` of each broker that may answer, by id.
        placed
            The partition with its leader and replicas.
        """
        ends = {}
        for broker in placed.replicas:
            if broker in addresses:
                end = self._ask(addresses[broker], placed, _LATEST, replica=_DEBUGGING)
                if end is not None:
                    ends[broker] = end
        leader = addresses.get(placed.leader) if placed.leader is not None else None
        if leader is None:
            return LogOffsets(ends=ends)
        settings = self._settings(leader, placed.topic)
        tiered = settings.get(_TIERED) == "true"
        return LogOffsets(
            self._ask(leader, placed, _EARLIEST),
            self._ask(leader, placed, _LATEST),
            self._ask(leader, placed, _LATEST, isolation=_COMMITTED),
            self._ask(leader, placed, _EARLIEST_LOCAL) if tiered else None,
            self._ask(leader, placed, _LATEST_TIERED) if tiered else None,
            ends,
            "compact" in settings.get(_POLICY, ""),
        )

    def connection(self, address: str) -> BrokerConnection:
        """Return the connection to the broker at an address."""
        if address not in self._connections:
            self._connections[address] = self._connect(address)
        return self._connections[address]

    def close(self) -> None:
        """Close all connections."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def _ask(
        self, address: str, placed: PartitionView, timestamp: int, *, replica: int = _CONSUMER, isolation: int = _UNCOMMITTED
    ) -> int | None:
        topic, partition = ListOffsetsRequest.ListOffsetsTopic, ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition
        request = ListOffsetsRequest(
            replica_id=replica,
            isolation_level=isolation,
            topics=[topic(name=placed.topic, partitions=[partition(partition_index=placed.partition, timestamp=timestamp)])],
            version=_LIST_OFFSETS_VERSION,
        )
        with contextlib.suppress(OSError):
            answer = self.connection(address).ask(request, ListOffsetsResponse, _LIST_OFFSETS_VERSION)
            for answered in (p for t in answer.topics for p in t.partitions):
                return None if answered.error_code else int(answered.offset)
        return None

    def _settings(self, address: str, topic: str) -> dict[str, str]:
        resource = DescribeConfigsRequest.DescribeConfigsResource(
            resource_type=_TOPIC, resource_name=topic, configuration_keys=[_POLICY, _TIERED]
        )
        request = DescribeConfigsRequest(
            resources=[resource], include_synonyms=False, include_documentation=False, version=_DESCRIBE_CONFIGS_VERSION
        )
        with contextlib.suppress(OSError):
            answer = self.connection(address).ask(request, DescribeConfigsResponse, _DESCRIBE_CONFIGS_VERSION)
            return {setting.name: setting.value or "" for result in answer.results for setting in result.configs}
        return {}

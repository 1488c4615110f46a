"""Ask one particular broker, over a connection of its own.

A Kafka client chooses a broker itself. kafkalab needs a particular one, to see whether *every* broker knows the same,
to find the active controller (no client metadata shows it in KRaft), and to be quick when a broker hangs.
kafka-python's protocol classes, generated from Kafka's own message definitions, encode the messages.
"""

from __future__ import annotations

import socket
from dataclasses import dataclass, replace
from typing import Any

from kafka.net.sasl import get_sasl_mechanism
from kafka.protocol.admin import (
    DescribeAclsRequest,
    DescribeAclsResponse,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)
from kafka.protocol.metadata import ApiVersionsRequest, ApiVersionsResponse, MetadataRequest, MetadataResponse
from kafka.protocol.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

from kafkalab.cluster.login import Login
from kafkalab.cluster.view import PartitionView

__all__ = ["NO_QUORUM", "BrokerConnection", "Features", "Metadata", "Quorum"]

_METADATA_VERSION = 12
_QUORUM_VERSION = 1
_ACLS_VERSION = 3
_PARTITIONS_VERSION = 0
_API_VERSIONS_VERSION = 4
_SASL_VERSION = 1
_ANY = 1
_CLUSTER_AUTHORIZATION_FAILED = 31
_NO_LOGIN = Login()


@dataclass(frozen=True)
class Metadata:
    """A broker's metadata: `brokers` maps the ids of live (registered, unfenced) brokers to ``host:port``."""

    cluster_id: str
    brokers: dict[int, str]
    topics: dict[str, tuple[PartitionView, ...]]
    internal: frozenset[str]


@dataclass(frozen=True)
class Quorum:
    """The metadata quorum, as its leader, the active controller, sees it.

    Attributes
    ----------
    leader
        None while there is none.
    epoch
        It grows with every election.
    high_watermark
        Records of the metadata log that are committed.
    voters
        Ids of the nodes that vote.
    end_offsets
        How far each node, voter or not, has read the metadata log.
    is_hidden
        Whether the user that asked may not see it. The rest says nothing then.
    """

    leader: int | None
    epoch: int
    high_watermark: int
    voters: tuple[int, ...]
    end_offsets: dict[int, int]
    is_hidden: bool = False


@dataclass(frozen=True)
class Features:
    """Feature levels by name: the highest that a node's software supports, and the ones the cluster uses."""

    supported: dict[str, int]
    finalized: dict[str, int]


NO_QUORUM = Quorum(None, -1, -1, (), {})
"""The state while no controller is active, or none can be reached."""


class BrokerConnection:
    """A connection to one broker. It opens on first use, and again after an error.

    Each question raises `OSError` if the broker can't be reached or doesn't answer in time.

    Parameters
    ----------
    address
        ``host:port``.
    timeout
        Seconds to wait for a connection and for each response.
    login
        How it encrypts and authenticates, if the listener wants that.
    """

    def __init__(self, address: str, timeout: float = 1.0, login: Login = _NO_LOGIN) -> None:
        self.address = address
        host, _, port = address.rpartition(":")
        self._peer = (host, int(port))
        self._timeout = timeout
        self._login = login
        self._socket: socket.socket | None = None
        self._correlation = 0

    def metadata(self) -> Metadata:
        """Return the broker's metadata of all topics."""
        request = MetadataRequest(topics=None, allow_auto_topic_creation=False, version=_METADATA_VERSION)
        answer = self.ask(request, MetadataResponse, _METADATA_VERSION)
        topics = {
            topic.name: tuple(
                PartitionView(
                    topic.name,
                    p.partition_index,
                    p.leader_id if p.leader_id >= 0 else None,
                    p.leader_epoch,
                    tuple(p.replica_nodes),
                    tuple(p.isr_nodes),
                )
                for p in sorted(topic.partitions, key=lambda p: p.partition_index)
            )
            for topic in sorted(answer.topics, key=lambda t: t.name)
        }
        return Metadata(
            answer.cluster_id,
            {b.node_id: f"{b.host}:{b.port}" for b in answer.brokers},
            topics,
            frozenset(t.name for t in answer.topics if t.is_internal),
        )

    def quorum(self) -> Quorum:
        """Return the metadata quorum. The broker forwards the request to the active controller."""
        topic = DescribeQuorumRequest.TopicData(
            topic_name="__cluster_metadata", partitions=[DescribeQuorumRequest.TopicData.PartitionData(partition_index=0)]
        )
        request = DescribeQuorumRequest(topics=[topic], version=_QUORUM_VERSION)
        answer = self.ask(request, DescribeQuorumResponse, _QUORUM_VERSION)
        if answer.error_code == _CLUSTER_AUTHORIZATION_FAILED:
            return replace(NO_QUORUM, is_hidden=True)
        if answer.error_code or not answer.topics:
            return NO_QUORUM
        p = answer.topics[0].partitions[0]
        return Quorum(
            p.leader_id if p.leader_id >= 0 and not p.error_code else None,
            p.leader_epoch,
            p.high_watermark,
            tuple(sorted(v.replica_id for v in p.current_voters or ())),
            {r.replica_id: r.log_end_offset for r in [*(p.current_voters or ()), *(p.observers or ())]},
        )

    def eligible_leaders(self, topic: str) -> dict[int, tuple[int, ...]]:
        """Return each partition's eligible leader replicas, at most 2,000 partitions (one response's limit)."""
        wanted = DescribeTopicPartitionsRequest.TopicRequest(name=topic)
        request = DescribeTopicPartitionsRequest(
            topics=[wanted], response_partition_limit=2000, cursor=None, version=_PARTITIONS_VERSION
        )
        answer = self.ask(request, DescribeTopicPartitionsResponse, _PARTITIONS_VERSION)
        partitions = [p for t in answer.topics for p in t.partitions]
        return {p.partition_index: tuple(sorted(p.eligible_leader_replicas or ())) for p in partitions}

    def features(self) -> Features:
        """Return the feature levels that the broker supports, and those it knows as finalized."""
        request = ApiVersionsRequest(
            client_software_name="kafkalab", client_software_version="1", version=_API_VERSIONS_VERSION
        )
        answer = self.ask(request, ApiVersionsResponse, _API_VERSIONS_VERSION)
        return Features(
            {feature.name: feature.max_version for feature in answer.supported_features},
            {feature.name: feature.max_version_level for feature in answer.finalized_features},
        )

    def acl_rules(self) -> int:
        """Return how many ACL rules the broker knows."""
        request = DescribeAclsRequest(
            resource_type_filter=_ANY, resource_name_filter=None, pattern_type_filter=_ANY, principal_filter=None,
            host_filter=None, operation=_ANY, permission_type=_ANY, version=_ACLS_VERSION,
        )  # fmt: skip
        answer = self.ask(request, DescribeAclsResponse, _ACLS_VERSION)
        return sum(len(resource.acls) for resource in answer.resources)

    def close(self) -> None:
        """Close the connection, if it is open."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def ask(self, request: Any, response_class: Any, version: int) -> Any:
        """Send one of kafka-python's generated requests, which must do no harm if it's sent twice, and return the response."""
        is_new = self._socket is None
        try:
            return self._ask_once(request, response_class, version)
        except ConnectionError:
            if is_new:
                raise
            # A broker closes a connection that was idle for ten minutes (connections.max.idle.ms), and when it ends.
            return self._ask_once(request, response_class, version)

    def _ask_once(self, request: Any, response_class: Any, version: int) -> Any:
        try:
            if self._socket is None:
                self._connect()
            return self._exchange(request, response_class, version)
        except BaseException:
            self.close()  # also when a cell is interrupted, so that the next request doesn't read the rest of this response
            raise

    def _connect(self) -> None:
        self._socket = socket.create_connection(self._peer, self._timeout)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._login.context is not None:
            self._socket = self._login.context.wrap_socket(self._socket, server_hostname=self._peer[0])
        if self._login.mechanism:
            self._log_in()

    def _log_in(self) -> None:
        """Do SASL's handshake: https://kafka.apache.org/protocol#sasl_handshake."""
        login = self._login
        hello = SaslHandshakeRequest(mechanism=login.mechanism, version=_SASL_VERSION)
        answer = self._exchange(hello, SaslHandshakeResponse, _SASL_VERSION)
        if answer.error_code:
            raise ConnectionError(f"the broker takes {', '.join(answer.mechanisms)}, not {login.mechanism}")
        mechanism = get_sasl_mechanism(login.mechanism)(
            sasl_mechanism=login.mechanism, sasl_plain_username=login.user, sasl_plain_password=login.password
        )
        while not mechanism.is_done():
            token = SaslAuthenticateRequest(auth_bytes=mechanism.auth_bytes(), version=_SASL_VERSION)
            answer = self._exchange(token, SaslAuthenticateResponse, _SASL_VERSION)
            if answer.error_code:
                raise ConnectionError(f"the broker refuses the login: {answer.error_message}")
            mechanism.receive(answer.auth_bytes)

    def _exchange(self, request: Any, response_class: Any, version: int) -> Any:
        assert self._socket is not None
        self._correlation += 1
        request.with_header(correlation_id=self._correlation, client_id="kafkalab")
        self._socket.sendall(request.encode(header=True, framed=True))
        size = int.from_bytes(self._read(4), "big")
        return response_class.decode(self._read(size), version=version, header=True)

    def _read(self, size: int) -> bytes:
        assert self._socket is not None
        parts = bytearray()
        while len(parts) < size:
            part = self._socket.recv(size - len(parts))
            if not part:
                raise ConnectionError("the broker closed the connection")
            parts += part
        return bytes(parts)

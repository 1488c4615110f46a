"""Read share groups (KIP-932) from their coordinators. Neither librdkafka nor kafka-python can do that yet."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from kafka.protocol.api_message import ApiMessage

from kafkalab.cluster import messages
from kafkalab.cluster.view import MemberView, ShareGroupView
from kafkalab.cluster.wire import BrokerConnection

__all__ = ["coordinated_share_groups", "members_of", "read_share_group"]

_DESCRIBE_VERSION = 1
_OFFSETS_VERSION = 1


class ShareGroupDescribeRequest(ApiMessage, load_json=messages):  # type: ignore[call-arg,misc]
    """Asks for a share group's state and members."""


class ShareGroupDescribeResponse(ApiMessage, load_json=messages):  # type: ignore[call-arg,misc]
    """The response to `ShareGroupDescribeRequest`."""


class DescribeShareGroupOffsetsRequest(ApiMessage, load_json=messages):  # type: ignore[call-arg,misc]
    """Asks for a share group's progress."""


class DescribeShareGroupOffsetsResponse(ApiMessage, load_json=messages):  # type: ignore[call-arg,misc]
    """The response to `DescribeShareGroupOffsetsRequest`."""


def read_share_group(id: str, addresses: Iterable[str], connect: Callable[[str], BrokerConnection]) -> ShareGroupView | None:
    """Return the share group with that id, or None if none of the brokers at these addresses coordinates it.

    Raises `OSError` if a broker doesn't answer in time.
    """
    for address in addresses:
        connection = connect(address)
        try:
            if found := coordinated_share_groups([id], connection):
                return found[id]
        finally:
            connection.close()
    return None


def coordinated_share_groups(ids: Sequence[str], connection: BrokerConnection) -> dict[str, ShareGroupView]:
    """Return those of the share groups with these ids that a broker coordinates.

    Raises `OSError` if it doesn't answer in time, or is too old to be asked (it needs Kafka 4.2).
    """
    describe = ShareGroupDescribeRequest(group_ids=ids, include_authorized_operations=False, version=_DESCRIBE_VERSION)
    answer = connection.ask(describe, ShareGroupDescribeResponse, _DESCRIBE_VERSION).groups
    described = [group for group in answer if not group.error_code]  # else another broker has it, or it doesn't exist
    if not described:
        return {}
    wanted = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup
    request = DescribeShareGroupOffsetsRequest(
        groups=[wanted(group_id=group.group_id, topics=None) for group in described], version=_OFFSETS_VERSION
    )
    progress = connection.ask(request, DescribeShareGroupOffsetsResponse, _OFFSETS_VERSION).groups
    partitions = {
        group.group_id: {(t.topic_name, p.partition_index): p for t in group.topics for p in t.partitions if not p.error_code}
        for group in progress
    }
    return {
        group.group_id: ShareGroupView(
            group.group_id,
            group.group_state,
            members_of(group.members),
            {place: p.start_offset for place, p in partitions[group.group_id].items() if p.start_offset >= 0},
            {place: p.lag for place, p in partitions[group.group_id].items() if p.lag >= 0},
        )
        for group in described
    }


def members_of(described: Iterable[Any]) -> tuple[MemberView, ...]:
    """Return members as brokers describe them of share groups, and of consumer groups of the new protocol."""
    members = (
        MemberView(
            m.member_id,
            m.client_id,
            tuple(sorted((t.topic_name, p) for t in m.assignment.topic_partitions for p in t.partitions)),
        )
        for m in described
    )
    return tuple(sorted(members, key=lambda m: (m.client_id, m.id)))

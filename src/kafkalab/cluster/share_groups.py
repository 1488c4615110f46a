"""Read a share group (KIP-932) from its coordinator. Neither librdkafka nor kafka-python can do that yet."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kafka.protocol.api_message import ApiMessage

from kafkalab.cluster import messages
from kafkalab.cluster.view import MemberView, ShareGroupView
from kafkalab.cluster.wire import BrokerConnection

__all__ = ["read_share_group"]

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
            if view := _ask(id, connection):
                return view
        finally:
            connection.close()
    return None


def _ask(id: str, connection: BrokerConnection) -> ShareGroupView | None:
    describe = ShareGroupDescribeRequest(group_ids=[id], include_authorized_operations=False, version=_DESCRIBE_VERSION)
    [group] = connection.ask(describe, ShareGroupDescribeResponse, _DESCRIBE_VERSION).groups
    if group.error_code:  # another broker coordinates it, or it doesn't exist
        return None
    wanted = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup(group_id=id, topics=None)
    request = DescribeShareGroupOffsetsRequest(groups=[wanted], version=_OFFSETS_VERSION)
    [progress] = connection.ask(request, DescribeShareGroupOffsetsResponse, _OFFSETS_VERSION).groups
    partitions = {(t.topic_name, p.partition_index): p for t in progress.topics for p in t.partitions if not p.error_code}
    members = (
        MemberView(
            m.member_id,
            m.client_id,
            tuple(sorted((t.topic_name, p) for t in m.assignment.topic_partitions for p in t.partitions)),
        )
        for m in group.members
    )
    return ShareGroupView(
        id,
        group.group_state,
        tuple(sorted(members, key=lambda m: (m.client_id, m.id))),
        {place: p.start_offset for place, p in partitions.items() if p.start_offset >= 0},
        {place: p.lag for place, p in partitions.items() if p.lag >= 0},
    )

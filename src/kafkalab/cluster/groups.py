"""Consumer groups as the brokers see them."""

from __future__ import annotations

from collections.abc import Mapping

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from kafkalab.cluster.view import GroupView, MemberView

__all__ = ["read_groups"]


def read_groups(admin: AdminClient, timeout: float = 2.0) -> dict[str, GroupView]:
    """All consumer groups, with members, assignment and lag.

    A group whose coordinator is just moving is left out: it is there again a moment later.

    Parameters
    ----------
    timeout
        Seconds for each of the questions that this takes.
    """
    listed = _result(admin.list_consumer_groups(request_timeout=timeout))
    if listed is None or not listed.valid:
        return {}
    described = admin.describe_consumer_groups([g.group_id for g in listed.valid], request_timeout=timeout)
    groups = {}
    for group_id, future in sorted(described.items()):
        description = _result(future)
        if description is None:
            continue
        members = tuple(
            MemberView(
                m.member_id, m.client_id, tuple(sorted((p.topic, p.partition) for p in m.assignment.topic_partitions))
            )
            for m in sorted(description.members, key=lambda m: (m.client_id, m.member_id))
        )
        groups[group_id] = GroupView(group_id, description.state.name.lower(), members, _lag(admin, group_id, timeout))
    return groups


def _lag(admin: AdminClient, group_id: str, timeout: float) -> Mapping[tuple[str, int], int]:
    answer = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group_id)], request_timeout=timeout)
    committed = _result(answer[group_id])
    positions = [p for p in committed.topic_partitions if p.offset >= 0] if committed else []
    if not positions:
        return {}
    ends = admin.list_offsets({TopicPartition(p.topic, p.partition): OffsetSpec.latest() for p in positions}, request_timeout=timeout)
    end_of = {(p.topic, p.partition): _result(future) for p, future in ends.items()}
    return {
        (p.topic, p.partition): max(0, end.offset - p.offset)
        for p in positions
        if (end := end_of[p.topic, p.partition]) is not None
    }


def _result(future):  # noqa: ANN001, ANN202 - whatever the request answers
    try:
        return future.result()
    except KafkaException:
        return None

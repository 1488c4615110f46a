"""Read a topic's first and last offsets, even while its leaders change."""

from __future__ import annotations

from confluent_kafka import Consumer, KafkaException, TopicPartition

from kafkalab.cluster.cluster import Cluster
from kafkalab.waiting import wait_until

__all__ = ["end_offsets", "watermarks"]

_TIMEOUT = 10.0  # for one answer
_PATIENCE = 30.0


def watermarks(cluster: Cluster, topic: str) -> dict[int, tuple[int, int]]:
    """Return each partition's first offset and the one after its last; empty if the topic doesn't exist.

    Raises
    ------
    WaitTimeout
        If a partition had no leader that answered, for 30 s.
    """
    partitions = [p.partition for p in cluster.describe(groups=False, internal=True).topics.get(topic, ())]
    if not partitions:
        return {}
    consumer = Consumer(cluster.client_config(group_id="watermarks"))  # a required setting; it doesn't join the group

    def marks() -> dict[int, tuple[int, int]]:
        consumer.list_topics(topic, timeout=_TIMEOUT)  # refreshes metadata that would otherwise stay outdated for long
        return {p: consumer.get_watermark_offsets(TopicPartition(topic, p), timeout=_TIMEOUT) for p in partitions}

    try:
        # A leader that just changed, or came back, may not know yet that it leads.
        return wait_until(marks, _PATIENCE, f"the offsets of {topic}", ignore=(KafkaException,))
    finally:
        consumer.close()


def end_offsets(cluster: Cluster, topic: str) -> dict[int, int]:
    """Return only the end offsets of `watermarks`."""
    return {p: end for p, (_, end) in watermarks(cluster, topic).items()}

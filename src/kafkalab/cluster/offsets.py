"""First and last offsets of a topic, also while its leaders change."""

from __future__ import annotations

from confluent_kafka import Consumer, KafkaException, TopicPartition

from kafkalab.cluster.cluster import Cluster
from kafkalab.waiting import wait_until

__all__ = ["end_offsets", "watermarks"]

_TIMEOUT = 10.0


def watermarks(cluster: Cluster, topic: str) -> dict[int, tuple[int, int]]:
    """First offset and the one after the last, by partition; empty if there is no such topic.

    Raises
    ------
    WaitTimeout
        When a partition had no leader who told them, for 10 s.
    """
    partitions = [p.partition for p in cluster.describe(groups=False, internal=True).topics.get(topic, ())]
    if not partitions:
        return {}
    consumer = Consumer(cluster.client_config(group_id="watermarks"))  # required, but no group is joined

    def marks() -> dict[int, tuple[int, int]]:
        consumer.list_topics(topic, timeout=_TIMEOUT)  # else what was heard while nobody led would be believed for long
        return {p: consumer.get_watermark_offsets(TopicPartition(topic, p), timeout=_TIMEOUT) for p in partitions}

    try:
        # A leader that has just changed, or come back, may not know yet that it leads.
        return wait_until(marks, _TIMEOUT, f"the offsets of {topic}", ignore=(KafkaException,))
    finally:
        consumer.close()


def end_offsets(cluster: Cluster, topic: str) -> dict[int, int]:
    """The second half of `watermarks`."""
    return {p: end for p, (_, end) in watermarks(cluster, topic).items()}

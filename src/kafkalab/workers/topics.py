"""Ask the cluster about a topic before a worker starts on it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, TopicMetadata

from kafkalab.errors import UnknownPartition, UnknownTopic, WaitTimeout
from kafkalab.waiting import wait_until

if TYPE_CHECKING:
    from kafkalab.cluster import Cluster

__all__ = ["partitions_of", "require_topic"]

_TIMEOUT = 3.0
_PROPAGATION = 3.0


def partitions_of(cluster: Cluster, topic: str) -> set[int]:
    """Return the numbers of a topic's partitions.

    Raises
    ------
    UnknownTopic
        If the topic doesn't exist.
    KafkaException
        If no broker answers.
    """
    # The worker shows errors, so librdkafka doesn't need to log into the cell.
    admin = AdminClient({**cluster.client_config(), "log_level": 0})
    topics: Mapping[str, TopicMetadata] = {}

    def known() -> bool:
        nonlocal topics
        # Ask for all topics, because asking for one by name may create it.
        topics = admin.list_topics(timeout=_TIMEOUT).topics
        return topic in topics

    try:
        # The broker that created a topic knows it first, the others a little later.
        wait_until(known, _PROPAGATION, f"topic {topic!r}")
    except WaitTimeout:
        present = ", ".join(sorted(t for t in topics if not t.startswith("__"))) or "none yet"
        raise UnknownTopic(f"there is no topic {topic!r}; topics: {present}. Create it first") from None
    return set(topics[topic].partitions)


def require_topic(cluster: Cluster, topic: str, partitions: Iterable[int] = ()) -> None:
    """Check that a topic, and these partitions of it, exist. Pass if the cluster doesn't answer.

    Raises
    ------
    UnknownTopic, UnknownPartition
    """
    try:
        present = partitions_of(cluster, topic)
    except KafkaException:
        return  # the worker itself shows that no broker answers, like a console tool
    if missing := sorted(set(partitions) - present):
        raise UnknownPartition(f"topic {topic!r} has {len(present)} partitions, numbered from 0: no {missing}")

"""What the cluster says about a topic, before a worker starts on it."""

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
    """Numbers of a topic's partitions.

    Raises
    ------
    UnknownTopic
        When the cluster has no such topic.
    KafkaException
        When no broker answers.
    """
    # The worker shows what goes wrong: librdkafka need not write its log into the cell.
    admin = AdminClient({**cluster.client_config(), "log_level": 0})
    topics: Mapping[str, TopicMetadata] = {}

    def known() -> bool:
        nonlocal topics
        # Asking for all topics, for asking for one by name may create it.
        topics = admin.list_topics(timeout=_TIMEOUT).topics
        return topic in topics

    try:
        # A topic that was created just now is known to the broker that created it first, to others a little later.
        wait_until(known, _PROPAGATION, f"topic {topic!r}")
    except WaitTimeout:
        present = ", ".join(sorted(t for t in topics if not t.startswith("__"))) or "none yet"
        raise UnknownTopic(f"there is no topic {topic!r}; topics: {present}. Create it first") from None
    return set(topics[topic].partitions)


def require_topic(cluster: Cluster, topic: str, partitions: Iterable[int] = ()) -> None:
    """Check that a topic, and those partitions of it, exist; a cluster that does not answer is not in the way.

    Raises
    ------
    UnknownTopic, UnknownPartition
    """
    try:
        present = partitions_of(cluster, topic)
    except KafkaException:
        return  # the worker itself shows that no broker is there, as a console tool would
    if missing := sorted(set(partitions) - present):
        raise UnknownPartition(f"topic {topic!r} has {len(present)} partitions, numbered from 0: no {missing}")

"""Create empty topics for a lab whose cells are run again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from confluent_kafka.admin import NewTopic

from kafkalab.cluster.fresh import recreate
from kafkalab.streams.app import stop_all

if TYPE_CHECKING:
    from kafkalab.cluster import Cluster

__all__ = ["fresh_topics"]

_KAFKAS = "__"
"""The prefix of Kafka's own topics."""


def fresh_topics(cluster: Cluster, topics: Sequence[NewTopic]) -> None:
    """Delete what an earlier attempt left, and create topics.

    It stops all applications that this process started on the cluster. In a cluster that kafkalab started, it deletes all
    topics but Kafka's own. In an attached one it deletes those that it creates, and the internal topics of the stopped
    applications. A topic's committed offsets go with it, so the next application reads from the start of each topic, with
    empty stores. In production ``kafka-streams-application-reset.sh`` does that for one application.

    On return the topics are empty, and all their replicas are in sync.

    Raises
    ------
    KafkaException, WaitTimeout
        As for `kafkalab.cluster.fresh.recreate`.
    """
    applications = stop_all(cluster)
    topics_now = cluster.describe(groups=False).topics
    if cluster.nodes.backend == "attached":
        old = [name for name in topics_now for application in applications if _is_internal(name, application)]
    else:
        old = [name for name in topics_now if not name.startswith(_KAFKAS)]
    recreate(cluster, topics, leave_out=old)


def _is_internal(topic: str, application: str) -> bool:
    """Return whether a topic is an application's internal one: ``application.id``-name-changelog or -repartition."""
    return topic.startswith(f"{application}-") and topic.endswith(("-changelog", "-repartition"))

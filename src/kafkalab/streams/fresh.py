"""Topics as good as new, for a lab whose cells are run again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from confluent_kafka.admin import AdminClient, NewTopic

from kafkalab.streams.app import stop_all

if TYPE_CHECKING:
    from kafkalab.cluster import Cluster

__all__ = ["fresh_topics"]

_KAFKAS = "__"
"""What the names of Kafka's own topics begin with."""


def fresh_topics(cluster: Cluster, topics: Sequence[NewTopic]) -> None:
    """Create topics in a cluster that has no others: whatever an earlier attempt left is deleted first.

    It stops all applications that this process started on the cluster. It deletes all topics but Kafka's own, and so those that
    Kafka Streams made for stores. The committed offsets of a topic go with it. So an application that starts after this reads
    from the beginning, with empty stores. In production ``kafka-streams-application-reset.sh`` does that for one application.

    Parameters
    ----------
    cluster
        A running cluster.
    topics
        The topics, which are empty on return and have leaders.

    Raises
    ------
    KafkaException
        If Kafka refuses to delete or to create one of them.
    WaitTimeout
        If a topic isn't gone, or has no leader, in time.
    """
    stop_all(cluster)
    admin, names = AdminClient(cluster.client_config()), [topic.topic for topic in topics]
    there = cluster.describe(groups=False).topics
    if old := [name for name in there if not name.startswith(_KAFKAS)]:
        for deleted in admin.delete_topics(old).values():
            deleted.result()
        cluster.wait_for(lambda view: not view.topics.keys() & set(old), "the old topics to be gone")
    for created in admin.create_topics(list(topics)).values():
        created.result()
    cluster.wait_for(lambda view: view.led(names), "the topics")

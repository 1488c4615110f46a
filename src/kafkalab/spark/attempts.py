"""Start a lab over in a kernel where an earlier attempt has left streams and records."""

from __future__ import annotations

from confluent_kafka.admin import NewTopic

from kafkalab.cluster import Cluster
from kafkalab.cluster.fresh import recreate
from kafkalab.cluster.offsets import end_offsets
from kafkalab.spark.session import stop_streams

__all__ = ["begin_anew"]


def begin_anew(cluster: Cluster, *topics: str) -> None:
    """Stop the session's streams, and empty topics: delete them, and create them again with as many partitions.

    Topics that never had a record or don't exist are left alone. The settings of the others are lost.
    """
    stop_streams()
    view = cluster.describe(groups=False)
    used = [topic for topic in topics if topic in view.topics and any(end_offsets(cluster, topic).values())]
    if not used:
        return
    recreate(cluster, [NewTopic(topic, len(view.topics[topic]), len(view.topics[topic][0].replicas)) for topic in used])

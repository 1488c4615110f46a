"""Begin an experiment again, without a new cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from confluent_kafka.admin import AdminClient, NewTopic

if TYPE_CHECKING:
    from kafkalab.cluster import Cluster

__all__ = ["fresh"]

_TIMEOUT = 60.0  # longer than the default session timeout: a member that never closed is gone by then


def fresh(cluster: Cluster, *topics: NewTopic, groups: Sequence[str] = ()) -> None:
    """Create topics and forget groups, so that the cell that calls this can run again.

    First, each node that an earlier run left down, frozen or cut off comes back. A topic that exists is deleted with its
    records and created anew. When this returns, all replicas of the topics are in sync.

    Parameters
    ----------
    cluster
        A running cluster.
    *topics
        The topics. End whatever still writes to them before.
    groups
        Consumer groups whose committed offsets are deleted. Waits until they have no members.

    Raises
    ------
    KafkaException
        If Kafka refuses one of the topics.
    WaitTimeout
        If a topic doesn't come or go, or a group keeps a member.
    """
    for node, state in cluster.states().items():
        if state != "up":
            cluster.restart(node)
    admin = AdminClient(cluster.client_config())
    for group in groups:
        _forget(cluster, admin, group)
    names = {topic.topic for topic in topics}
    if there := list(names & cluster.describe(groups=False).topics.keys()):
        for deleted in admin.delete_topics(there).values():
            deleted.result()
        cluster.wait_for(lambda view: not view.topics.keys() & set(there), "the old topics to be gone")
    if topics:
        for created in admin.create_topics(list(topics)).values():
            created.result()
        cluster.wait_for(lambda view: view.in_sync(names), "the topics", _TIMEOUT)


def _forget(cluster: Cluster, admin: AdminClient, group: str) -> None:
    what = f"the members of {group} to leave. Did each consumer of an earlier run close?"
    cluster.wait_for(lambda view: group not in view.groups or not view.groups[group].members, what, _TIMEOUT, groups=True)
    if group in cluster.describe().groups:
        admin.delete_consumer_groups([group])[group].result()

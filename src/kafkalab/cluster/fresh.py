"""Begin an experiment again, without a new cluster."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from confluent_kafka.admin import AdminClient, NewTopic

if TYPE_CHECKING:
    from kafkalab.cluster import Cluster

__all__ = ["fresh", "recreate"]

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
    with ThreadPoolExecutor() as together:  # one alone may wait for the others: without a quorum no node comes back
        list(together.map(cluster.restart, [node for node, state in cluster.nodes.states().items() if state != "up"]))
    admin = AdminClient(cluster.client_config())
    for group in groups:
        _forget(cluster, admin, group)
    if topics:
        recreate(cluster, topics)


def recreate(cluster: Cluster, topics: Sequence[NewTopic], leave_out: Collection[str] = ()) -> None:
    """Create topics, after deleting what has their names. On return all their replicas are in sync.

    Parameters
    ----------
    cluster
        A running cluster.
    topics
        The topics.
    leave_out
        Names of topics to delete as well, without creating them again.

    Raises
    ------
    KafkaException
        If Kafka refuses to delete or to create one of them.
    WaitTimeout
        If a topic doesn't come or go.
    """
    admin = AdminClient(cluster.client_config())
    names = {topic.topic for topic in topics}
    if old := list((names | set(leave_out)) & cluster.describe(groups=False).topics.keys()):
        for deleted in admin.delete_topics(old).values():
            deleted.result()
        cluster.wait_for(lambda view: not view.topics.keys() & set(old), "the old topics to be gone", _TIMEOUT)
    for created in admin.create_topics(list(topics)).values():
        created.result()
    cluster.wait_for(lambda view: view.in_sync(names), "the topics", _TIMEOUT)


def _forget(cluster: Cluster, admin: AdminClient, group: str) -> None:
    what = f"the members of {group} to leave, which consumers of an earlier run do when they close"
    cluster.wait_for(lambda view: group not in view.groups or not view.groups[group].members, what, _TIMEOUT, groups=True)
    if group in cluster.describe().groups:
        admin.delete_consumer_groups([group])[group].result()

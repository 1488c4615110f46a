"""What the cluster says about a topic, asked before the first record is sent."""

from __future__ import annotations

from confluent_kafka import Consumer, KafkaException, Producer

__all__ = ["ClusterUnreachable", "UnknownTopic", "partition_count"]


class ClusterUnreachable(ConnectionError):
    """No broker answered in time, whatever address was tried."""


class UnknownTopic(LookupError):
    """The cluster has no topic of that name."""


def partition_count(producer: Producer | Consumer, topic: str, timeout: float = 10.0) -> int:
    """How many partitions a topic has, those without a leader included.

    A producer never gives up looking for a broker, and says nothing meanwhile: `produce` only fills its queue. So an
    application asks once, before it begins, and ends with a clear error if there is nobody to send to.

    Parameters
    ----------
    producer
        Whose connections are used; a consumer will do, too.
    topic
        The topic's name.
    timeout
        Seconds until a cluster that does not answer is given up.

    Returns
    -------
    int
        All of its partitions, whether somebody leads them or not.

    Raises
    ------
    ClusterUnreachable
        When no broker answers in time.
    UnknownTopic
        When there is no such topic.
    """
    try:
        # All topics, not this one: asking a cluster for a topic by name may create it (auto.create.topics.enable).
        topics = producer.list_topics(timeout=timeout).topics
    except KafkaException as error:
        raise ClusterUnreachable(f"no broker answered within {timeout:g} s: {error.args[0].str()}") from error
    if topic not in topics:
        raise UnknownTopic(f"there is no topic {topic!r}")
    return len(topics[topic].partitions)

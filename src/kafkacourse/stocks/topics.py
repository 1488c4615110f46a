"""Ask the cluster about a topic before you send the first record."""

from __future__ import annotations

from confluent_kafka import Consumer, KafkaException, Producer

__all__ = ["ClusterUnreachable", "UnknownTopic", "partition_count"]


class ClusterUnreachable(ConnectionError):
    """No broker answered in time, at any address."""


class UnknownTopic(LookupError):
    """The cluster has no topic with this name."""


def partition_count(producer: Producer | Consumer, topic: str, timeout: float = 10.0) -> int:
    """Return how many partitions a topic has, including those without a leader.

    A producer never stops looking for a broker, and reports nothing meanwhile: `produce` only fills its queue. So an
    application asks once before it starts, and ends with a clear error if the cluster doesn't answer.

    Parameters
    ----------
    producer
        The client whose connections are used. A consumer works, too.
    topic
        The topic's name.
    timeout
        Seconds to wait for an answer.

    Returns
    -------
    int
        The number of all partitions, with or without a leader.

    Raises
    ------
    ClusterUnreachable
        If no broker answers in time.
    UnknownTopic
        If the topic doesn't exist.
    """
    try:
        # All topics, not this one: asking by name may create the topic (auto.create.topics.enable).
        topics = producer.list_topics(timeout=timeout).topics
    except KafkaException as error:
        raise ClusterUnreachable(f"no broker answered within {timeout:g} s: {error.args[0].str()}") from error
    if topic not in topics:
        raise UnknownTopic(f"there is no topic {topic!r}")
    return len(topics[topic].partitions)

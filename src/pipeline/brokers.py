"""Asks Kafka about a topic, before Spark would wait for it for minutes."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Mapping
from typing import Any, NamedTuple

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

__all__ = ["Topic", "require_topic"]

_PATIENCE = {"request.timeout.ms": "5000", "default.api.timeout.ms": "8000"}
_PREFIX = "kafka."


class Topic(NamedTuple):
    """What Kafka says of a topic.

    Attributes
    ----------
    id
        A topic that is deleted and created again gets another one.
    whole
        Whether it still has every record that was ever sent to it.
    """

    id: str
    whole: bool


def require_topic(spark: SparkSession, kafka: Mapping[str, str], name: str, *others: str) -> Topic:
    """Ask Kafka for a topic, by the client and with the settings that Spark will use.

    Parameters
    ----------
    spark
        A session with Spark's Kafka connector.
    kafka
        Options of Spark's Kafka source.
    name
        The topic.
    others
        Topics that have to be there, too.

    Raises
    ------
    ConnectionError
        When no broker answers within some seconds, or Kafka refuses the login.
    LookupError
        When one of the topics isn't there.
    """
    settings = {name.removeprefix(_PREFIX): value for name, value in kafka.items() if name.startswith(_PREFIX)}
    java: Any = spark.sparkContext._jvm
    client = java.java.util.HashMap()
    for setting, value in {**settings, **_PATIENCE}.items():
        client.put(setting, value)
    servers, asked = settings["bootstrap.servers"], name
    try:
        admin = java.org.apache.kafka.clients.admin.AdminClient.create(client)
        try:
            for asked in others:
                _described(java, admin, asked)
            return _ask(java, admin, asked := name)
        finally:
            admin.close()
    except Py4JJavaError as error:
        problem = _cause(error)
        if problem.getClass().getSimpleName() == "UnknownTopicOrPartitionException":
            raise LookupError(f"there is no topic {asked} at {servers}") from None
        hint = _TO_SECURE if _listens(servers) and "security.protocol" not in settings else ""
        raise ConnectionError(f"no broker answers at {servers}: {problem.getMessage()}{hint}") from None


_TO_SECURE = (
    ". Something listens there, so it may want TLS or a login: give the client's settings, such as security.protocol, "
    "sasl.mechanism and sasl.jaas.config"
)


def _ask(java: Any, admin: Any, name: str) -> Topic:
    topic = _described(java, admin, name)
    earliest = java.org.apache.kafka.clients.admin.OffsetSpec.earliest()
    wanted = java.java.util.HashMap()
    for partition in topic.partitions():
        wanted.put(java.org.apache.kafka.common.TopicPartition(name, partition.partition()), earliest)
    begins = admin.listOffsets(wanted).all().get().values()
    return Topic(topic.topicId().toString(), all(found.offset() == 0 for found in begins))


def _described(java: Any, admin: Any, name: str) -> Any:
    return admin.describeTopics(java.java.util.List.of(name)).allTopicNames().get().get(name)


def _listens(servers: str) -> bool:
    host, _, port = servers.partition(",")[0].strip().rpartition(":")
    with contextlib.suppress(OSError, ValueError), socket.create_connection((host, int(port)), 5):
        return True
    return False


def _cause(error: Py4JJavaError) -> Any:
    problem = error.java_exception
    while (cause := problem.getCause()) is not None:
        problem = cause
    return problem

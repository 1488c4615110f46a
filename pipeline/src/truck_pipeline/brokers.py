"""Ask Kafka about topics before Spark reads them. Spark would wait for a missing topic for minutes."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import NamedTuple

from pyspark.sql import SparkSession

from truck_pipeline.java_client import java_client
from truck_pipeline.librdkafka import as_librdkafka, librdkafka_client
from truck_pipeline.session import has_jvm

__all__ = ["Topic", "connect", "require_topic"]

_PREFIX = "kafka."


class Topic(NamedTuple):
    """A topic, as Kafka describes it.

    Attributes
    ----------
    id
        A topic that is deleted and created again gets another id.
    whole
        Whether it still has every record that was ever sent to it.
    """

    id: str
    whole: bool


def connect(spark: SparkSession, settings: Mapping[str, str]) -> AbstractContextManager[Callable[[str], tuple[str, bool]]]:
    """Connect to Kafka: in the session's JVM, or without Java if the session is one of Spark Connect.

    The context's function returns a topic's id, and whether the topic still has every record ever sent to it. It raises
    `LookupError` if there is no such topic.

    Parameters
    ----------
    spark
        A session with Spark's Kafka connector.
    settings
        Settings of a Java client.

    Raises
    ------
    ConnectionError
        When no broker answers within some seconds, when Kafka refuses the login, or when only Java can use these settings and
        there is none.
    """
    return java_client(spark, settings) if has_jvm(spark) else librdkafka_client(as_librdkafka(settings))


def require_topic(spark: SparkSession, kafka: Mapping[str, str], name: str, *others: str) -> Topic:
    """Describe a topic and make sure that others exist, with the settings that Spark will use.

    Parameters
    ----------
    spark
        A session with Spark's Kafka connector.
    kafka
        Options of Spark's Kafka source.
    name
        The topic.
    others
        Topics that have to exist, too.

    Raises
    ------
    ConnectionError
        When no broker answers within some seconds, or Kafka refuses the login.
    LookupError
        When one of the topics doesn't exist.
    """
    settings = {name.removeprefix(_PREFIX): value for name, value in kafka.items() if name.startswith(_PREFIX)}
    servers, topic = settings["bootstrap.servers"], name
    client = connect(spark, settings)
    try:
        with client as describe:
            for topic in others:
                describe(topic)
            return Topic(*describe(topic := name))
    except LookupError:
        raise LookupError(f"there is no topic {topic} at {servers}") from None
    except ConnectionError as problem:
        hint = _TO_SECURE if _listens(servers) and "security.protocol" not in settings else ""
        raise ConnectionError(f"no broker answers at {servers}: {problem}{hint}") from None


_TO_SECURE = (
    ". Something listens there, so it may want TLS or a login: give the client's settings, such as security.protocol, "
    "sasl.mechanism and sasl.jaas.config"
)


def _listens(servers: str) -> bool:
    host, _, port = servers.partition(",")[0].strip().rpartition(":")
    with contextlib.suppress(OSError, ValueError), socket.create_connection((host, int(port)), 5):
        return True
    return False

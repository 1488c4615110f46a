"""Ask Kafka about a topic. If it isn't there, Spark would wait for it for minutes."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Mapping
from typing import NamedTuple

from pyspark.sql import SparkSession

from pipeline import reach

__all__ = ["Topic", "require_topic"]

_PREFIX = "kafka."


class Topic(NamedTuple):
    """What Kafka says about a topic.

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
    """Ask Kafka about a topic, and whether others exist, with the settings that Spark will use.

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
    servers, asked = settings["bootstrap.servers"], name
    client = reach.kafka(spark, settings)
    try:
        with client as describe:
            for asked in others:
                describe(asked)
            return Topic(*describe(asked := name))
    except LookupError:
        raise LookupError(f"there is no topic {asked} at {servers}") from None
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

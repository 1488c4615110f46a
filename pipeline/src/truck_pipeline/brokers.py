"""Ask Kafka about topics before Spark reads them. Spark would wait for a missing topic for minutes."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Mapping
from typing import NamedTuple

from truck_pipeline.librdkafka import as_librdkafka, librdkafka_client

__all__ = ["Topic", "require_topic"]


class Topic(NamedTuple):
    """A topic, as Kafka describes it.

    Attributes
    ----------
    id
        A topic that is deleted and created again gets another id.
    whole
        Whether it still has every record that was ever sent to it.
    partitions
        How many it has.
    """

    id: str
    whole: bool
    partitions: int


def require_topic(settings: Mapping[str, str], name: str, *others: str) -> Topic:
    """Describe a topic and make sure that others exist.

    Parameters
    ----------
    settings
        Settings of a Java client, as Spark has them.
    name
        The topic.
    others
        Topics that have to exist, too.

    Raises
    ------
    ConnectionError
        When no broker answers within some seconds, Kafka refuses the login, or only Java can use these settings.
    LookupError
        When one of the topics doesn't exist.
    """
    servers, topic = settings["bootstrap.servers"], name
    client = as_librdkafka(settings)
    try:
        with librdkafka_client(client) as describe:
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

"""Asks whether Kafka answers, before Spark would wait for it for minutes."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Mapping

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

__all__ = ["require_brokers"]

_PATIENCE = {"request.timeout.ms": "5000", "default.api.timeout.ms": "8000"}
_PREFIX = "kafka."


def require_brokers(spark: SparkSession, kafka: Mapping[str, str]) -> None:
    """Ask Kafka for its brokers, by the client and with the settings that Spark will use.

    Parameters
    ----------
    spark
        A session with Spark's Kafka connector.
    kafka
        Options of Spark's Kafka source.

    Raises
    ------
    ConnectionError
        When no broker answers within some seconds, or Kafka refuses the login.
    """
    settings = {name.removeprefix(_PREFIX): value for name, value in kafka.items() if name.startswith(_PREFIX)}
    java = spark.sparkContext._jvm
    assert java is not None  # while the session lives
    client = java.java.util.HashMap()
    for name, value in {**settings, **_PATIENCE}.items():
        client.put(name, value)
    servers = settings["bootstrap.servers"]
    try:
        admin = java.org.apache.kafka.clients.admin.AdminClient.create(client)
        try:
            admin.describeCluster().nodes().get()
        finally:
            admin.close()
    except Py4JJavaError as error:
        hint = _TO_SECURE if _listens(servers) and "security.protocol" not in settings else ""
        raise ConnectionError(f"no broker answers at {servers}: {_reason(error)}{hint}") from None


_TO_SECURE = (
    ". Something listens there, so it may want TLS or a login: give the client's settings, such as security.protocol, "
    "sasl.mechanism and sasl.jaas.config"
)


def _listens(servers: str) -> bool:
    host, _, port = servers.partition(",")[0].strip().rpartition(":")
    with contextlib.suppress(OSError, ValueError), socket.create_connection((host, int(port)), 5):
        return True
    return False


def _reason(error: Py4JJavaError) -> str:
    problem = error.java_exception
    while (cause := problem.getCause()) is not None:
        problem = cause
    return str(problem.getMessage())

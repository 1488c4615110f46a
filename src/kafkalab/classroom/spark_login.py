"""Options with which Spark reads a class's cluster, from what librdkafka's clients use there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kafkalab.errors import UnknownUser
from kafkalab.security.jaas import login_line
from kafkalab.spark.session import kafka_source_options

if TYPE_CHECKING:
    from kafkalab.cluster import Cluster

__all__ = ["options_of", "source_options"]


def source_options(cluster: Cluster, user: str) -> dict[str, str]:
    """Return options of Spark's Kafka source for a cluster: as this user, or as its administrator if it was attached to."""
    try:
        return options_of(cluster.client_config(user))
    except UnknownUser:
        return options_of(cluster.client_config())


def options_of(client: Mapping[str, object]) -> dict[str, str]:
    """Return options of Spark's Kafka source that do what these settings of librdkafka do: addresses, TLS and a SASL login."""
    settings = {name: str(client[name]) for name in ("security.protocol",) if name in client}
    if mechanism := client.get("sasl.mechanism", client.get("sasl.mechanisms")):
        login = {"username": client["sasl.username"], "password": client["sasl.password"]}
        settings |= {"sasl.mechanism": str(mechanism), "sasl.jaas.config": login_line(str(mechanism), **login)}
    for librdkafka, java in (("ssl.ca.location", "ssl.truststore.location"), ("ssl.ca.pem", "ssl.truststore.certificates")):
        if librdkafka in client:
            settings |= {"ssl.truststore.type": "PEM", java: str(client[librdkafka])}
    return kafka_source_options(str(client["bootstrap.servers"])) | {f"kafka.{name}": value for name, value in settings.items()}

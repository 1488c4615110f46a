"""A cluster that runs already, as a class's cluster: what it must have, and that a seat gets in before learners try."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from kafkalab.classroom.membership import Membership
from kafkalab.classroom.topics import PUBLIC
from kafkalab.errors import KafkaLabError

__all__ = ["authority_of", "require_login", "try_seat"]

_SECONDS = 15


def require_login(client: Mapping[str, object]) -> None:
    """Raise `KafkaLabError` unless clients with these settings of librdkafka log in over TLS, as seats do."""
    protocol = str(client.get("security.protocol", "PLAINTEXT")).upper()
    if protocol != "SASL_SSL":
        raise KafkaLabError(
            f"seats log in with a password over TLS, and the listener at {client['bootstrap.servers']} has {protocol}. "
            "Name one with SASL_SSL, and give settings of an administrator who logs in there: --client-settings"
        )


def authority_of(client: Mapping[str, object]) -> str:
    """Return, as PEM, the certificate that signs the brokers' ones. Empty if the machine's own authorities do.

    Raises
    ------
    KafkaLabError
        If its file can't be read.
    """
    if "ssl.ca.location" not in client:
        return str(client.get("ssl.ca.pem", ""))
    try:
        return Path(str(client["ssl.ca.location"])).read_text()
    except (OSError, ValueError) as error:
        raise KafkaLabError(f"the certificate in ssl.ca.location can't be read: {error}") from error


def try_seat(seat: Membership) -> None:
    """Log in as a seat, and look at the topic that all seats read.

    Raises
    ------
    KafkaLabError
        If the seat can't. Learners couldn't, either.
    """
    said: list[KafkaError] = []
    client = AdminClient({**seat.client_config(), "error_cb": said.append})  # type: ignore[dict-item]
    try:
        topic = client.list_topics(PUBLIC, timeout=_SECONDS).topics[PUBLIC]
    except KafkaException as error:
        client.poll(0)
        reason = next((one for one in said if one.code() != KafkaError._ALL_BROKERS_DOWN), error.args[0])
        raise KafkaLabError(
            f"a seat can't log in at {seat.servers}: {reason.str()}. The listener needs TLS and SCRAM-SHA-512"
        ) from error
    if topic.error is not None:
        raise KafkaLabError(f"a seat may not read the topic {PUBLIC}: {topic.error.str()}")

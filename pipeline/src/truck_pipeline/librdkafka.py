"""Kafka from Python: librdkafka, with settings of the Java client, which Spark uses."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

__all__ = ["as_librdkafka", "librdkafka_client"]

_TIMEOUT = 5.0  # seconds for one answer
_AS_JAVA = str.maketrans("+/", "-_")  # Java's client writes ids in the URL's alphabet

# Settings that have the same name in both clients.
_SAME = ("bootstrap.servers", "client.id", "security.protocol", "sasl.mechanism", "ssl.key.password")

# Settings with a PEM text or the path of a PEM file: librdkafka's, by Java's.
_PEM = {
    "ssl.truststore.certificates": ("ssl.ca.pem",),
    "ssl.truststore.location": ("ssl.ca.location",),
    "ssl.keystore.certificate.chain": ("ssl.certificate.pem",),
    "ssl.keystore.key": ("ssl.key.pem",),
    "ssl.keystore.location": ("ssl.certificate.location", "ssl.key.location"),
}

_LOGIN = re.compile(r"\s*[\w.$]+\.(?:Plain|Scram)LoginModule\s+required\b(.*)", re.DOTALL)
_OPTION = re.compile(r"""(\w+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^\s;"']+))""")
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t"}


@contextlib.contextmanager
def librdkafka_client(settings: Mapping[str, Any]) -> Iterator[Callable[[str], tuple[str, bool, int]]]:
    """Yield a function that returns a topic's id, whether it still has every record ever sent to it, and its partitions.

    It raises `LookupError` if there is no such topic.

    Raises
    ------
    ConnectionError
        When no broker answers within some seconds, or Kafka refuses the login.
    """
    problems: list[KafkaError] = []
    quiet: dict[str, Any] = {"error_cb": problems.append, "log_level": 2}  # it would log each failed attempt to standard error
    try:
        admin = AdminClient({**settings, **quiet})
        try:
            yield lambda name: _describe(admin, name)
        finally:
            admin.poll(0)  # calls error_cb
    except KafkaException as error:
        if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            raise LookupError from None
        reasons = [problem.str() for problem in problems if problem.code() != KafkaError._ALL_BROKERS_DOWN]
        raise ConnectionError(reasons[-1] if reasons else error.args[0].str()) from None


def _describe(admin: AdminClient, name: str) -> tuple[str, bool, int]:
    topic = admin.describe_topics(TopicCollection([name]), request_timeout=_TIMEOUT)[name].result()
    earliest: OffsetSpec = OffsetSpec.earliest()  # type: ignore[no-untyped-call] # the client lacks types
    partitions = {TopicPartition(name, partition.id): earliest for partition in topic.partitions}
    starts = admin.list_offsets(partitions, request_timeout=_TIMEOUT).values()
    whole = all(start.result().offset == 0 for start in starts)
    return str(topic.topic_id).translate(_AS_JAVA), whole, len(partitions)


def as_librdkafka(java: Mapping[str, str]) -> dict[str, Any]:
    """Translate a Java client's settings for addresses, TLS and login, and leave out all others.

    Files that the settings name have to be on this machine, too.

    Raises
    ------
    ConnectionError
        When librdkafka has no such setting. The message says what to set instead.
    """
    settings: dict[str, Any] = {name: java[name] for name in _SAME if name in java}
    for name, others in _PEM.items():
        if name in java:
            settings |= dict.fromkeys(others, _pem(java, name))
    if "ssl.endpoint.identification.algorithm" in java:
        settings["ssl.endpoint.identification.algorithm"] = java["ssl.endpoint.identification.algorithm"] or "none"
    if java.get("security.protocol", "").upper().startswith("SASL"):
        settings |= _login(java)
    return settings


def _pem(java: Mapping[str, str], name: str) -> str:
    if not name.endswith(".location"):
        return java[name]
    store = name.removesuffix(".location")
    if java.get(f"{store}.type", "JKS").upper() != "PEM":
        raise ConnectionError(f"{_WITHOUT_JAVA} read {name}: give {store}.type=PEM, and a file of PEM")
    if not Path(java[name]).is_file():
        raise ConnectionError(f"{name} names {java[name]}: there is no such file on this machine, where it's needed, too")
    return java[name]


def _login(java: Mapping[str, str]) -> dict[str, str]:
    module = _LOGIN.match(java.get("sasl.jaas.config", ""))
    options = {name: _plain(*values) for name, *values in _OPTION.findall(module[1])} if module else {}
    if not options.keys() >= {"username", "password"}:
        raise ConnectionError(
            f"{_WITHOUT_JAVA} log in by {java.get('sasl.mechanism', 'GSSAPI')} without a name and a password: give "
            "sasl.mechanism=PLAIN or SCRAM-SHA-512, and sasl.jaas.config with username and password"
        )
    return {"sasl.username": options["username"], "sasl.password": options["password"]}


def _plain(double: str, single: str, bare: str) -> str:
    return bare or re.sub(r"\\(.)", lambda escape: _ESCAPED.get(escape[1], escape[1]), double or single, flags=re.DOTALL)


_WITHOUT_JAVA = "this process talks to Kafka without Java, and can't"

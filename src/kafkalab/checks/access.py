"""Questions about a secured cluster: who can connect, what a client may do, and which ACL rules exist."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from kafkalab.checks.context import CheckContext, Unmet
from kafkalab.cluster.asking import ask
from kafkalab.errors import UnknownListener, WaitTimeout
from kafkalab.waiting import wait_until

__all__ = [
    "CONNECTED",
    "REJECTED",
    "acl_rules",
    "brokers_at",
    "group_rights",
    "servers",
    "topic_rights",
    "try_connect",
]

CONNECTED = "connected"
"""What `try_connect` returns for a client that connects."""

REJECTED = "_AUTHENTICATION"
"""What `try_connect` returns for a client whose login fails."""

_PATIENCE = 30.0
_WITHOUT_A_WORD = ("_ALL_BROKERS_DOWN", "_TRANSPORT")
_DISCONNECTS = 8  # disconnects without an error, after which "disconnected" is the answer
_ANY: Any = None  # its types don't say that None means any name
_EVERY_RULE = AclBindingFilter(
    ResourceType.ANY, _ANY, ResourcePatternType.ANY, _ANY, _ANY, AclOperation.ANY, AclPermissionType.ANY
)


def try_connect(settings: Mapping[str, Any]) -> str:
    """Try to connect with librdkafka settings.

    Returns
    -------
    str
        `CONNECTED`, or the reason for the failure: the TLS alert, the name of librdkafka's error, ``disconnected``, or
        what is wrong with the settings.
    """
    errors: list[KafkaError] = []
    quiet: dict[str, Any] = {"log_level": 0, "reconnect.backoff.max.ms": 100, "error_cb": errors.append}
    try:
        client = AdminClient({**settings, **quiet})
    except (KafkaException, ValueError, TypeError) as error:
        return f"settings that librdkafka rejects ({error})"

    def answer() -> str:
        client.poll(0)
        if reason := _reason(errors):
            return reason
        try:
            client.list_topics(timeout=0.5)
        except KafkaException:
            return ""
        return CONNECTED

    try:
        return wait_until(answer, _PATIENCE, "an answer", interval=0)
    except WaitTimeout:
        return "no answer"


def _reason(errors: list[KafkaError]) -> str:
    """Return why the connection failed, as far as these errors show it, else an empty text."""
    for error in list(errors):
        if alert := re.search(r"alert ([a-z ]+):", error.str()):
            return f"TLS alert: {alert[1]}"
        if error.name() not in (*_WITHOUT_A_WORD, "_TIMED_OUT"):  # a slow broker hasn't answered yet
            return error.name()
    return "disconnected" if sum(error.name() in _WITHOUT_A_WORD for error in errors) >= _DISCONNECTS else ""


def servers(ctx: CheckContext, listener: str) -> str:
    """Return the bootstrap servers of a listener. Raise `Unmet` if the cluster doesn't have it."""
    try:
        return str(ctx.cluster.clients.servers(listener))
    except UnknownListener:
        raise Unmet(f"The cluster has no listener named {listener}. Did you give it your settings?") from None


def brokers_at(ctx: CheckContext, listener: str) -> Iterator[tuple[int, str]]:
    """Yield each broker's id and its address on a listener. Raise `Unmet` unless all of them run."""
    servers(ctx, listener)
    for broker, view in ctx.view().brokers.items():
        if not view.address:
            continue  # a dedicated controller
        if view.state != "up":
            raise Unmet(f"Broker {broker} is {view.state}. What does its log say? print(cluster.nodes.logs({broker})[-3000:])")
        yield broker, ctx.cluster.clients.bootstrap(broker, listener)


def acl_rules(ctx: CheckContext) -> list[AclBinding]:
    """Return all ACL rules that the cluster knows."""
    try:
        return list(ask(ctx.cluster, lambda admin: admin.describe_acls(_EVERY_RULE)))
    except KafkaException as error:
        raise Unmet(f"The ACL rules can't be listed: {error.args[0].str()}.") from error


def topic_rights(ctx: CheckContext, user: str, topic: str) -> frozenset[str]:
    """Return the operations a user may do with a topic: ``READ``, ``WRITE`` …; none if they may not even see the topic.

    Raises
    ------
    KafkaException
        If the user can't find out, for example because their login fails.
    """

    def asked(admin: AdminClient) -> Future[Any]:
        return admin.describe_topics(TopicCollection([topic]), include_authorized_operations=True)[topic]

    return _rights(ctx, user, asked, KafkaError.TOPIC_AUTHORIZATION_FAILED)


def group_rights(ctx: CheckContext, user: str, group: str) -> frozenset[str]:
    """Return the operations a user may do with a consumer group, which may not exist yet; raise as `topic_rights` does."""

    def asked(admin: AdminClient) -> Future[Any]:
        return admin.describe_consumer_groups([group], include_authorized_operations=True)[group]

    return _rights(ctx, user, asked, KafkaError.GROUP_AUTHORIZATION_FAILED)


def _rights(ctx: CheckContext, user: str, asked: Callable[[AdminClient], Future[Any]], forbidden: int) -> frozenset[str]:
    """Return the operations that the answer lists; none if it's the error for a user who may not even ask."""
    try:
        described = ask(ctx.cluster, asked, ctx.cluster.client_config(user))
    except KafkaException as error:
        if error.args[0].code() == forbidden:
            return frozenset()
        raise
    return frozenset(operation.name for operation in described.authorized_operations or ())

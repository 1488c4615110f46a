"""What a client is told that knocks at a cluster's door: asked by the checks of labs on security, who leave no record behind."""

from __future__ import annotations

import re
from collections.abc import Mapping

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient

from kafkalab.errors import WaitTimeout
from kafkalab.waiting import wait_until

__all__ = ["IN", "group_rights", "topic_rights", "when_knocking"]

IN = "in"
"""The answer to a client that is let in."""

_PATIENCE = 15.0
# The first group of a cluster waits until the topic is made in which groups are kept.
_NO_COORDINATOR_YET = (KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError.COORDINATOR_LOAD_IN_PROGRESS)
_WITHOUT_A_WORD = ("_ALL_BROKERS_DOWN", "_TRANSPORT")
_HANGING_UP = 8  # as often as a broker hangs up without a word before that is its answer


def when_knocking(settings: Mapping[str, object]) -> str:
    """Try to connect with librdkafka settings.

    Returns
    -------
    str
        `IN`; or why not: the TLS alert, the name of librdkafka's error, ``hung up``; or what is wrong with the settings.
    """
    errors: list[KafkaError] = []
    quiet = {"log_level": 0, "reconnect.backoff.max.ms": 100, "error_cb": errors.append}
    try:
        client = AdminClient({**settings, **quiet})
    except (KafkaException, ValueError) as error:
        return f"settings that librdkafka refuses ({error})"

    def answer() -> str | None:
        client.poll(0)
        if told := _reason(errors):
            return told
        try:
            client.list_topics(timeout=0.5)
        except KafkaException:
            return None
        return IN

    try:
        return wait_until(answer, _PATIENCE, "an answer", interval=0)
    except WaitTimeout:
        return "no answer"


def _reason(errors: list[KafkaError]) -> str | None:
    for error in list(errors):
        if alert := re.search(r"alert ([a-z ]+):", error.str()):
            return f"TLS alert: {alert[1]}"
        if error.name() not in (*_WITHOUT_A_WORD, "_TIMED_OUT"):  # a slow broker has not answered yet
            return error.name()
    return "hung up" if sum(error.name() in _WITHOUT_A_WORD for error in errors) >= _HANGING_UP else None


def topic_rights(settings: Mapping[str, object], topic: str) -> frozenset[str]:
    """Names of the operations that a client may do with a topic: ``READ``, ``WRITE`` …; none if it may not even see it.

    Raises
    ------
    KafkaException
        When that cannot be found out: the client is not let in, say.
    """
    client = AdminClient(dict(settings))
    asked = client.describe_topics(TopicCollection([topic]), include_authorized_operations=True, request_timeout=_PATIENCE)[topic]
    try:
        return frozenset(operation.name for operation in asked.result().authorized_operations or ())
    except KafkaException as error:
        if error.args[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            return frozenset()
        raise


def group_rights(settings: Mapping[str, object], group: str) -> frozenset[str]:
    """The same for a consumer group, which need not exist yet."""
    client = AdminClient(dict(settings))

    def ask() -> tuple[frozenset[str]] | None:
        asked = client.describe_consumer_groups([group], include_authorized_operations=True, request_timeout=_PATIENCE)[group]
        try:
            return (frozenset(operation.name for operation in asked.result().authorized_operations or ()),)
        except KafkaException as error:
            if error.args[0].code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
                return (frozenset(),)
            if error.args[0].code() in _NO_COORDINATOR_YET:
                return None
            raise

    (rights,) = wait_until(ask, _PATIENCE, f"a coordinator of the group {group}")
    return rights

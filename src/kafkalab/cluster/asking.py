"""Ask a cluster with an administrator's request, even if its brokers are fenced for a moment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from kafkalab.cluster.cluster import Cluster
from kafkalab.errors import WaitTimeout
from kafkalab.waiting import wait_until

__all__ = ["ask"]

T = TypeVar("T")

_ATTEMPT = 10.0
_PATIENCE = 60.0
# A broker that is fenced vanishes from the metadata. librdkafka then gives up what it asked there, or finds no broker to ask.
# https://github.com/confluentinc/librdkafka/pull/4557
_NOT_YET = (
    KafkaError._DESTROY_BROKER,
    KafkaError._TIMED_OUT,
    KafkaError._TRANSPORT,
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError.NOT_CONTROLLER,
    # A cluster's first group has no coordinator until the topic for groups exists.
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
)


def ask(cluster: Cluster, request: Callable[[AdminClient], Future[T]], settings: Mapping[str, Any] | None = None) -> T:
    """Return the answer to an administrator's request. It should only read: it may be sent more than once.

    Parameters
    ----------
    cluster
        A running cluster.
    request
        Sends the request with the client it's given, and returns the future of the answer.
    settings
        The client's settings, by default those of `Cluster.client_config`.

    Raises
    ------
    KafkaException
        With Kafka's answer, if that's an error. With the last error, if the login fails, no node of the cluster runs, or none
        has answered for a minute.
    """
    problems: list[KafkaError] = []
    config: dict[str, Any] = dict(settings or cluster.client_config())
    config |= {"log_level": 0, "socket.timeout.ms": int(_ATTEMPT * 1000), "error_cb": problems.append}
    client = AdminClient(config)
    last: KafkaException | None = None

    def answered() -> list[T]:
        nonlocal last
        try:
            return [request(client).result()]
        except KafkaException as error:
            last = error
            client.poll(0)  # calls error_cb
            rejected = any(problem.code() == KafkaError._AUTHENTICATION for problem in problems)
            if rejected or error.args[0].code() not in _NOT_YET or "up" not in cluster.nodes.states().values():
                raise
        return []

    try:
        [answer] = wait_until(answered, _PATIENCE, "an answer")
    except WaitTimeout:
        assert last is not None
        raise last from None
    return answer

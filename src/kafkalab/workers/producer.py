"""A console producer in a process of its own."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from kafkalab.errors import MessageFailed, WorkerFailed
from kafkalab.waiting import wait_until
from kafkalab.workers.settings import PRODUCER, combine, delivery_timeout, idempotence
from kafkalab.workers.worker import Worker

if TYPE_CHECKING:
    from kafkalab.cluster import Cluster

__all__ = ["ConsoleProducer"]

_GRACE = 10.0  # seconds beyond the delivery timeout; after that the cause isn't Kafka


class ConsoleProducer(Worker):
    """Send messages one at a time, like ``kafka-console-producer`` does with lines.

    It flushes each message separately, so messages without a key scatter over the partitions.

    Parameters
    ----------
    cluster
        A running cluster.
    topic
        An existing topic.
    name
        Name of the worker. By default ``producer-1``, ``producer-2`` …
    **settings
        librdkafka settings, with underscores for dots: ``acks=1``, ``delivery_timeout_ms=5000``. Defaults are
        librdkafka's (``acks=all``) with two exceptions: ``delivery.timeout.ms`` is 10 000, and ``enable.idempotence``
        is true, as in Kafka's own producer, unless you set ``acks``, ``retries`` or the requests in flight.
    """

    _KIND = "producer"
    _MODULE = "kafkalab.workers.producer_process"

    def __init__(self, cluster: Cluster, topic: str, *, name: str | None = None, **settings: object) -> None:
        self._outcomes: dict[int, list[tuple[int, int] | MessageFailed]] = {}
        self._ids = itertools.count()
        settings = combine(settings)
        defaults = {**PRODUCER, **idempotence(settings)}
        super().__init__(cluster, topic, name=name, defaults=defaults, settings=settings, start={})

    def send(self, *values: str, key: str | None = None, partition: int | None = None) -> list[tuple[int, int]]:
        """Send messages in this order, each after the one before was acknowledged.

        Parameters
        ----------
        *values
            The messages' values.
        key
            The key of every message.
        partition
            The partition of every message. Without it the partitioner chooses, by the key if there is one.

        Returns
        -------
        list
            Partition and offset of each message.

        Raises
        ------
        MessageFailed
            If a message wasn't acknowledged. The messages after it weren't sent.
        WorkerClosed
            If the producer is closed or killed, before or during the call.
        """
        if not all(isinstance(value, str) for value in values):
            raise TypeError(f"send takes texts, as in send('m1', 'm2'), not {values!r}")
        self._require_alive("send with")
        request = next(self._ids)
        outcomes = self._outcomes[request] = []
        self._send({"do": "send", "id": request, "topic": self.topic, "values": values, "key": key, "partition": partition})
        sent: list[tuple[int, int]] = []
        try:
            for value in values:
                outcome = self._await_outcome(outcomes, len(sent), value)
                if isinstance(outcome, MessageFailed):
                    raise outcome
                sent.append(outcome)
        finally:
            del self._outcomes[request]
        return sent

    def _await_outcome(
        self, outcomes: list[tuple[int, int] | MessageFailed], index: int, value: str
    ) -> tuple[int, int] | MessageFailed:
        wait_until(
            lambda: len(outcomes) > index or not self.alive,
            delivery_timeout(self._settings) + _GRACE,
            f"{self.name} to send {value!r}",
            last_seen=lambda: f"{index} messages sent; " + " | ".join(self.lines[-3:]),
            interval=0.005,
        )
        if len(outcomes) <= index:
            self._require_alive("send with")
            raise WorkerFailed(f"{self.name} said nothing about {value!r}")
        return outcomes[index]

    def _handle(self, kind: str, event: dict[str, Any]) -> None:
        # An interrupted send() no longer takes the outcome, but the line still shows it.
        outcomes = self._outcomes.get(event["id"], [])
        if kind == "sent":
            outcomes.append((event["partition"], event["offset"]))
            self._say(f"> {event['value']}")
        else:
            outcomes.append(MessageFailed(event["value"], event["code"], event["reason"]))
            self._say(f"ERROR {event['value']}: {event['code']}")

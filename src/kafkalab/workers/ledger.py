"""A producer that keeps a ledger of every message that Kafka acknowledged."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kafkalab.waiting import wait_until
from kafkalab.workers.settings import PRODUCER, combine, delivery_timeout
from kafkalab.workers.worker import Worker

if TYPE_CHECKING:
    from kafkalab.cluster import Cluster

__all__ = ["Acknowledgement", "LedgerProducer"]

_GRACE = 10.0


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """One line of the ledger.

    Attributes
    ----------
    seq
        The message's number, from 1.
    value, key
        The message's value and key.
    partition, offset
        The place from the broker's acknowledgement. The offset is -1 with ``acks=0``.
    at
        When the acknowledgement arrived, in seconds since the epoch.
    ms
        Milliseconds from sending to the acknowledgement.
    """

    seq: int
    value: str
    key: str | None
    partition: int
    offset: int
    at: float
    ms: float


class LedgerProducer(Worker):
    """Send numbered messages ``message 1``, ``message 2`` … until `stop`, and write each acknowledged one to a ledger.

    The ledger is a file of JSON lines (the fields of `Acknowledgement`). The producer writes a line in one piece when
    the acknowledgement arrives, so a kill loses no written line.

    Parameters
    ----------
    cluster
        A running cluster.
    topic
        An existing topic.
    rate
        Messages per second.
    acks
        ``"all"``, ``1`` or ``0``: which acknowledgement the producer waits for.
    keys
        Keys to use in turn. Without them, messages have no key.
    count
        Send this many messages and end. Without it, continue until `stop`.
    name
        Name of the worker. By default ``ledger-1``, ``ledger-2`` …
    **settings
        librdkafka settings, with underscores for dots: ``enable_idempotence=True`` (off by default).

    Attributes
    ----------
    ledger
        Path of the ledger. The file is removed with the cluster.
    """

    _KIND = "ledger"
    _MODULE = "kafkalab.workers.ledger_process"

    def __init__(
        self,
        cluster: Cluster,
        topic: str,
        *,
        rate: float = 200,
        acks: str | int = "all",
        keys: Sequence[str] = (),
        count: int | None = None,
        name: str | None = None,
        **settings: object,
    ) -> None:
        if rate <= 0:
            raise ValueError(f"the rate is in messages a second and more than 0, not {rate}")
        self.ledger: Path = cluster.nodes.run.directory / "workers" / f"ledger-{uuid.uuid4().hex[:8]}.jsonl"
        self._entries: list[Acknowledgement] = []
        self._position = 0
        self._tail_lock = threading.Lock()
        self._sent = 0
        self._failures: dict[str, int] = {}
        defaults = {**PRODUCER, "acks": acks}
        answered = str(combine(defaults, settings)["acks"]) != "0"
        start = {"ledger": str(self.ledger), "rate": rate, "keys": list(keys), "count": count, "answered": answered}
        super().__init__(cluster, topic, name=name, defaults=defaults, settings=settings, start=start)

    @property
    def entries(self) -> list[Acknowledgement]:
        """All lines of the ledger so far, in the order of the acknowledgements."""
        with self._tail_lock:
            self._read_on()
            return list(self._entries)

    @property
    def acknowledged(self) -> int:
        """The number of messages acknowledged so far."""
        with self._tail_lock:
            self._read_on()
            return len(self._entries)

    @property
    def sent(self) -> int:
        """The number of messages handed to librdkafka, as last reported (every second, and at the end)."""
        return self._sent

    @property
    def failed(self) -> int:
        """The number of failed messages, as last reported."""
        return sum(self._failures.values())

    @property
    def failures(self) -> dict[str, int]:
        """The number of failed messages by Kafka's name of the error."""
        return dict(self._failures)

    def wait_for(self, count: int, timeout: float = 30.0) -> int:
        """Wait until `count` messages in total are acknowledged, and return the number of acknowledged messages.

        Raises
        ------
        WaitTimeout, WorkerClosed
        """
        what = f"{count} acknowledged messages of {self.name}"
        self._wait(lambda: self.acknowledged >= count, timeout, what, lambda: str(self.acknowledged))
        return self.acknowledged

    def wait_finished(self, timeout: float = 60.0) -> int:
        """Wait until a producer with a fixed `count` has ended, and return the number of acknowledged messages.

        By then every message is either acknowledged or failed.

        Raises
        ------
        WaitTimeout
        """
        what = f"{self.name} to send all its messages"
        wait_until(lambda: not self.alive, timeout, what, last_seen=lambda: f"{self.acknowledged} acknowledged")
        return self.acknowledged

    def stop(self) -> int:
        """Stop sending, wait for messages in flight, and end; return the number of acknowledged messages."""
        self.close()
        return self.acknowledged

    def _close_seconds(self) -> float:
        return delivery_timeout(self._settings) + _GRACE

    def _has_ended(self) -> None:
        with self._tail_lock:
            self._read_on()  # before the ledger may be removed with the cluster
        super()._has_ended()

    def _read_on(self) -> None:
        # Only the ledger counts: what it holds after a kill is what was acknowledged.
        if not self.ledger.exists():
            return
        with open(self.ledger, "rb") as ledger:
            ledger.seek(self._position)
            for line in ledger:
                if not line.endswith(b"\n"):
                    break  # this line is just being written
                self._entries.append(Acknowledgement(**json.loads(line)))
                self._position += len(line)

    def _handle(self, kind: str, event: dict[str, Any]) -> None:
        self._sent, self._failures = event["sent"], event["failed"]
        failed = "".join(f", {n} failed with {code}" for code, n in self._failures.items())
        self._say(f"{event['sent']} sent, {event['acknowledged']} acknowledged{failed}")

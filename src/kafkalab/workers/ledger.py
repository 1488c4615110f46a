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
        The message.
    partition, offset
        Where the broker says it stands; the offset is -1 with ``acks=0``.
    at
        When the acknowledgement came, in seconds since the epoch.
    ms
        Milliseconds from sending to that.
    """

    seq: int
    value: str
    key: str | None
    partition: int
    offset: int
    at: float
    ms: float


class LedgerProducer(Worker):
    """Sends numbered messages ``message 1``, ``message 2`` … until `stop`, and writes each acknowledged one down.

    The ledger is a file of JSON lines (the fields of `Acknowledgement`). A line is written whole when the
    acknowledgement comes, so that a kill loses none that was written.

    Parameters
    ----------
    cluster
        A running cluster.
    topic
        An existing topic.
    rate
        Messages a second.
    acks
        ``"all"``, ``1`` or ``0``: which acknowledgement counts.
    keys
        Keys to be used in turn; no key if empty.
    count
        Send so many and end; without it, go on until `stop`.
    name
        Name of the worker; ``ledger-1``, ``ledger-2`` … if not given.
    **settings
        librdkafka settings, with underscores for dots: ``enable_idempotence=True`` (it is off by default).

    Attributes
    ----------
    ledger
        Path of the ledger. It goes with the cluster.
    """

    _kind = "ledger"
    _module = "kafkalab.workers.ledger_process"

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
        self.ledger: Path = cluster.run.directory / "workers" / f"ledger-{uuid.uuid4().hex[:8]}.jsonl"
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
        """All of the ledger so far, in the order in which acknowledgements came."""
        with self._tail_lock:
            self._read_on()
            return list(self._entries)

    @property
    def acknowledged(self) -> int:
        """How many messages were acknowledged so far."""
        with self._tail_lock:
            self._read_on()
            return len(self._entries)

    @property
    def sent(self) -> int:
        """How many messages were handed to librdkafka, as last reported (every second, and at the end)."""
        return self._sent

    @property
    def failed(self) -> int:
        """How many messages were given up, as last reported."""
        return sum(self._failures.values())

    @property
    def failures(self) -> dict[str, int]:
        """The same by Kafka's name of the error."""
        return dict(self._failures)

    def wait_for(self, count: int, timeout: float = 15.0) -> int:
        """Wait until `count` messages were acknowledged in all, and return how many were.

        Raises
        ------
        WaitTimeout, WorkerClosed
        """

        def reached() -> bool:
            alive = self.alive
            if self.acknowledged >= count:
                return True
            if not alive:
                self._require_alive("wait for")
            return False

        what = f"{count} acknowledged messages of {self.name}"
        wait_until(reached, timeout, what, last_seen=lambda: f"{self.acknowledged}; last lines: {self.lines[-3:]}")
        return self.acknowledged

    def wait_finished(self, timeout: float = 60.0) -> int:
        """Wait until all messages of a fixed `count` have an outcome and the process ended; return how many were acknowledged.

        Raises
        ------
        WaitTimeout
        """
        what = f"{self.name} to send all its messages"
        wait_until(lambda: not self.alive, timeout, what, last_seen=lambda: f"{self.acknowledged} acknowledged")
        return self.acknowledged

    def stop(self) -> int:
        """Send no more, wait for the outcome of what is under way, end; return how many messages were acknowledged."""
        self.close()
        return self.acknowledged

    def _close_timeout(self) -> float:
        return delivery_timeout(self._settings) + _GRACE

    def _ended(self) -> None:
        with self._tail_lock:
            self._read_on()  # before the ledger may go with the cluster

    def _read_on(self) -> None:
        # The ledger itself is the only count: what stands in it after a kill is what was acknowledged.
        if not self.ledger.exists():
            return
        with open(self.ledger, "rb") as ledger:
            ledger.seek(self._position)
            for line in ledger:
                if not line.endswith(b"\n"):
                    break  # being written just now
                self._entries.append(Acknowledgement(**json.loads(line)))
                self._position += len(line)

    def _handle(self, kind: str, event: dict[str, Any]) -> None:
        self._sent, self._failures = event["sent"], event["failed"]
        failed = "".join(f", {n} failed with {code}" for code, n in self._failures.items())
        self._say(f"{event['sent']} sent, {event['acknowledged']} acknowledged{failed}")

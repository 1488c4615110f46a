"""Sends what trucks report, at a rate, and keeps the ledger: which events Kafka acknowledged."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Self

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from pipeline.events import encoder
from pipeline.settings import Settings
from pipeline.trucks import Event, Report

__all__ = ["TruckSender"]

# So few are on their way at a time that a partition without a leader can't fall far behind the others: all wait for it.
_ON_THEIR_WAY = 200


class TruckSender:
    """Sends reports from a thread of its own.

    Parameters
    ----------
    client
        Settings of a producer, such as ``bootstrap.servers``.
    settings
        Topic and registry are taken from these.
    reports
        What to send, in that order.
    rate
        Reports a second; 0: as fast as possible.
    """

    def __init__(self, client: Mapping[str, object], settings: Settings, reports: Iterable[Report], rate: float = 0) -> None:
        self._producer = Producer({**client, "enable.idempotence": True, "linger.ms": 5})
        self._encode = encoder(settings.registry, settings.positions)
        self._topic, self._reports, self._rate = settings.positions, list(reports), rate
        self._sent: list[Report] = []
        self._error: Exception | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="trucks", daemon=True)

    def start(self) -> Self:
        """Begin to send."""
        self._thread.start()
        return self

    def wait(self, timeout: float = 300) -> Self:
        """Wait until every report is acknowledged.

        Raises
        ------
        KafkaException, OSError
            Why a report could not be sent.
        TimeoutError
            When some are left after so many seconds.
        """
        self._thread.join(timeout)
        if self._error is not None:
            raise self._error
        if self._thread.is_alive():
            raise TimeoutError(f"{len(self._sent)} of {len(self._reports)} reports are acknowledged after {timeout:g} s")
        return self

    def stop(self) -> None:
        """Send no more. What is on its way arrives."""
        self._stop.set()
        self._thread.join()

    @property
    def acknowledged(self) -> int:
        """How many reports have been acknowledged so far."""
        return len(self._sent)

    @property
    def ledger(self) -> list[Event]:
        """Each event that was acknowledged, once."""
        return list({report.event.correlation: report.event for report in self._sent if report.event}.values())

    @property
    def malformed(self) -> int:
        """How many of the acknowledged reports hold no event."""
        return sum(report.event is None for report in self._sent)

    def _run(self) -> None:
        try:
            self._send_all()
        except Exception as error:
            self._error = error

    def _send_all(self) -> None:
        began = time.monotonic()
        for number, report in enumerate(self._reports):
            if self._stop.is_set():
                break
            if self._rate:
                self._stop.wait(max(0.0, began + number / self._rate - time.monotonic()))
            while len(self._producer) >= _ON_THEIR_WAY:
                self._producer.poll(0.1)
            value = self._encode(report.event) if report.event else report.malformed
            self._producer.produce(self._topic, value, key=str(report.driver), on_delivery=partial(self._note, report))
            self._producer.poll(0)
        self._producer.flush()

    def _note(self, report: Report, error: KafkaError | None, _: Message) -> None:
        if error is not None:
            raise KafkaException(error)
        self._sent.append(report)

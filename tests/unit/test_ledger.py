"""The process of a ledger producer, with a clock that only a poll moves."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from kafkalab.workers.ledger_process import Sender


class FakeChannel:
    """Hands over how to send, and keeps the reports."""

    def __init__(self, rate: float, count: int) -> None:
        self.start = {"topic": "t", "keys": [], "answered": True, "rate": rate, "count": count}
        self.reports: list[dict[str, object]] = []

    def answered(self) -> None:
        pass

    def emit(self, event: str, **report: object) -> None:
        self.reports.append(report)


class FakeProducer:
    """Acknowledges each message at once. Before the one named, the machine is busy for a while."""

    def __init__(self, busy_before: int, busy_for: float) -> None:
        self.now = 100.0
        self.sent_at: list[float] = []
        self._busy_before, self._busy_for = busy_before, busy_for

    def poll(self, seconds: float) -> None:
        self.now += seconds
        if len(self.sent_at) == self._busy_before - 1:
            self.now, self._busy_for = self.now + self._busy_for, 0.0

    def produce(self, topic: str, value: str, key: str | None, on_delivery: Callable[..., None]) -> None:
        self.sent_at.append(self.now)
        on_delivery(None, SimpleNamespace(partition=lambda: 0, offset=lambda: len(self.sent_at) - 1))

    def flush(self, seconds: float) -> int:
        return 0


@pytest.mark.parametrize("rate", [1, 7, 100, 999])
@pytest.mark.parametrize("busy", [0.0, 0.25])
def test_a_ledger_keeps_its_rate(rate: float, busy: float) -> None:
    channel, ledger, producer = FakeChannel(rate, 2000), io.StringIO(), FakeProducer(500, busy)
    Sender(channel, producer, ledger, lambda: producer.now).run(threading.Event())
    late = [at - 100 - number / rate for number, at in enumerate(producer.sent_at)]
    assert min(late) >= -1e-9, "it sent too fast"
    assert max(late[:499]) <= 0.001 + 1e-9, "librdkafka waits in milliseconds, but no longer"
    assert late[-1] <= 0.001 + 1e-9, "it never caught up"
    assert len(late) == 2000 == len(ledger.getvalue().splitlines())
    assert channel.reports[-1] == {"sent": 2000, "acknowledged": 2000, "failed": {}}

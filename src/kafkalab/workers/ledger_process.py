"""``python -m kafkalab.workers.ledger_process``: the process of a `LedgerProducer`."""

from __future__ import annotations

import json
import math
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import TextIO

from confluent_kafka import KafkaError, Message, Producer

from kafkalab.workers.channel import Channel

__all__ = ["Sender", "main"]

_REPORT_EVERY = 1.0  # seconds


def main() -> None:
    """Send numbered messages at the requested rate, until the parent sends close or all are sent."""
    channel = Channel()
    producer = channel.connect(Producer)
    channel.ready()
    stopping = channel.closing()
    # Line buffering: the operating system gets each line in one piece, so killing this process loses none.
    with open(channel.start["ledger"], "w", buffering=1, encoding="utf-8") as ledger:
        sender = Sender(channel, producer, ledger)
        sender.run(stopping)
    channel.end("closed")


class Sender:
    """Sends numbered messages and writes the acknowledged ones to a ledger."""

    def __init__(
        self, channel: Channel, producer: Producer, ledger: TextIO, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._channel = channel
        self._producer = producer
        self._ledger = ledger
        self._clock = clock
        self._topic: str = channel.start["topic"]
        self._keys: list[str] = channel.start["keys"]
        self._answered: bool = channel.start["answered"]
        self._sent = 0
        self._acknowledged = 0
        self._failed: Counter[str] = Counter()
        self._next_report = clock() + _REPORT_EVERY

    def run(self, stopping: threading.Event) -> None:
        """Send at the requested rate until `stopping` or all are sent. After a delay it catches up."""
        rate: float = self._channel.start["rate"]
        count: int | None = self._channel.start["count"]
        due = self._clock()
        while not stopping.is_set() and self._sent != count:
            wait = due - self._clock()
            # Polling fills the pause between two messages. librdkafka counts in milliseconds.
            self._producer.poll(math.ceil(wait * 1000) / 1000 if wait > 0 else 0)
            if wait <= 0 and self._send():
                due += 1 / rate
            self._report_if_due()
        while self._producer.flush(_REPORT_EVERY):
            self._report_if_due()
        self._report()

    def _send(self) -> bool:
        seq = self._sent + 1
        key = self._keys[self._sent % len(self._keys)] if self._keys else None
        at = time.time()

        def delivered(error: KafkaError | None, message: Message) -> None:
            self._delivered(seq, key, at, error, message)

        try:
            self._producer.produce(self._topic, value=f"message {seq}", key=key, on_delivery=delivered)
        except BufferError:
            return False  # librdkafka's queue is full: poll, then try this message again
        self._sent = seq
        return True

    def _delivered(self, seq: int, key: str | None, sent_at: float, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._failed[error.name()] += 1
            return
        self._channel.answered()
        now = time.time()
        entry = {
            "seq": seq,
            "value": f"message {seq}",
            "key": key,
            "partition": message.partition(),
            # With acks=0 no broker reports an offset. librdkafka then counts each batch from -1.
            "offset": message.offset() if self._answered else -1,
            "at": round(now, 3),
            "ms": round((now - sent_at) * 1000, 1),
        }
        self._ledger.write(json.dumps(entry) + "\n")
        self._acknowledged += 1

    def _report_if_due(self) -> None:
        if self._clock() >= self._next_report:
            self._next_report += _REPORT_EVERY
            self._report()

    def _report(self) -> None:
        self._channel.emit("progress", sent=self._sent, acknowledged=self._acknowledged, failed=dict(self._failed))


if __name__ == "__main__":
    main()

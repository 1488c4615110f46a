"""Send one stock's prices from a thread."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable

from confluent_kafka import KafkaError, Message, Producer

from kafkacourse.stocks.prices import Stock, serialize

__all__ = ["StockSender"]

_FULL = 0.1  # seconds to poll for room in a full queue


class StockSender(threading.Thread):
    """Send a price every few milliseconds, until you call `stop`.

    All senders share one producer: many threads may use it at once, and it batches better with more to send. The thread
    that calls the producer's ``poll`` or ``flush`` serves delivery reports, so each sender polls after each send.

    Parameters
    ----------
    producer
        The producer that all senders share.
    topic
        The topic to send to.
    stock
        What to send. Its name is the key, so that one stock's prices stay in order.
    delay
        Least and most seconds between two prices.
    count
        Stop after this many prices. Without it, continue until `stop`.
    on_delivery
        Called with each delivery report, too.
    seed
        Use the same seed for the same prices.

    Attributes
    ----------
    sent, delivered, failed
        How many prices were handed to the producer, acknowledged, and failed.
    """

    def __init__(
        self,
        producer: Producer,
        topic: str,
        stock: Stock,
        *,
        delay: tuple[float, float] = (0.001, 0.010),
        count: int | None = None,
        on_delivery: Callable[[KafkaError | None, Message], None] | None = None,
        seed: int | None = None,
    ) -> None:
        super().__init__(name=f"sender-{stock.name}", daemon=True)
        self.stock = stock
        self.sent = self.delivered = self.failed = 0
        self._producer = producer
        self._topic = topic
        self._delay = delay
        self._count = count
        self._on_delivery = on_delivery
        self._chance = random.Random(seed)
        self._counting = threading.Lock()  # delivery reports arrive on any thread that polls
        self._stopping = threading.Event()

    def run(self) -> None:
        """Send prices. `start` calls this."""
        while not self._stopping.is_set() and self.sent != self._count:
            self._send(serialize(self.stock.price(self._chance)))
            self._stopping.wait(self._chance.uniform(*self._delay))

    def stop(self) -> None:
        """Stop sending. The producer then has the last price, but perhaps not Kafka yet, so flush afterwards."""
        self._stopping.set()
        self.join()

    def _send(self, value: bytes) -> None:
        while not self._stopping.is_set():
            try:
                self._producer.produce(self._topic, key=self.stock.name, value=value, on_delivery=self._delivered)
            except BufferError:  # the producer's queue is full: serve some reports, then try again
                self._producer.poll(_FULL)
            else:
                self.sent += 1
                self._producer.poll(0)
                return

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        with self._counting:
            if error is None:
                self.delivered += 1
            else:
                self.failed += 1
        if self._on_delivery is not None:
            self._on_delivery(error, message)

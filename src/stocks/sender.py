"""A thread that sends one stock's prices."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable

from confluent_kafka import KafkaError, Message, Producer

from stocks.prices import Stock, serialize

__all__ = ["StockSender"]

_FULL = 0.1  # seconds to poll for room in a full queue


class StockSender(threading.Thread):
    """Sends a price every few milliseconds, until it is told to stop.

    Any number of senders share one producer: it is safe to use from many threads, and batches better with more to send.
    Delivery reports are served by whoever calls the producer's ``poll`` or ``flush``, so each sender polls after each send.

    Parameters
    ----------
    producer
        The producer that all senders share.
    topic
        Where to send.
    stock
        What to send; its name is the key, so that one stock's prices stay in order.
    delay
        Least and most seconds between two prices.
    count
        End after so many prices; without it, go on until `stop`.
    on_delivery
        Also told of each delivery report.
    seed
        For the same prices again.

    Attributes
    ----------
    sent, delivered, failed
        How many prices were handed to the producer, acknowledged, and given up.
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
        self._counting = threading.Lock()  # delivery reports come on any thread that polls
        self._stopping = threading.Event()

    def run(self) -> None:
        """Send; called by `start`."""
        while not self._stopping.is_set() and self.sent != self._count:
            self._send(serialize(self.stock.price(self._chance)))
            self._stopping.wait(self._chance.uniform(*self._delay))

    def stop(self) -> None:
        """Have it send no more. On return its last price is with the producer, but perhaps not yet with Kafka: flush."""
        self._stopping.set()
        self.join()

    def _send(self, value: bytes) -> None:
        while not self._stopping.is_set():
            try:
                self._producer.produce(self._topic, key=self.stock.name, value=value, on_delivery=self._delivered)
            except BufferError:  # more is waiting than the producer's queue holds: let some go, then try again
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

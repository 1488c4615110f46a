"""Measure what a producer's settings do: send the same values with each, and compare."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from kafkacourse.stocks.metrics import MetricsReporter

__all__ = ["Run", "measure"]

Report = Callable[[KafkaError | None, Message], None]

_BURST = 10  # records sent at once, with a given rate
_FULL = 0.1  # seconds to poll for room in a full queue


@dataclass(frozen=True)
class Run:
    """Measurements from sending some records.

    Attributes
    ----------
    records
        The number of records.
    seconds
        Seconds from the first record to the last acknowledgement.
    requests
        Produce requests that carried the records.
    latencies
        Milliseconds from `produce` to the delivery report, in ascending order.
    """

    records: int
    seconds: float
    requests: int
    latencies: tuple[float, ...]

    @property
    def rate(self) -> float:
        """Return the records per second."""
        return self.records / self.seconds

    @property
    def requests_per_second(self) -> float:
        """Return the produce requests per second."""
        return self.requests / self.seconds

    def percentile(self, percent: float) -> float:
        """Return the latency that this percentage of the records doesn't exceed.

        Parameters
        ----------
        percent
            0 to 100.

        Returns
        -------
        float
            Milliseconds.
        """
        return self.latencies[min(len(self.latencies) - 1, int(len(self.latencies) * percent / 100))]


def measure(
    settings: Mapping[str, object], topic: str, values: Sequence[bytes], *, rate: float | None = None, every: int = 1
) -> Run:
    """Send all values with a new producer, and measure it.

    Parameters
    ----------
    settings
        The producer's settings.
    topic
        An existing topic.
    values
        The records' values.
    rate
        Records per second, in bursts of ten. Without it, as fast as the producer accepts them.
    every
        Take the latency of every n-th record only, because each delivery report costs time, too.

    Returns
    -------
    Run
        The measurements.

    Raises
    ------
    KafkaException
        If one of the records whose latency is taken wasn't delivered. Nobody hears of the others: count what the topic
        holds.
    """
    reporter = MetricsReporter()
    latencies: list[float] = []
    errors: list[KafkaError] = []
    producer = Producer({**settings, "stats_cb": reporter, "statistics.interval.ms": 50})
    producer.list_topics(topic, timeout=10)  # so that the first record doesn't wait for connections

    def timed(value: bytes) -> None:
        sent = time.perf_counter()

        def report(error: KafkaError | None, message: Message) -> None:
            latencies.append(1000 * (time.perf_counter() - sent))
            if error is not None:
                errors.append(error)

        _produce(producer, topic, value, report)

    begin = time.perf_counter()
    for number, value in enumerate(values):
        if number % _BURST == 0:
            due = begin + number / rate if rate else 0
            producer.poll(0)
            while (early := due - time.perf_counter()) > 0:
                producer.poll(max(early, 0.001))  # a wait is in whole milliseconds: a shorter one wouldn't wait at all
        if number % every:
            _produce(producer, topic, value, None)
        else:
            timed(value)
    producer.flush()
    seconds = time.perf_counter() - begin
    if errors:
        raise KafkaException(errors[0])

    known = len(reporter.history)
    while len(reporter.history) == known:  # the next report includes the last request
        producer.poll(0.1)
    return Run(len(values), seconds, reporter.history[-1].requests, tuple(sorted(latencies)))


def _produce(producer: Producer, topic: str, value: bytes, report: Report | None) -> None:
    while True:
        try:
            return producer.produce(topic, value, on_delivery=report)
        except BufferError:
            producer.poll(_FULL)

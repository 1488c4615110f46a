"""Read a producer's own metrics, which librdkafka reports at a fixed interval.

In Java you ask the producer for them (``metrics()``, or JMX). The Python client calls a function of yours,
``stats_cb``, with a JSON text, every ``statistics.interval.ms``, and only while a thread polls::

    reporter = MetricsReporter()
    producer = Producer({"stats_cb": reporter, "statistics.interval.ms": 500, ...})
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

__all__ = ["Metrics", "MetricsReporter", "read_metrics"]


@dataclass(frozen=True, slots=True)
class Metrics:
    """A producer's metrics at one moment.

    Attributes
    ----------
    at
        Seconds on a monotonic clock.
    records, requests
        How many records were written into batches and how many produce requests were sent since the producer started.
        A record that is sent again counts again: more records than delivery reports mean retries. (librdkafka's
        ``txretries`` doesn't count them: it retries other requests, but puts a produce request's records back into
        their queue.)
    queued
        Records that wait for their acknowledgement or its delivery report, sent or not.
    batch_records, batch_bytes
        Size of an average batch since the last report; 0 if there was none.
    queue_time
        Milliseconds from `produce` to the batch, on average since the last report; 0 if there was none.
    rtt
        Milliseconds from a request to its response, on average since the last report; 0 if there was none.
    sent_bytes
        Bytes sent to brokers since the producer started: compressed, and with the overhead of requests and batches.
    """

    at: float
    records: int
    requests: int
    queued: int
    batch_records: float
    batch_bytes: float
    queue_time: float
    rtt: float
    sent_bytes: int

    def rate(self, earlier: Metrics) -> float:
        """Return the records per second between earlier metrics and these."""
        return (self.records - earlier.records) / (self.at - earlier.at)


def read_metrics(text: str) -> Metrics:
    """Parse the text that ``stats_cb`` gets.

    Parameters
    ----------
    text
        JSON, as librdkafka's STATISTICS.md describes it.

    Returns
    -------
    Metrics
        The most useful of these figures, over all brokers and topics.
    """
    told = json.loads(text)
    brokers, topics = told["brokers"].values(), told["topics"].values()
    return Metrics(
        at=told["ts"] / 1e6,
        records=told["txmsgs"],
        requests=sum(broker["req"].get("Produce", 0) for broker in brokers),
        queued=told["msg_cnt"],
        batch_records=_average([topic["batchcnt"] for topic in topics]),
        batch_bytes=_average([topic["batchsize"] for topic in topics]),
        queue_time=_average([broker["int_latency"] for broker in brokers]) / 1000,
        rtt=_average([broker["rtt"] for broker in brokers]) / 1000,
        sent_bytes=sum(broker["txbytes"] for broker in brokers),
    )


def _average(windows: list[dict[str, int]]) -> float:
    count = sum(window["cnt"] for window in windows)
    return sum(window["sum"] for window in windows) / count if count else 0.0


class MetricsReporter:
    """Collect the metrics of one producer: pass it to that producer as ``stats_cb``.

    Attributes
    ----------
    history
        All metrics so far.
    """

    def __init__(self) -> None:
        self.history: list[Metrics] = []
        self._news = threading.Condition()

    def __call__(self, text: str) -> None:
        """Store a report. The client calls this on whatever thread polls."""
        metrics = read_metrics(text)
        with self._news:
            self.history.append(metrics)
            self._news.notify_all()

    def follow(self, count: int, timeout: float = 10.0) -> Iterator[Metrics]:
        """Yield the next reports as they arrive, while other threads send and poll.

        Parameters
        ----------
        count
            How many reports to yield.
        timeout
            Seconds to wait for each report.

        Yields
        ------
        Metrics
            The next report.

        Raises
        ------
        TimeoutError
            If none arrives for `timeout` seconds.
        """
        position = len(self.history)
        for number in range(position, position + count):
            with self._news:
                if not self._news.wait_for(partial(self._has, number), timeout):
                    raise TimeoutError(f"no figures for {timeout:g} s: is statistics.interval.ms set, and does anybody poll?")
            yield self.history[number]

    def _has(self, number: int) -> bool:
        return len(self.history) > number

    def rates(self) -> list[tuple[float, float]]:
        """Return records per second: for each report but the first, its time and the rate since the one before."""
        return [(later.at, later.rate(earlier)) for earlier, later in pairwise(self.history)]

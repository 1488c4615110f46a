"""A producer's own figures: what librdkafka counts, told every so many milliseconds.

Java's producer is asked for them (``metrics()``, or JMX). The Python client tells them: to a function, ``stats_cb``, as a
text of JSON, as often as ``statistics.interval.ms`` says, and only while somebody polls::

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
    """A producer's figures at one moment.

    Attributes
    ----------
    at
        Seconds, on a clock that only goes forward.
    records, requests
        How many records were written into batches, and how many produce requests were sent, since the producer began. What is
        tried again counts again.
    queued
        Records that still wait for their acknowledgement or its report, whether they were sent or not.
    batch_records, batch_bytes
        Of an average batch since the last figures; 0 if there was none.
    queue_time
        Milliseconds from `produce` to the batch, on average since the last figures; 0 if there was none.
    rtt
        Milliseconds from a request to its answer, on average since the last figures; 0 if there was none.
    sent_bytes
        Bytes sent to brokers since the producer began: packed, and with all that is around the records.
    retries, errors
        Requests that were tried again, and those that could not be sent, since the producer began.
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
    retries: int
    errors: int

    def rate(self, earlier: Metrics) -> float:
        """Records a second between some earlier figures and these."""
        return (self.records - earlier.records) / (self.at - earlier.at)


def read_metrics(text: str) -> Metrics:
    """The figures in what ``stats_cb`` is given.

    Parameters
    ----------
    text
        JSON, as librdkafka's STATISTICS.md describes it.

    Returns
    -------
    Metrics
        Those of them that say most, over all brokers and topics.
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
        retries=sum(broker["txretries"] for broker in brokers),
        errors=sum(broker["txerrs"] for broker in brokers),
    )


def _average(windows: list[dict[str, int]]) -> float:
    count = sum(window["cnt"] for window in windows)
    return sum(window["sum"] for window in windows) / count if count else 0.0


class MetricsReporter:
    """Keeps the figures of one producer: give it to that producer as ``stats_cb``.

    Attributes
    ----------
    history
        All figures so far.
    """

    def __init__(self) -> None:
        self.history: list[Metrics] = []
        self._news = threading.Condition()

    def __call__(self, text: str) -> None:
        """Called by the client, on whatever thread polls."""
        metrics = read_metrics(text)
        with self._news:
            self.history.append(metrics)
            self._news.notify_all()

    def follow(self, count: int, timeout: float = 10.0) -> Iterator[Metrics]:
        """The next figures, one by one as they come, while other threads send and poll.

        Parameters
        ----------
        count
            How many.
        timeout
            Seconds to wait for each.

        Yields
        ------
        Metrics
            The next ones.

        Raises
        ------
        TimeoutError
            When none come for `timeout` seconds.
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
        """Records a second: the time of each figures but the first, and the rate since those before."""
        return [(later.at, later.rate(earlier)) for earlier, later in pairwise(self.history)]

"""The stock-price application's figures and measurements, without a cluster."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import ClassVar

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer

from kafkacourse.stocks.metrics import Metrics, MetricsReporter, read_metrics
from kafkacourse.stocks.sweep import Run, measure
from kafkalab.waiting import wait_until
from support import PATIENCE


def window(total: int, count: int) -> dict[str, int]:
    return {"sum": total, "cnt": count}


def broker(requests: dict[str, int], rtt: dict[str, int], queued: dict[str, int]) -> dict[str, object]:
    return {"req": requests, "rtt": rtt, "int_latency": queued, "txbytes": 700}


def told(seconds: float = 1.0, records: int = 0, requests: int = 0, queued: int = 0) -> str:
    """What librdkafka tells, as far as it is read."""
    return json.dumps(
        {
            "ts": int(1e6 * seconds),
            "txmsgs": records,
            "msg_cnt": queued,
            "brokers": {
                "one": broker({"Produce": requests, "Metadata": 7}, window(3000, 1), window(100_000, 10)),
                "two": broker({}, window(9000, 3), window(0, 0)),
            },
            "topics": {
                "few": {"batchcnt": window(10, 10), "batchsize": window(1000, 10)},
                "many": {"batchcnt": window(90, 10), "batchsize": window(4000, 10)},
            },
        }
    )


# -- figures --------------------------------------------------------------------------------------------------------


def test_figures_are_taken_from_all_brokers_and_topics() -> None:
    averages = {"batch_records": 5.0, "batch_bytes": 250.0, "queue_time": 10.0, "rtt": 3.0}
    assert read_metrics(told(2.5, 100, 20, 3)) == Metrics(2.5, 100, 20, 3, **averages, sent_bytes=1400)


def test_without_a_batch_there_is_no_average() -> None:
    fields = json.loads(told()) | {"brokers": {}, "topics": {"new": {"batchcnt": window(0, 0), "batchsize": window(0, 0)}}}
    metrics = read_metrics(json.dumps(fields))
    assert (metrics.requests, metrics.batch_records, metrics.batch_bytes, metrics.rtt) == (0, 0, 0, 0)


def test_the_real_client_tells_what_is_read() -> None:
    reporter = MetricsReporter()
    quiet = {"log_level": 0, "error_cb": lambda error: None}
    producer = Producer({"bootstrap.servers": "127.0.0.1:1", "stats_cb": reporter, "statistics.interval.ms": 20, **quiet})
    for _ in range(3):
        producer.produce("t", b"v")

    def told() -> list[Metrics]:
        producer.poll(0.1)
        # The first figures may have been made before all three were in the queue.
        return [metrics for metrics in reporter.history if metrics.queued == 3]

    first, second = wait_until(lambda: told()[:2] if len(told()) > 1 else None, PATIENCE, "figures of three records that wait")
    producer.purge()
    assert first.at < second.at
    assert first.records == first.requests == 0


def test_rates_are_between_figures() -> None:
    reporter = MetricsReporter()
    for text in (told(1, 0), told(2, 500), told(4, 600)):
        reporter(text)
    assert reporter.rates() == [(2, 500), (4, 50)]


def test_following_brings_what_comes_next() -> None:
    reporter = MetricsReporter()
    reporter(told(1, 1))
    following = reporter.follow(2)
    teller = threading.Thread(target=lambda: [reporter(told(2, 2)), reporter(told(3, 3)), reporter(told(4, 4))])
    first = threading.Thread(target=lambda: seen.extend(metrics.records for metrics in following))
    seen: list[int] = []
    first.start()
    while first.is_alive() and not reporter._news._waiters:  # type: ignore[attr-defined]  # until it waits
        pass
    teller.start()
    first.join(PATIENCE)
    teller.join(PATIENCE)
    assert seen == [2, 3]


def test_following_a_producer_that_tells_nothing_ends_with_a_reason() -> None:
    with pytest.raises(TimeoutError, match=r"statistics\.interval\.ms"):
        next(MetricsReporter().follow(1, timeout=0.05))


# -- measurements ---------------------------------------------------------------------------------------------------


class FakeProducer:
    """Takes so many records at a time, delivers when it is polled, and tells its figures with every poll."""

    made: ClassVar[list[FakeProducer]] = []

    def __init__(self, settings: dict, room: int = 1000, error: KafkaError | None = None) -> None:
        self.settings, self.room, self.error = settings, room, error
        self.waiting: list[tuple[bytes, Callable | None]] = []
        self.delivered: list[bytes] = []
        FakeProducer.made.append(self)

    def list_topics(self, topic: str, timeout: float) -> None: ...

    def produce(self, topic: str, value: bytes, on_delivery: Callable | None = None) -> None:
        if len(self.waiting) >= self.room:
            raise BufferError("full")
        self.waiting.append((value, on_delivery))

    def poll(self, timeout: float = 0) -> int:
        for value, report in self.waiting:
            self.delivered.append(value)
            if report:
                report(self.error, SimpleNamespace())
        self.waiting.clear()
        self.settings["stats_cb"](told(time.perf_counter(), len(self.delivered), 4))
        return 0

    def flush(self) -> int:
        self.poll()
        return 0


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Have `measure` use a producer that is none."""

    def use(**how: object) -> None:
        FakeProducer.made.clear()
        monkeypatch.setattr("kafkacourse.stocks.sweep.Producer", lambda settings: FakeProducer(settings, **how))

    use()
    return use


VALUES = [str(number).encode() for number in range(45)]


def test_all_values_are_sent_once_and_some_are_timed(fake: Callable[..., None]) -> None:
    run = measure({"linger.ms": 7}, "t", VALUES, every=10)
    [producer] = FakeProducer.made
    assert producer.delivered == VALUES
    assert producer.settings["linger.ms"] == 7
    assert (run.records, run.requests, len(run.latencies)) == (45, 4, 5)
    assert list(run.latencies) == sorted(run.latencies)


def test_a_full_queue_is_waited_for(fake: Callable[..., None]) -> None:
    fake(room=3)
    measure({}, "t", VALUES)
    assert FakeProducer.made[0].delivered == VALUES


def test_a_given_rate_is_kept(fake: Callable[..., None]) -> None:
    assert measure({}, "t", VALUES, rate=200).seconds >= 40 / 200


def test_what_is_not_delivered_is_told(fake: Callable[..., None]) -> None:
    fake(error=KafkaError(KafkaError._MSG_TIMED_OUT))
    with pytest.raises(KafkaException, match="_MSG_TIMED_OUT"):
        measure({}, "t", VALUES)


def test_rates_and_percentiles_of_a_run() -> None:
    run = Run(records=100, seconds=2.0, requests=10, latencies=tuple(range(100)))
    assert (run.rate, run.requests_per_second) == (50, 5)
    assert (run.percentile(0), run.percentile(50), run.percentile(99), run.percentile(100)) == (0, 50, 99, 99)

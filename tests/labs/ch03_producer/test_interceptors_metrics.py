"""Interceptors and figures: each wrong answer gets its sentence, and the right ones pass."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace

import pytest
from confluent_kafka import Producer

from kafkalab import Cluster
from support import PATIENCE, Told, Verdict, create, put

pytestmark = pytest.mark.cluster

LAB = "03_interceptors"
METRICS = "03_metrics"


def intercepted(cluster: Cluster, headers: Sequence[list[tuple[str, bytes]]]) -> None:
    """Records with these headers."""
    create(cluster, "intercepted", 3)
    producer = Producer(cluster.client_config())
    for n, those in enumerate(headers):
        producer.produce("intercepted", b"{}", key=str(n), headers=those)
    assert producer.flush(PATIENCE) == 0


def numbered(*numbers: int) -> list[list[tuple[str, bytes]]]:
    return [[("number", str(number).encode())] for number in numbers]


def counters(sent: int, acknowledged: int) -> SimpleNamespace:
    return SimpleNamespace(sent=sent, acknowledged=acknowledged)


def test_interceptors_right_and_wrong_counters(clean: Cluster, verdict: Verdict) -> None:
    intercepted(clean, numbered(*range(1, 101)))
    verdict.passes(LAB, clean, interceptor=counters(100, 100))
    verdict.says("`interceptor` is still None", LAB, clean, interceptor=None)
    verdict.says("has no attribute acknowledged", LAB, clean, interceptor=SimpleNamespace(sent=100))
    verdict.says("sent is 0, and intercepted has 100 records", LAB, clean, interceptor=counters(0, 100))
    verdict.says("Does each call of on_acknowledgement count one?", LAB, clean, interceptor=counters(100, 99))


@pytest.mark.parametrize(
    ("headers", "says"),
    [
        ([], "intercepted is empty"),
        ([[]], "a record without a header called number"),
        ([[("nummer", b"1")]], "a record without a header called number"),
        ([[("number", b"1"), ("number", b"2")]], "A record has 2 headers called number"),
        ([[("number", b"\x01")]], "Is it written in digits, as bytes?"),
        (numbered(1, 2, 2, 3), "Two records have the number 2"),
        (numbered(0, 1, 2), "go from 0 to 2. Which one comes first, and how often?"),
        (numbered(1, 2, 4), "The numbers of 3 records go from 1 to 4"),
    ],
    ids=["untouched", "no header", "another name", "passed twice", "no digits", "no lock", "from zero", "a gap"],
)
def test_interceptors_wrong_headers(
    clean: Cluster, verdict: Verdict, headers: list[list[tuple[str, bytes]]], says: str
) -> None:
    intercepted(clean, headers)
    verdict.says(says, LAB, clean, interceptor=counters(len(headers), len(headers)))


# -- 03_metrics -----------------------------------------------------------------------------------------------------

SEEN = {0: [0, 1], 1: [0, 1], 2: [0, 1]}
LAGS = [1000, 3000, 0]
AWAY = (("stop", 2), ("restart", 2))
SENT = 3200


def reporter(*records: int) -> SimpleNamespace:
    return SimpleNamespace(history=[SimpleNamespace(records=number) for number in records])


def in_sync(producer: Producer, topic: str) -> dict[int, list[int]]:
    partitions = producer.list_topics(topic, timeout=10).topics[topic].partitions
    return {number: sorted(p.isrs) for number, p in partitions.items()}


RIGHT = {"in_sync": in_sync, "seen_down": SEEN, "lags": LAGS, "reporter": reporter(0, 10, 100, 200, SENT)}


@pytest.fixture(scope="module")
def hurt(cluster: Cluster) -> Cluster:
    """A cluster on which all of the lab was done: its broker 2 was away, and has caught up."""
    # The cluster's own default would do it as well, but stay for the tests that come after.
    create(cluster, "by-default", 3, min_insync_replicas="3")
    create(cluster, "stock-prices", 3, min_insync_replicas="2")
    cluster.stop_broker(2)
    cluster.wait_for(lambda v: v.out_of_sync("stock-prices", 2), "broker 2 out of the ISRs")
    put(cluster, "stock-prices", [(str(number), b"{}", -1) for number in range(SENT)], enable_idempotence=True)
    put(cluster, "stock-prices", [(None, b"{}", 0)])  # a producer that tries the topic once
    cluster.restart(2)
    cluster.wait_for(lambda v: v.in_sync("stock-prices"), "complete ISRs", PATIENCE)
    return cluster


def test_metrics_untouched(clean: Cluster, verdict: Verdict) -> None:
    for topic in ("by-default", "stock-prices"):
        create(clean, topic, 3)
    passed, said = verdict(METRICS, Told(clean), reporter=reporter(), seen_down=None, lags=[])
    assert not passed and "0 of 9" in said
    for sentence in ("of by-default is 1", "Broker 2 hasn't been down yet"):
        assert sentence in said
    passed, said = verdict(METRICS, Told(clean, *AWAY), reporter=reporter(), seen_down=None, lags=[])
    for sentence in ("`seen_down` is still None", "`lags` is empty", "stock-prices is empty", "figures 0 times"):
        assert sentence in said


def test_metrics_the_topic_was_not_changed(clean: Cluster, verdict: Verdict) -> None:
    for topic in ("by-default", "stock-prices"):
        create(clean, topic, 3, min_insync_replicas="3")
    verdict.says("of stock-prices is 3", METRICS, clean)


def test_metrics_right(hurt: Cluster, verdict: Verdict) -> None:
    verdict.passes(METRICS, hurt, **RIGHT)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ({"seen_down": {0: [0, 1]}}, "has the partitions [0]. Which partitions does stock-prices have?"),
        ({"seen_down": SEEN | {1: [0, 1, 2]}}, "Did you wait until the producer knew?"),
        ({"seen_down": SEEN | {1: [0]}}, "Which replicas were in sync?"),
        ({"lags": [0, 0, 0]}, "Was broker 2 down, and did the senders go on?"),
        ({"lags": [1000, 1000, 0]}, "Did you wait for 2000 more records in between?"),
        ({"lags": [1000, 9000, 0]}, "records from the time when broker 2 was away. What did you subtract"),
        ({"in_sync": lambda *_: SEEN}, "Which attribute has them?"),
        ({"in_sync": lambda *_: dict[str, object]()["isr"]}, "raised KeyError: 'isr'"),
        ({"lags": [1000, 3000, 40]}, "Were all ISRs complete, and had the senders stopped?"),
        ({"lags": [1000, 3000]}, "`lags` has 2 numbers"),
        ({"lags": [None, None, None]}, "Each item of `lags` should be a whole number, not None"),
        ({"reporter": None}, "`reporter` is still None"),
        ({"reporter": 5}, "should be the MetricsReporter of your producer"),
        ({"reporter": reporter(1, 2)}, "Which two settings does a producer need"),
        ({"reporter": reporter(0, 10, 100, 200, SENT - 1)}, "Who polls when the senders have stopped?"),
    ],
    ids=[
        "one partition", "asked too early", "one replica", "looked after the restart", "no more was sent", "made up", "always the same",
        "no ISR", "senders go on",
        "two lags", "no numbers", "no reporter", "another thing", "no interval", "not to the end",
    ],
)  # fmt: skip
def test_metrics_wrong_answers(hurt: Cluster, verdict: Verdict, answer: dict[str, object], says: str) -> None:
    verdict.says(says, METRICS, hurt, **RIGHT | answer)


def test_metrics_without_idempotence(hurt: Cluster, verdict: Verdict) -> None:
    put(hurt, "stock-prices", [("IBM", b"{}", 0)])
    verdict.says("came in batches without a producer id. Which setting gives a producer one?", METRICS, hurt, **RIGHT)


def test_metrics_broker_is_still_away(hurt: Cluster, verdict: Verdict) -> None:
    hurt.stop_broker(2)
    hurt.wait_for(lambda v: v.out_of_sync("stock-prices", 2), "broker 2 out of the ISRs")
    verdict.says("Broker 2 is stopped. Did you restart it?", METRICS, hurt, **RIGHT)

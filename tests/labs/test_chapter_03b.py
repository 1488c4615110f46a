"""The labs of chapter 03 on batches, interceptors and figures: each wrong answer is told apart, with a sentence that helps."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from types import SimpleNamespace

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from kafkalab import Cluster
from kafkalab.distribution import tools_dir

from .support import Verdict

pytestmark = pytest.mark.cluster


def create(cluster: Cluster, *topics: str, partitions: int = 1, **config: str) -> None:
    admin = AdminClient(cluster.client_config())
    config = {name.replace("_", "."): value for name, value in config.items()}
    for created in admin.create_topics([NewTopic(topic, partitions, 3, config=config) for topic in topics]).values():
        created.result()
    cluster.wait_for(lambda v: all(len(p.isr) == 3 for topic in topics for p in v.topics[topic]), "the topics")


def tool(*command: str) -> str:
    """What one of Kafka's tools prints."""
    name, *arguments = command
    return subprocess.run([str(tools_dir() / name), *arguments], check=True, capture_output=True, text=True).stdout


# -- 03_batching ----------------------------------------------------------------------------------------------------

OFF = {"batch.num.messages": 1}
WAITING = {"linger.ms": 300}
SMALL, LARGE = {**WAITING, "batch.size": 16384}, {**WAITING, "batch.size": 65536}
PRICES = [f'{{"cents": {n % 100}, "dollars": {n % 50 + 50}, "name": "IBM"}}'.encode() for n in range(3000)]
NOISE = [os.urandom(len(price)) for price in PRICES]
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")

STEADY = {
    "steady-1": OFF,
    "steady-2": {**WAITING, "batch.num.messages": 2},
    "steady-3": {**WAITING, "batch.num.messages": 10},
    "steady-4": {**WAITING, "batch.num.messages": 40},
}
FLOOD = {"flood-1": OFF, "flood-2": SMALL, "flood-3": SMALL, "flood-4": LARGE}


def fill(cluster: Cluster, topic: str, settings: dict[str, object], values: Sequence[bytes]) -> None:
    """Make a topic and send these values with these settings."""
    create(cluster, topic)
    producer = Producer({**cluster.client_config(), **settings, "queue.buffering.max.messages": 200_000})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(30) == 0


def rungs(cluster: Cluster, loads: dict[str, dict[str, object]]) -> None:
    for topic, settings in loads.items():
        fill(cluster, topic, settings, PRICES[:80] if topic == "flood-1" or topic.startswith("steady") else PRICES)


def read_batches(cluster: Cluster) -> dict[str, list[tuple[int, int, str]]]:
    """Batches of the rungs, as Kafka's own tool reads them."""
    copy = cluster.copy_log_dir(0)
    segments = [str(copy / f"{topic}-0" / f"{0:020}.log") for topic in (*STEADY, *FLOOD)]
    found: dict[str, list[tuple[int, int, str]]] = {}
    for line in tool("kafka-dump-log", "--files", ",".join(segments)).splitlines():
        if begin := re.match(r"Dumping .*/(\S+)-0/", line):
            found[begin[1]] = []
        elif batch := re.search(r" count: (\d+) .* size: (\d+) .* compresscodec: (\w+)", line):
            found[next(reversed(found))].append((int(batch[1]), int(batch[2]), batch[3]))
    return found


def test_batching_untouched(clean: Cluster, verdict: Verdict) -> None:
    create(clean, *STEADY, *FLOOD, *[f"{kind}-{codec}" for kind in ("prices", "noise") for codec in CODECS], "fast")
    passed, said = verdict("03_batching", clean, batches={})
    assert not passed and "steady-1 is empty" in said and "fast has 0 records of 100000" in said
    assert "0 of 6" in said


def test_batching_right(clean: Cluster, verdict: Verdict) -> None:
    rungs(clean, STEADY | FLOOD)
    for codec in CODECS:
        for kind, values in (("prices", PRICES), ("noise", NOISE)):
            fill(clean, f"{kind}-{codec}", {**LARGE, "compression.type": codec}, values)
    fill(clean, "fast", LARGE, [b"x"] * 100_000)
    found = read_batches(clean)
    verdict.passes("03_batching", clean, batches=found)

    for answer, sentence in (
        (None, "Give check() batches="),
        ([1, 2], "batches should be a dictionary"),
        (found | {"flood-2": None}, "a list of (count, size, codec) for flood-2"),
        (found | {"flood-2": found["flood-2"][1:]}, "Did you read before you sent anew?"),
        (found | {"flood-2": [(str(c), s, k) for c, s, k in found["flood-2"]]}, "Batch 1 of flood-2"),
        (found | {"flood-2": [(s, c, k) for c, s, k in found["flood-2"]]}, "Batch 1 of flood-2"),
    ):
        verdict.says(sentence, "03_batching", clean, batches=answer)


def test_batching_off_means_one_record(clean: Cluster, verdict: Verdict) -> None:
    rungs(clean, {"steady-1": {**WAITING, "batch.size": 1000}, "flood-1": OFF})
    verdict.says("though batching is off there. Which of librdkafka's settings", "03_batching", clean)


def test_batching_no_rung_waits_longer(clean: Cluster, verdict: Verdict) -> None:
    rungs(clean, STEADY | {"steady-4": STEADY["steady-3"]})
    verdict.says("How long does each wait for company?", "03_batching", clean)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"flood-2": LARGE}, "What limits a batch to 16384 bytes?"),
        ({"flood-3": WAITING}, "What limits a batch to 16384 bytes?"),
        ({"flood-4": SMALL}, "How many bytes may a batch of the last rung have?"),
        ({"flood-4": WAITING}, "What limits a batch to 65536 bytes?"),
    ],
    ids=["16 KiB is 64 KiB", "no size given", "64 KiB is 16 KiB", "none given on the last"],
)
def test_batching_sizes(clean: Cluster, verdict: Verdict, wrong: dict[str, dict[str, object]], says: str) -> None:
    rungs(clean, FLOOD | wrong)
    verdict.says(says, "03_batching", clean)


@pytest.mark.parametrize(
    ("topic", "settings", "values", "says"),
    [
        ("prices-lz4", {**LARGE, "compression.type": "gzip"}, PRICES, "prices-lz4 has batches with the codec 'gzip'"),
        ("prices-none", {**LARGE, "compression.type": "zstd"}, PRICES, "prices-none has batches with the codec 'zstd'"),
        ("prices-zstd", {**LARGE, "compression.type": "zstd"}, NOISE, "zstd takes almost nothing off the prices"),
        ("noise-gzip", {**LARGE, "compression.type": "gzip"}, PRICES, "gzip makes the noise smaller"),
    ],
    ids=["another codec", "a codec for none", "noise for prices", "prices for noise"],
)
def test_batching_codecs(
    clean: Cluster, verdict: Verdict, topic: str, settings: dict[str, object], values: list[bytes], says: str
) -> None:
    for codec in CODECS:
        for kind, right in (("prices", PRICES), ("noise", NOISE)):
            given = (settings, values) if topic == f"{kind}-{codec}" else ({**LARGE, "compression.type": codec}, right)
            fill(clean, f"{kind}-{codec}", *given)
    verdict.says(says, "03_batching", clean)


@pytest.mark.parametrize(
    ("records", "says"),
    [(10_000, "finds the queue full"), (100_500, "fast has 100500 records instead of")],
    ids=["refused records are lost", "all are sent again"],
)
def test_batching_fast(clean: Cluster, verdict: Verdict, records: int, says: str) -> None:
    fill(clean, "fast", LARGE, [b"x"] * records)
    verdict.says(says, "03_batching", clean)


# -- 03_interceptors ------------------------------------------------------------------------------------------------


def intercepted(cluster: Cluster, headers: Sequence[list[tuple[str, bytes]]]) -> None:
    """Records with these headers."""
    create(cluster, "intercepted", partitions=3)
    producer = Producer(cluster.client_config())
    for n, those in enumerate(headers):
        producer.produce("intercepted", b"{}", key=str(n), headers=those)
    assert producer.flush(20) == 0


def numbered(*numbers: int) -> list[list[tuple[str, bytes]]]:
    return [[("number", str(number).encode())] for number in numbers]


def counters(sent: int, acknowledged: int) -> SimpleNamespace:
    return SimpleNamespace(sent=sent, acknowledged=acknowledged)


def test_interceptors_right_and_wrong_counters(clean: Cluster, verdict: Verdict) -> None:
    intercepted(clean, numbered(*range(1, 101)))
    verdict.passes("03_interceptors", clean, interceptor=counters(100, 100))
    verdict.says("Give check() interceptor=", "03_interceptors", clean, interceptor=None)
    verdict.says("has no attribute acknowledged", "03_interceptors", clean, interceptor=SimpleNamespace(sent=100))
    verdict.says("sent is 0, and 100 records", "03_interceptors", clean, interceptor=counters(0, 100))
    verdict.says("Does each call of on_acknowledgement count once?", "03_interceptors", clean, interceptor=counters(100, 99))


@pytest.mark.parametrize(
    ("headers", "says"),
    [
        ([], "intercepted is empty"),
        ([[]], "a record without a header called number"),
        ([[("nummer", b"1")]], "a record without a header called number"),
        ([[("number", b"1"), ("number", b"2")]], "a record with 2 numbers"),
        ([[("number", b"\x01")]], "It should be digits"),
        (numbered(1, 2, 2, 3), "Two records have the number 2"),
        (numbered(0, 1, 2), "They should begin with 1"),
        (numbered(1, 2, 4), "The numbers of 3 records go from 1 to 4"),
    ],
    ids=["untouched", "no header", "another name", "passed twice", "no digits", "no lock", "from zero", "a gap"],
)
def test_interceptors_wrong_headers(
    clean: Cluster, verdict: Verdict, headers: list[list[tuple[str, bytes]]], says: str
) -> None:
    intercepted(clean, headers)
    verdict.says(says, "03_interceptors", clean, interceptor=counters(len(headers), len(headers)))


# -- 03_metrics -----------------------------------------------------------------------------------------------------

SEEN = {0: [0, 1], 1: [0, 1], 2: [0, 1]}
LAGS = [1000, 3000, 0]
SENT = 300


def reporter(*records: int) -> SimpleNamespace:
    return SimpleNamespace(history=[SimpleNamespace(records=number) for number in records])


RIGHT = {"seen_down": SEEN, "lags": LAGS, "reporter": reporter(0, 10, 100, 200, SENT)}


@pytest.fixture(scope="module")
def hurt() -> Iterator[Cluster]:
    """A cluster on which all of the lab was done: its broker 2 was away, and has caught up."""
    with Cluster(brokers=3, backend="local") as cluster:
        address = ("--bootstrap-server", cluster.bootstrap_servers)
        default = ("--entity-type", "brokers", "--entity-default", "--add-config", "min.insync.replicas=3")
        tool("kafka-configs", *address, "--alter", *default)
        create(cluster, "by-default", partitions=3)
        create(cluster, "stock-prices", partitions=3, min_insync_replicas="2")
        cluster.stop_broker(2)
        cluster.wait_for(lambda v: all(2 not in p.isr for p in v.topics["stock-prices"]), "broker 2 out of the ISRs")
        producer = Producer(cluster.client_config())
        for number in range(SENT):
            producer.produce("stock-prices", b"{}", key=str(number))
        assert producer.flush(20) == 0
        cluster.restart(2)
        cluster.wait_for(lambda v: all(len(p.isr) == 3 for p in v.topics["stock-prices"]), "complete ISRs", 60)
        yield cluster


def test_metrics_untouched(clean: Cluster, verdict: Verdict) -> None:
    create(clean, "by-default", "stock-prices", partitions=3)
    passed, said = verdict("03_metrics", clean, reporter=reporter(), seen_down=None, lags=[])
    assert not passed and "0 of 6" in said
    for sentence in ("of by-default is 1", "Broker 2 was not shut down yet", "Give check() seen_down=", "told 0 times"):
        assert sentence in said
    assert "lags should be a list of three numbers" in said and "stock-prices is empty" in said


def test_metrics_the_topic_was_not_changed(clean: Cluster, verdict: Verdict) -> None:
    create(clean, "by-default", "stock-prices", partitions=3, min_insync_replicas="3")
    verdict.says("of stock-prices is 3", "03_metrics", clean)


def test_metrics_right(hurt: Cluster, verdict: Verdict) -> None:
    verdict.passes("03_metrics", hurt, **RIGHT)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ({"seen_down": {0: [0, 1]}}, "should have the partitions 0, 1 and 2"),
        ({"seen_down": SEEN | {1: [0, 1, 2]}}, "Wait until the producer knows, too"),
        ({"seen_down": SEEN | {1: [0]}}, "Which replicas were in sync?"),
        ({"lags": [0, 0, 0]}, "Was broker 2 down, and were records sent meanwhile?"),
        ({"lags": [1000, 1000, 0]}, "Another 2000 records should lie between them"),
        ({"lags": [1000, 3000, 40]}, "Were all ISRs complete, and had the senders stopped?"),
        ({"lags": [1000, 3000]}, "lags should be a list of three numbers"),
        ({"lags": [None, None, None]}, "lags should be a list of three numbers"),
        ({"reporter": None}, "Give check() reporter="),
        ({"reporter": 5}, "should be the MetricsReporter of your producer"),
        ({"reporter": reporter(1, 2)}, "Which two settings does a producer need"),
        ({"reporter": reporter(0, 10, 100, 200, SENT - 1)}, "Who polls when the senders have stopped?"),
    ],
    ids=[
        "one partition", "asked too early", "one replica", "looked after the restart", "no more was sent", "senders go on",
        "two lags", "no numbers", "no reporter", "another thing", "no interval", "not to the end",
    ],
)  # fmt: skip
def test_metrics_wrong_answers(hurt: Cluster, verdict: Verdict, answer: dict[str, object], says: str) -> None:
    verdict.says(says, "03_metrics", hurt, **RIGHT | answer)


def test_metrics_broker_is_still_away(hurt: Cluster, verdict: Verdict) -> None:
    hurt.stop_broker(2)
    hurt.wait_for(lambda v: all(2 not in p.isr for p in v.topics["stock-prices"]), "broker 2 out of the ISRs")
    passed, said = verdict("03_metrics", hurt, **RIGHT)
    assert not passed and "Broker 2 is stopped. It should be back." in said and "lacks broker 2" in said

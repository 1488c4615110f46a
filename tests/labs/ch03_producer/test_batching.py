"""Batches and codecs: each wrong answer gets its sentence, and the right one passes."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping, Sequence

import pytest
from confluent_kafka import KafkaError, KafkaException, Message, Producer

from kafkalab import Cluster
from kafkalab.distribution import tools_dir
from support import PATIENCE, Verdict, create

pytestmark = pytest.mark.cluster

LAB = "03_batching"
OFF = {"batch.num.messages": 1}
WAITING = {"linger.ms": 300}
SMALL, LARGE = {**WAITING, "batch.size": 16384}, {**WAITING, "batch.size": 65536}
PRICES = [f'{{"cents": {n % 100}, "dollars": {n % 50 + 50}, "name": "IBM"}}'.encode() for n in range(3000)]
NOISE = [os.urandom(len(price)) for price in PRICES]
DATA = {"prices": PRICES, "noise": NOISE}
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")

STEADY = {
    "steady-1": OFF,
    "steady-2": {**WAITING, "batch.num.messages": 2},
    "steady-3": {**WAITING, "batch.num.messages": 10},
    "steady-4": {**WAITING, "batch.num.messages": 40},
}
FLOOD = {"flood-1": OFF, "flood-2": SMALL, "flood-3": SMALL, "flood-4": LARGE}


def create_all(cluster: Cluster, topics: Sequence[str]) -> None:
    """Create topics of one partition."""
    for topic in topics:
        create(cluster, topic, 1)


def fill(cluster: Cluster, topic: str, settings: Mapping[str, object], values: Sequence[bytes]) -> None:
    """Send these values with these settings."""
    producer = Producer({**cluster.client_config(), **settings, "queue.buffering.max.messages": 200_000})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(PATIENCE) == 0


def send_batch(producer: Producer, topic: str, values: Sequence[bytes]) -> None:
    """Another right answer: all records in one call, and an exception of its own."""
    errors: list[KafkaError] = []

    def report(error: KafkaError | None, _: Message) -> None:
        if error:
            errors.append(error)

    producer.produce_batch(topic, [{"value": value, "callback": report} for value in values])
    producer.flush()
    if errors:
        raise RuntimeError(f"{len(errors)} records failed, the first because of {errors[0].str()}")


def send_fast(producer: Producer, topic: str, values: Sequence[bytes]) -> None:
    """A right answer."""
    errors: list[object] = []
    for value in values:
        producer.produce(topic, value, on_delivery=lambda error, _: errors.append(error) if error else None)
    producer.flush()
    if errors:
        raise KafkaException(errors[0])


def dump_log(segments: Sequence[str]) -> str:
    """What Kafka's own tool prints about these segments."""
    command = [str(tools_dir() / "kafka-dump-log"), "--files", ",".join(segments)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def read_batches(cluster: Cluster) -> dict[str, list[tuple[int, int, str]]]:
    """Batches of the rungs, as Kafka's own tool reads them."""
    copy = cluster.disk.copy_log_dir(0, *STEADY, *FLOOD)
    segments = [str(copy / f"{topic}-0" / f"{0:020}.log") for topic in (*STEADY, *FLOOD)]
    found: dict[str, list[tuple[int, int, str]]] = {}
    for line in dump_log(segments).splitlines():
        if begin := re.match(r"Dumping .*/(\S+)-0/", line):
            found[begin[1]] = []
        elif batch := re.search(r" count: (\d+) .* size: (\d+) .* compresscodec: (\w+)", line):
            found[next(reversed(found))].append((int(batch[1]), int(batch[2]), batch[3]))
    return found


def test_batching_untouched(clean: Cluster, verdict: Verdict) -> None:
    create_all(clean, [*STEADY, *FLOOD, "fast"])
    passed, said = verdict(LAB, clean, batches={})
    assert not passed and "steady-1 is empty" in said and "fast has 0 records, not 100000" in said
    assert "0 of 7" in said


def test_batching_half_done_then_right_then_spoiled(clean: Cluster, verdict: Verdict) -> None:
    create_all(clean, [*STEADY, *FLOOD, *[f"{kind}-{codec}" for kind in DATA for codec in CODECS], "fast"])

    # Almost done: the last rungs are as the ones before, and the fast way lost what the queue refused.
    for topic, settings in {**STEADY, "steady-4": STEADY["steady-3"]}.items():
        fill(clean, topic, settings, PRICES[:80])
    for topic, settings in {**FLOOD, "flood-4": SMALL}.items():
        fill(clean, topic, settings, PRICES[:80] if settings == OFF else PRICES)
    for codec in CODECS:
        for kind, values in DATA.items():
            fill(clean, f"{kind}-{codec}", {**LARGE, "compression.type": codec}, values)
    fill(clean, "fast", LARGE, [b"x"] * 10_000)
    passed, said = verdict(LAB, clean, batches=None, send_fast=send_fast)
    assert not passed
    for sentence in (
        "How long does each wait for more records?",
        "How many bytes may a batch of the last rung have?",
        "finds the queue full",
    ):
        assert sentence in said, said

    fill(clean, "steady-4", STEADY["steady-4"], PRICES[:800])
    fill(clean, "flood-4", LARGE, PRICES)
    fill(clean, "fast", LARGE, [b"x"] * 90_000)
    # A producer that was held up sends its last price alone. It gets no smaller, so librdkafka leaves it as it is.
    fill(clean, "prices-zstd", {**LARGE, "compression.type": "zstd"}, PRICES[:1])
    found = read_batches(clean)
    verdict.passes(LAB, clean, batches=found, send_fast=send_fast)
    for wrong, sentence in (
        (lambda producer, topic, values: producer.flush(), "send_fast produced nothing"),
        (lambda producer, topic, values: [producer.produce(topic, value) for value in values], "as if Kafka had them"),
        (lambda producer, topic, values: 1 / 0, "send_fast raised ZeroDivisionError"),
        (
            lambda producer, topic, values: producer.produce_batch(topic, [{"value": value} for value in values]),
            "returned as if",
        ),
    ):
        verdict.says(sentence, LAB, clean, batches=found, send_fast=wrong)
    as_text = {topic: [(str(c), str(s), k) for c, s, k in rows] for topic, rows in found.items()}
    verdict.passes(LAB, clean, batches=as_text, send_fast=send_fast)
    verdict.passes(LAB, clean, batches=found, send_fast=send_batch)
    for answer, sentence in (
        (None, "`batches` is still None"),
        ([1, 2], "`batches` should be a dictionary"),
        ({topic: rows for topic, rows in found.items() if topic != "flood-2"}, "`batches` has no 'flood-2'"),
        (found | {"flood-2": None}, "`batches['flood-2']` should be a list"),
        (found | {"flood-2": found["flood-2"][1:]}, "Did you read before you sent again?"),
        (found | {"flood-2": [(f"{c}?", s, k) for c, s, k in found["flood-2"]]}, "[0][0]` should be a whole number, not text"),
        (found | {"flood-2": [(s, c, k) for c, s, k in found["flood-2"]]}, "Batch 1 of flood-2"),
    ):
        verdict.says(sentence, LAB, clean, batches=answer, send_fast=send_fast)

    # Each step spoils something that the check looks at before what is spoiled already.
    zstd, gzip = {**LARGE, "compression.type": "zstd"}, {**LARGE, "compression.type": "gzip"}
    steps: list[list[tuple[str, Mapping[str, object], list[bytes], str]]] = [
        [
            ("steady-1", {**WAITING, "batch.size": 1000}, PRICES[:80], "though batching is off there. Which of librdkafka's"),
            ("flood-4", WAITING, PRICES, "What limits a batch to 65536 bytes?"),
            ("prices-zstd", zstd, NOISE * 4, "zstd takes almost nothing off the prices"),
            ("fast", LARGE, [b"x"] * 500, "fast has 100500 records, not 100000"),
        ],
        [
            ("flood-3", WAITING, PRICES, "flood-3 has a batch of"),
            ("noise-gzip", gzip, PRICES * 4, "gzip makes the records of noise-gzip smaller"),
        ],
        [
            ("flood-2", LARGE, PRICES, "flood-2 has a batch of"),
            ("prices-lz4", gzip, PRICES, "prices-lz4 has batches with the codec 'gzip'"),
        ],
        [("prices-none", zstd, PRICES, "prices-none has batches with the codec 'zstd'")],
    ]
    for step in steps:
        for topic, spoilt, values, _ in step:
            fill(clean, topic, spoilt, values)
        passed, said = verdict(LAB, clean, batches=found, send_fast=send_fast)
        assert not passed
        for topic, _, _, sentence in step:
            assert sentence in said, (topic, said)

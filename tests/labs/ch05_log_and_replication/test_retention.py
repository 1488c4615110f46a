"""Segments, indexes and expired records: each wrong answer gets its sentence, and right ones pass."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer

from kafkalab import Cluster, wait_until
from kafkalab.cluster.offsets import watermarks
from support import PATIENCE, Verdict, create

pytestmark = pytest.mark.cluster

SEGMENTS, RETENTION = "05_segments", "05_retention"
TOPIC, EVENTS = "readings", "events"


def rounds(cluster: Cluster, *sizes: int, copies: int = 3, apart: int = 2000, together: bool = False, **config: str) -> None:
    """The topic, with so many records for each partition in each round, which are so many milliseconds apart."""
    create(cluster, TOPIC, 3, copies, **{"segment_ms": "1000", "retention_ms": "-1", "index_interval_bytes": "1", **config})
    producer, now = Producer(cluster.client_config(**{"linger.ms": 500 if together else 0})), int(time.time() * 1000)
    for number, size in enumerate(sizes):
        for record in range(3 * size):
            producer.produce(TOPIC, "21.5 °C", partition=record % 3, timestamp=now + apart * number)
            if not together:
                assert producer.flush(PATIENCE) == 0
        assert producer.flush(PATIENCE) == 0


def names(*offsets: int) -> list[str]:
    return [f"{offset:020d}.log" for offset in offsets]


def position(cluster: Cluster, offset: int) -> int:
    reader = cluster.disk.log_reader(TOPIC, 1)
    [at] = [b.position for s in reader.read().segments for b in s.batches if b.base_offset == offset]
    reader.close()
    return at


def untouched(cluster: Cluster) -> None:
    pass


# -- 05_segments ------------------------------------------------------------------------------------------------------


def test_segments_right(cleaning: Cluster, verdict: Verdict) -> None:
    rounds(cleaning, 5, 3, 2)
    right = {"names": names(0, 5, 8), "position": position(cleaning, 7)}
    verdict.passes(SEGMENTS, cleaning, **right)
    paths = [Path("/data/readings-1", name) for name in names(0, 5, 8)]
    verdict.passes(SEGMENTS, cleaning, names=paths, position=float(position(cleaning, 7)))
    verdict.passes(SEGMENTS, cleaning, names=list(map(str, paths)), position=position(cleaning, 7))
    verdict.passes(SEGMENTS, cleaning, names=tuple(names(0, 5, 8)), position=str(position(cleaning, 7)))
    for wrong, sentence in (
        ({"names": []}, "`names` is empty"),
        ({"names": names(0, 5)}, "also has a file 00000000000000000008.log"),
        ({"names": names(0, 5, 7, 8)}, "has no file '00000000000000000007.log'"),
        ({"names": names(8, 5, 0)}, "in another order"),
        ({"names": ["0", "5", "8"]}, "has no file '0'. The lab asks for the whole names"),
        ({"position": None}, "`position` is still None"),
        ({"position": position(cleaning, 6)}, "offset 6 begins"),
        ({"position": 1}, "no batch of that segment begins"),
        ({"position": "7"}, "no batch of that segment begins"),
        ({"position": "offset: 7"}, "`position` should be a whole number, not text"),
    ):
        verdict.says(sentence, SEGMENTS, cleaning, **{**right, **wrong})


def test_segments_of_other_sizes(cleaning: Cluster, verdict: Verdict) -> None:
    rounds(cleaning, 1, 6, 2, 1, index_interval_bytes="4096")  # found in the dump of the .log file
    verdict.passes(SEGMENTS, cleaning, names=names(0, 1, 7, 9), position=position(cleaning, 7))


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (untouched, "There is no topic 'readings'"),
        (lambda c: rounds(c, 5, 3, 2, copies=1), "has 1 replica, not 3"),
        (lambda c: rounds(c, 5, 3, 2, apart=0), "Partition 0 has 1 segment; the lab asks for three"),
        (lambda c: rounds(c, 5, 5), "Partition 0 has 2 segments; the lab asks for three"),
        (lambda c: rounds(c, 5, 3, 2, together=True), "Offset 7 is inside a batch"),
        (lambda c: rounds(c, 1, 1, 1), "Partition 0 has 3 records. How many does each partition get?"),
    ],
    ids=["untouched", "one_copy", "same_time", "two_rounds", "one_batch", "too_few"],
)
def test_segments_wrong(cleaning: Cluster, verdict: Verdict, build: Callable[[Cluster], None], sentence: str) -> None:
    build(cleaning)
    verdict.says(sentence, SEGMENTS, cleaning, names=names(0, 5, 8), position=76)


# -- 05_retention -----------------------------------------------------------------------------------------------------


def events(cluster: Cluster, records: int = 3, age: int = 0, **config: str) -> None:
    """The topic, with so many records, which are so many milliseconds old."""
    create(cluster, EVENTS, 1, 3, **{"retention_ms": "3000", "segment_ms": "1000", **config})
    producer, now = Producer(cluster.client_config()), int(time.time() * 1000)
    for number in range(records):
        producer.produce(EVENTS, f"event {number}", timestamp=now - age)
    assert producer.flush(PATIENCE) == 0


def expired(cluster: Cluster, records: int = 3) -> None:
    wait_until(lambda: watermarks(cluster, EVENTS)[0] == (records, records), PATIENCE, "the records to expire")


def test_retention_right(cleaning: Cluster, verdict: Verdict) -> None:
    events(cleaning)
    expired(cleaning)
    verdict.passes(RETENTION, cleaning)


def test_retention_of_old_records_in_an_active_segment(cleaning: Cluster, verdict: Verdict) -> None:
    events(cleaning, age=60_000)
    expired(cleaning)
    verdict.passes(RETENTION, cleaning)


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (untouched, "There is no topic 'events'"),
        (lambda c: events(c, retention_ms="604800000"), "The retention.ms of events is 604800000"),
        (lambda c: events(c, retention_ms="-1"), "The retention.ms of events is -1"),
        (lambda c: events(c, segment_ms="604800000"), "The segment.ms of events is 604800000"),
        (lambda c: create(c, EVENTS, 1, cleanup_policy="compact"), "The cleanup.policy of events is compact"),
        (lambda c: events(c, records=0), "Partition 0 of events never got a record"),
        (lambda c: events(c, age=-60_000), "still holds offsets 0 to 2"),
    ],
    ids=["untouched", "a_week", "for_ever", "never_rolled", "compacted", "empty", "too_early"],
)
def test_retention_wrong(cleaning: Cluster, verdict: Verdict, build: Callable[[Cluster], None], sentence: str) -> None:
    build(cleaning)
    verdict.says(sentence, RETENTION, cleaning)

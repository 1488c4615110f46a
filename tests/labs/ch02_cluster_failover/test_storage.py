"""Folders and segments: each wrong answer gets its sentence, and the right one passes."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from confluent_kafka import Producer

from kafkacourse.datasets import customers
from kafkalab import Cluster
from support import PATIENCE, Doctored, Verdict, create, put, spread

pytestmark = pytest.mark.cluster

LINES = [",".join(customer) for customer in customers()[:60]]
DAY = 24 * 60 * 60 * 1000


def untouched(cluster: Cluster) -> None:
    pass


# -- 02_topic1 --------------------------------------------------------------------------------------------------------


def test_topic1_right(clean: Cluster, verdict: Verdict) -> None:
    create(clean, "topic1", 3, 1)
    spread(clean, "topic1", *LINES[:6])
    verdict.passes("02_topic1", clean)


def topic1_on_one_broker(cluster: Cluster) -> None:
    create(cluster, "topic1", 3, placed=[[1], [1], [1]])


def topic1_in_one_partition(cluster: Cluster) -> None:
    create(cluster, "topic1", 3, 1)
    put(cluster, "topic1", [(None, line, 2) for line in LINES[:6]])


def topic1_sent_twice(cluster: Cluster) -> None:
    create(cluster, "topic1", 3, 1)
    spread(cluster, "topic1", *LINES[:6], *LINES[:6])


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (untouched, "There is no topic 'topic1'"),
        (lambda cluster: create(cluster, "topic1", 3, 3), "has 3 replicas, not 1"),
        (topic1_on_one_broker, "Broker 1 has 3 of the 3 partitions"),
        (topic1_in_one_partition, "Partition 0 got 0 records"),
        (topic1_sent_twice, "Partition 0 got 4 records"),
    ],
    ids=["untouched", "replicated", "on_one_broker", "in_one_partition", "sent_twice"],
)
def test_topic1_wrong(clean: Cluster, verdict: Verdict, build: Callable[[Cluster], None], sentence: str) -> None:
    build(clean)
    verdict.says(sentence, "02_topic1", clean)


# -- 02_storage -------------------------------------------------------------------------------------------------------


def rounds(cluster: Cluster, *ages: int, **config: str) -> None:
    """The topic, with a round of 15 records of each age in days."""
    create(cluster, "customers-new", 3, **{"retention_ms": "-1", **config})
    producer, now = Producer(cluster.client_config()), int(time.time() * 1000)
    for number, age in enumerate(ages):
        for index in range(15 * number, 15 * number + 15):
            producer.produce("customers-new", LINES[index], partition=index % 3, timestamp=now - age * DAY)
        assert producer.flush(PATIENCE) == 0


def test_storage_right(clean: Cluster, verdict: Verdict) -> None:
    rounds(clean, 16, 8, 0)
    segment, address = "00000000000000000005.log", ("customers-new", 2, 10)
    verdict.passes("02_storage", clean, segment=segment, address=address)
    verdict.passes("02_storage", clean, segment=segment, address=["customers-new", np.int64(2), np.int64(10)])
    verdict.passes("02_storage", clean, segment=Path("customers-new-2") / segment, address=address)
    verdict.says("lacks broker", "02_storage", Doctored(clean, "customers-new", lambda p: replace(p, isr=p.isr[:2])))

    for given, sentence in (
        (None, "`segment` is still None"),
        ("00000000000000000007.log", "Partition 2 has no file '00000000000000000007.log'"),
        ("5.log", "Partition 2 has no file '5.log'"),
        ("00000000000000000010.log", "Offset 7 isn't in that file"),
        ("00000000000000000000.log", "Offset 7 isn't in that file"),
    ):
        verdict.says(sentence, "02_storage", clean, segment=given, address=address)
    for place, sentence in (
        (None, "`address` is still None"),
        (("customers-new", 10), "a tuple of 3, not of 2"),
        (("customers-new", 10, 2), "There is no record in partition 10 at offset 2"),
        (("customers-new", 2, 9), "The record at that address is another customer: 'C00030"),
        (("customers-neu", 2, 10), "The lab asks for a record in customers-new"),
    ):
        verdict.says(sentence, "02_storage", clean, segment=segment, address=place)


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (untouched, "There is no topic 'customers-new'"),
        (lambda cluster: create(cluster, "customers-new", 3, 1), "has 1 replica, not 3"),
        (lambda cluster: rounds(cluster, 16, 8, 0, retention_ms="604800000"), "retention.ms is 604800000, so Kafka may delete"),
        (lambda cluster: rounds(cluster, 16, 8, 0, segment_ms="60000"), "segment.ms is 60000. Leave it at Kafka's default"),
        (lambda cluster: rounds(cluster, 0, 0, 0), "Partition 0 has 1 segment; the lab asks for three"),
        (lambda cluster: rounds(cluster, 12, 6, 0), "Partition 0 has 2 segments; the lab asks for three"),
        (lambda cluster: rounds(cluster, 24, 16, 8, 0), "Partition 0 has 4 segments; the lab asks for three"),
    ],
    ids=["untouched", "one_copy", "forgets", "a_shorter_week", "in_one_round", "less_than_a_week_apart", "one_round_more"],
)
def test_storage_wrong(clean: Cluster, verdict: Verdict, build: Callable[[Cluster], None], sentence: str) -> None:
    build(clean)
    verdict.says(sentence, "02_storage", clean)

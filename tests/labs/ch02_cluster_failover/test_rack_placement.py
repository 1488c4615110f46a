"""Thirty replicas on two racks: each wrong answer gets its sentence, and the right one passes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from kafkacourse.ch02_cluster_failover.rack_placement import placement_by_the_rule
from kafkalab import Cluster
from support import BACKEND, Verdict, create, delete

pytestmark = pytest.mark.cluster

LAB = "02_rack_placement"
RIGHT = placement_by_the_rule()
IN_ORDER_OF_ID = {p: [(p + step) % 6 for step in range(3)] for p in range(10)}  # racks are not looked at
IN_TURN = [0, 3, 1, 4, 2, 5]


@pytest.fixture(scope="module")
def six() -> Iterator[Cluster]:
    with Cluster(brokers=6, racks=["R1"] * 3 + ["R2"] * 3, backend=BACKEND) as cluster:
        yield cluster


def test_the_rule_gives_the_totals_that_the_lab_tells() -> None:
    placed = [broker for brokers in RIGHT.values() for broker in brokers]
    assert [placed.count(broker) for broker in IN_TURN] == [4, 5, 6, 6, 5, 4]


def test_topics(six: Cluster, verdict: Verdict) -> None:
    verdict.says("There is no topic 'by-hand'", LAB, six, placement=RIGHT)
    create(six, "by-hand", 10, 3)
    verdict.says("Who chose its brokers, you or Kafka?", LAB, six, placement=RIGHT)
    delete(six, "by-hand")
    create(six, "by-hand", 10, placed=list(RIGHT.values()))
    create(six, "by-kafka", 10, placed=list(IN_ORDER_OF_ID.values()))
    verdict.says("Partition 0 of by-kafka is on one rack only", LAB, six, placement=RIGHT)
    delete(six, "by-kafka")
    create(six, "by-kafka", 10, 2)
    verdict.says("has 2 replicas, not 3", LAB, six, placement=RIGHT)
    delete(six, "by-kafka")
    create(six, "by-kafka", 10, 3)
    verdict.passes(LAB, six, placement=RIGHT)
    verdict.passes(LAB, six, placement={np.int64(p): tuple(np.array(brokers)) for p, brokers in RIGHT.items()})


@pytest.mark.parametrize(
    ("placement", "sentence"),
    [
        (None, "`placement` is still None"),
        ({}, "`placement` is empty"),
        (list(RIGHT.values()), "`placement` should be a dictionary"),
        ({p: brokers for p, brokers in RIGHT.items() if p < 6}, "It has 6 partitions; the topic has partitions 0 to 9"),
        ({p: brokers[:2] for p, brokers in RIGHT.items()}, "Partition 0 is on [0, 3]. It should be on three"),
        ({**RIGHT, 7: [3, 1, 3]}, "Partition 7 has two replicas on one broker"),
        (IN_ORDER_OF_ID, "Partition 0 is on rack R1 only"),
        ({p: [0, 3, 1] for p in range(10)}, "The rule gives partition 1 another leader than broker 0"),
        (
            {p: [IN_TURN[p % 6], IN_TURN[(p + 1) % 6], IN_TURN[(p + 3) % 6]] for p in range(10)},
            "The rule puts the second follower of partition 0 on another broker than 4",
        ),
    ],
    ids=["none", "empty", "a_list", "six", "two_copies", "twice_on_one", "in_order_of_id", "one_leader", "two_places_on"],
)
def test_placement_wrong(six: Cluster, verdict: Verdict, placement: object, sentence: str) -> None:
    verdict.says(sentence, LAB, six, placement=placement)


def test_without_racks(clean: Cluster, verdict: Verdict) -> None:
    create(clean, "by-kafka", 10, 3)
    verdict.says("The brokers don't know their racks", LAB, clean, placement=RIGHT)

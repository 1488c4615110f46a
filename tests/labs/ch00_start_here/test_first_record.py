"""The first record: each wrong answer gets its sentence, and the right one passes."""

from __future__ import annotations

import numpy
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from kafkalab import Cluster
from support import Verdict, create, put

pytestmark = pytest.mark.cluster

LAB = "00_first_record"


def test_the_topic_is_missing(clean: Cluster, verdict: Verdict) -> None:
    verdict.says("There is no topic 'greetings' yet", LAB, clean, coordinates=None, read_back=None)


@pytest.fixture(scope="module")
def greetings(cluster: Cluster) -> Cluster:
    """The lab's topic with the records of others."""
    create(cluster, "greetings", 6)
    put(cluster, "greetings", [(None, f"somebody's record {n}", p) for p in range(6) for n in range(10 + p)])
    return cluster


def read(cluster: Cluster, coordinates: tuple[str, int, int]) -> bytes:
    consumer = Consumer(cluster.client_config(group_id="reader", enable_auto_commit=False))
    consumer.assign([TopicPartition(*coordinates)])
    value = consumer.poll(30).value()
    consumer.close()
    return value


def test_first_record(greetings: Cluster, verdict: Verdict) -> None:
    """Untouched, then the right record with wrong answers, then all right: a record that was sent stays sent."""
    passed, printed = verdict(LAB, greetings, coordinates=None, read_back=None)
    assert not passed
    assert "0 of 3 requirements" in printed
    assert "did you wait until it was sent?" in printed

    receipts = []
    producer = Producer(greetings.client_config())
    producer.produce("greetings", key="me", value="My first record", on_delivery=lambda _, record: receipts.append(record))
    producer.flush()
    topic, partition, offset = receipts[0].topic(), receipts[0].partition(), receipts[0].offset()
    right = b"My first record"

    def refused(sentence: str, coordinates: object, read_back: object = right) -> None:
        verdict.says(sentence, LAB, greetings, coordinates=coordinates, read_back=read_back)

    refused("the next one to be written", (topic, partition, offset + 1))  # the end offset
    refused("The record at this address is \"somebody's record", (topic, (partition + 1) % 6, 3))
    refused("has no offset", (topic, partition, offset + 7))
    refused("has no partition 6", (topic, 6, offset))
    refused("not in orders", ("orders", partition, offset))
    refused("three parts", (partition, offset))
    refused("which has three parts", None)
    refused("`read_back` should be bytes, not text", (topic, partition, offset), "My first record")
    refused("starts at the offset of its TopicPartition", (topic, partition, offset), read(greetings, (topic, partition, 0)))
    refused("`read_back` is still None", (topic, partition, offset), None)

    refused("the topic's name and two numbers", (partition, offset, topic))
    for coordinates in ((topic, partition, offset), [topic, numpy.int64(partition), numpy.int64(offset)]):
        verdict.passes(LAB, greetings, coordinates=coordinates, read_back=read(greetings, (topic, partition, offset)))

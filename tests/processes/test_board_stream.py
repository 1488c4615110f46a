"""The class board's Spark: every vote counts once, also when Spark and a broker are killed while they vote."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark import SparkContext

from kafkalab import Cluster, wait_until
from kafkalab.classroom.anonymous import copy_anonymously
from kafkalab.classroom.board_stream import BoardStream
from kafkalab.classroom.events import Event, encode
from kafkalab.classroom.facts import Facts
from kafkalab.classroom.spark_login import source_options
from kafkalab.classroom.topics import ANONYMOUS, seat_topic
from kafkalab.cluster.offsets import end_offsets
from support import PATIENCE

pytestmark = pytest.mark.cluster

SCHEMA_ID = 7
SEATS = [f"seat-{number}" for number in range(20)]
FOREIGN = (b"", b"nonsense", b"\0\0\0\0\x08" + b"\0" * 9, encode(Event("alive", "02"), SCHEMA_ID) + b"more", None)


def test_no_vote_is_lost_and_none_counts_twice(cluster: Cluster, measured: Callable[[str], None]) -> None:
    config = {"message.timestamp.type": "LogAppendTime", "min.insync.replicas": "2"}
    admin = AdminClient(cluster.client_config())
    for created in admin.create_topics([NewTopic(seat_topic(seat), 1, 3, config=config) for seat in SEATS]).values():
        created.result()
    facts = Facts()
    stream = BoardStream(facts, SCHEMA_ID, source_options(cluster, "instructor"))
    producer = Producer(cluster.client_config(enable_idempotence=True))

    def vote(seat: str, number: int, option: int) -> None:
        event = Event("voted", "02-gap", round=number, option=option)
        for _ in range(2):  # a seat that got no answer sends an event again
            producer.produce(seat_topic(seat), encode(event, SCHEMA_ID))

    def counted(number: int) -> None:
        assert producer.flush(PATIENCE) == 0
        wait_until(
            lambda: facts.voters("02-gap", number, 3, SEATS) == len(SEATS),
            PATIENCE,
            "all votes",
            last_seen=lambda: (facts.voters("02-gap", number, 3, SEATS), stream.problem),
        )

    stream.start()
    try:
        for place, seat in enumerate(SEATS):
            vote(seat, 1, place % 3)
        counted(1)
        for place, seat in enumerate(SEATS):
            vote(seat, 2, 2 if place < 15 else 0)
            if place == 7:
                os.kill(SparkContext._gateway.proc.pid, signal.SIGKILL)
            if place == 13:
                cluster.kill(1)
        for value in FOREIGN:
            producer.produce(seat_topic("seat-3"), value)
        counted(2)
        results = facts.results("02-gap", 3, SEATS)
        assert (results.first, results.second) == ((7, 7, 6), (5, 0, 15))
        wait_until(lambda: facts.seats(["seat-3"])["seat-3"].foreign == len(FOREIGN), PATIENCE, "what isn't an event")
        wait_until(lambda: not stream.problem, PATIENCE, "the query to run again", last_seen=lambda: stream.problem)
        assert abs(facts.seats(["seat-0"])["seat-0"].last_seen - time.time()) < PATIENCE

        began = time.monotonic()
        for seat in SEATS:
            vote(seat, 3, 1)
        counted(3)
        measured(f"the board counts 20 votes: {time.monotonic() - began:.1f} s")
    finally:
        stream.stop()

    cluster.restart(1)
    for _ in range(2):  # the second copy takes the place of the first
        assert copy_anonymously(cluster, SCHEMA_ID, SEATS) == 60
    assert sum(end_offsets(cluster, ANONYMOUS).values()) == 120

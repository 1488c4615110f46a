"""How late the class board is, with many seats that send.

``python tools/class_load.py`` starts a class's cluster and the board's Spark. First 20 seats vote at once. Then 200 seats arrive
within a minute, with an event each: Spark logs in for each one's topic. Then each sends an event every 10 s for a minute. It prints
how long events take from their producer to the board's facts, and how much memory Spark's JVM has.
"""

from __future__ import annotations

import argparse
import statistics
import threading
import time
from collections.abc import Callable
from typing import Any

import psutil
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark import SparkContext

from kafkalab import wait_until
from kafkalab.classroom.board_stream import BoardStream
from kafkalab.classroom.class_cluster import INSTRUCTOR, ClassTopics, make_cluster
from kafkalab.classroom.events import Event, encode
from kafkalab.classroom.facts import Facts
from kafkalab.classroom.spark_login import source_options
from kafkalab.classroom.topics import seat_topic
from kafkalab.cluster import Cluster

SCHEMA_ID = 1
EVERY = 10.0  # seconds between two events of a seat
PATIENCE = 300.0


class TimedFacts(Facts):
    """Facts that note how old each event is when it comes. Seats and board have the same clock here."""

    def __init__(self) -> None:
        super().__init__()
        self.ages: list[float] = []

    def upsert(self, events: list[tuple[str, Event, float]]) -> None:  # type: ignore[override]
        super().upsert(events)
        self.ages += [time.time() - event.at / 1000 for _, event, _ in events]


class Seats:
    """Simulated seats, with one producer."""

    def __init__(self, cluster: Cluster, number: int) -> None:
        self.names = [f"seat-{place}" for place in range(number)]
        admin = AdminClient(cluster.client_config())
        config = {"message.timestamp.type": "LogAppendTime", "min.insync.replicas": "2"}
        for created in admin.create_topics([NewTopic(seat_topic(name), 1, 3, config=config) for name in self.names]).values():
            created.result()
        self._producer = Producer(cluster.client_config(enable_idempotence=True, linger_ms=20))

    def send(self, name: str, event: Event) -> None:
        """Send an event of a seat."""
        self._producer.produce(seat_topic(name), encode(event, SCHEMA_ID))
        self._producer.poll(0)

    def flush(self) -> None:
        """Wait until the brokers have acknowledged all."""
        assert self._producer.flush(PATIENCE) == 0


def vote(seats: Seats, facts: TimedFacts, number: int, stream: BoardStream) -> float:
    """Let 20 seats vote, and return after how many seconds all are counted."""
    voters = seats.names[:20]
    began = time.monotonic()
    for name in voters:
        seats.send(name, Event("voted", "02-gap", round=number, option=1))
    wait_until(
        lambda: facts.voters("02-gap", number, 3, voters) == len(voters),
        PATIENCE,
        "20 votes on the board",
        last_seen=lambda: (facts.voters("02-gap", number, 3, voters), stream.problem),
    )
    return time.monotonic() - began


def send_evenly(seats: Seats, event: Callable[[int], Event], seconds: float, pause: float) -> int:
    """Let the seats send in turn, with this pause between two. Return how many events that made."""
    sent, never = 0, threading.Event()
    began = time.monotonic()
    while (late := time.monotonic() - began) < seconds:
        while sent * pause <= late:
            seats.send(seats.names[sent % len(seats.names)], event(sent // len(seats.names)))
            sent += 1
        never.wait(pause)
    seats.flush()
    return sent


def measure(
    what: str, seats: Seats, facts: TimedFacts, stream: BoardStream, event: Callable[[int], Event], seconds: float, pause: float
) -> None:
    """Let the seats send, wait until the board has all, and print how late it had them."""
    facts.ages.clear()
    gateway: Any = SparkContext._gateway
    jvm = psutil.Process(gateway.proc.pid)
    before, began = sum(jvm.cpu_times()[:2]), time.monotonic()
    sent = send_evenly(seats, event, seconds, pause)
    wait_until(
        lambda: len(facts.ages) >= sent,
        PATIENCE,
        f"{sent} events",
        last_seen=lambda: (len(facts.ages), stream.problem),
    )
    busy = (sum(jvm.cpu_times()[:2]) - before) / (time.monotonic() - began)
    ages = statistics.quantiles(facts.ages, n=20)
    print(
        f"{len(seats.names)} seats {what}, {sent} events in {seconds:.0f} s: p50 {ages[9]:.1f} s, p95 {ages[18]:.1f} s; "
        f"Spark {jvm.memory_info().rss / 2**20:.0f} MB, {busy:.0%} of a processor"
    )


def checked(attempt: int) -> Event:
    """What a lab's check sends when it has run."""
    return Event("checked", "02_failsafe", met=[1, 2], unmet=[3], waiting=[4], attempt=attempt)


def main() -> None:
    """Measure, and print."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--seats", type=int, default=200)
    arguments.add_argument("--seconds", type=float, default=60)
    given = arguments.parse_args()
    with make_cluster() as cluster:
        ClassTopics(cluster).prepare(str(cluster.client_config(INSTRUCTOR)["sasl.password"]))
        seats, facts = Seats(cluster, given.seats), TimedFacts()
        stream = BoardStream(facts, SCHEMA_ID, source_options(cluster, INSTRUCTOR))
        stream.start()
        try:
            first = vote(seats, facts, 1, stream)
            votes = [vote(seats, facts, number, stream) for number in range(2, 12)]
            print(
                f"20 votes: {statistics.median(votes):.1f} s in the median, {max(votes):.1f} s at most; with Spark's start {first:.0f} s"
            )
            arrival = given.seconds / len(seats.names)
            measure("arrive", seats, facts, stream, lambda _: Event("alive", "02_cluster_failover"), given.seconds, arrival)
            measure("work", seats, facts, stream, checked, given.seconds, EVERY / len(seats.names))
        finally:
            stream.stop()


if __name__ == "__main__":
    main()

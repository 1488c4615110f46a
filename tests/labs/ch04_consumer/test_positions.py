"""Dead letters, and where a consumer starts: each wrong answer gets its sentence, and the right ones pass."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from confluent_kafka import OFFSET_BEGINNING, OFFSET_STORED, Consumer, Producer, TopicPartition

from kafkalab import Cluster
from support import Verdict, commit, create, put

pytestmark = pytest.mark.cluster

PRICES = "stock-prices"
DEAD = "stock-prices-dead-letters"
NEW_YEAR = 1_704_067_200_000
BAD = [None, b"\xff\xfe", b"IBM 99.50", b'{"name": "IBM"}', b'{"name": "IBM", "dollars": 99, "cents": -5}']


def load(cluster: Cluster) -> None:
    """Sixty prices, 20 in each partition."""
    create(cluster, PRICES, 3)
    put(cluster, PRICES, [("IBM", f'{{"name": "IBM", "dollars": {n}, "cents": 1}}', n % 3) for n in range(60)])


def load_with_bad(cluster: Cluster) -> None:
    """Sixty prices, 20 in each partition, then the bad ones in partition 0."""
    load(cluster)
    create(cluster, DEAD, 1)
    put(cluster, PRICES, [("IBM", value, 0) for value in BAD])


def bury(cluster: Cluster, offset: int, value: bytes | None, **headers: str) -> None:
    producer = Producer(cluster.client_config())
    told = {"reason": "not JSON", "topic": PRICES, "partition": "0", "offset": str(offset)} | headers
    producer.produce(DEAD, key="IBM", value=value, headers=told)
    producer.flush()


class SetsAside:
    """What the lab asks for, without the prices."""

    def __init__(self, producer: Producer, dead_letters: str) -> None:
        self.producer, self.dead_letters, self.failed = producer, dead_letters, []

    def report(self, error: object, message: object) -> None:
        if error:
            self.failed.append(error)

    def handle(self, records: list) -> None:
        for record in records:
            self.producer.produce(self.dead_letters, record.value(), key=record.key(), on_delivery=self.report)
        if self.producer.flush(10) or self.failed:
            raise RuntimeError("not set aside")


class Untouched(SetsAside):
    def handle(self, records: list) -> None:
        pass


class NeverFlushes(SetsAside):
    def handle(self, records: list) -> None:
        for record in records:
            self.producer.produce(self.dead_letters, record.value(), key=record.key())
            self.producer.poll(0)


class FlushesTooEarly(SetsAside):
    """What was set aside before this batch."""

    def handle(self, records: list) -> None:
        self.producer.flush()
        for record in records:
            self.producer.produce(self.dead_letters, record.value(), key=record.key())


class LooksAway(SetsAside):
    def handle(self, records: list) -> None:
        for record in records:
            self.producer.produce(self.dead_letters, record.value(), key=record.key())
        self.producer.flush(10)


class CountsOnly(SetsAside):
    """flush returns 0 for what was given up, too."""

    def report(self, error: object, message: object) -> None:
        pass


class Stops(SetsAside):
    def handle(self, records: list) -> None:
        raise ValueError("not a stock price")


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (Untouched, "produced nothing"),
        (NeverFlushes, "flushed nothing. The batch is committed next"),
        (FlushesTooEarly, "flushed nothing. The batch is committed next"),
        (LooksAway, "What does flush() return?"),
        (CountsOnly, "The producer gave up a dead letter"),
        (Stops, "handle raised ValueError: not a stock price"),
    ],
)
def test_dead_letters_that_are_not_safe(verdict: Verdict, wrong: type, says: str, cluster: Cluster) -> None:
    verdict.says(says, "04_dead_letters", cluster, handler=wrong, prices={})


def test_dead_letters(clean: Cluster, verdict: Verdict) -> None:
    load_with_bad(clean)
    commit(clean, "latest-prices", PRICES)
    right = {"IBM": "IBM 59.01"}  # whatever partition it came from, the check takes the last one that it reads
    for number, value in enumerate(BAD[:4]):
        bury(clean, 20 + number, value)
    verdict.says("(1 of 5 are missing)", "04_dead_letters", clean, handler=SetsAside, prices=right)
    bury(clean, 24, BAD[4])
    verdict.passes("04_dead_letters", clean, handler=SetsAside, prices=right)
    for prices, says in [
        ({}, "`prices` is empty"),
        ({"SUN": "SUN 1.01"}, "no price of IBM"),
        ({"IBM": "IBM 0.01"}, "isn't the latest"),
    ]:
        verdict.says(says, "04_dead_letters", clean, handler=SetsAside, prices=prices)
    bury(clean, 20, b"")  # null made empty
    verdict.says("even if one is null", "04_dead_letters", clean, handler=SetsAside, prices=right)
    bury(clean, 20, None)
    bury(clean, 3, b"{}")
    verdict.says("names offset 3 of partition 0, which is a", "04_dead_letters", clean, handler=SetsAside, prices=right)


def test_dead_letters_without_headers_and_a_group_that_stopped(clean: Cluster, verdict: Verdict) -> None:
    load_with_bad(clean)
    commit(clean, "latest-prices", PRICES, {0: 20, 1: 20, 2: 20})
    put(clean, DEAD, [("IBM", BAD[1], 0)])
    _, printed = verdict("04_dead_letters", clean, prices={"IBM": "IBM 59.01"})
    assert "A dead letter has the headers none" in printed
    assert "latest-prices has committed offset 20 in partition 0 of stock-prices, which ends at offset 25" in printed


def test_positions(clean: Cluster, verdict: Verdict) -> None:
    load(clean)  # sent today: all of it after New Year 2024
    zero, end = dict.fromkeys(range(3), 0), dict.fromkeys(range(3), 20)
    seven = dict.fromkeys(range(3), 7)
    right = {"beginning": zero, "end": end, "offset 7": seven, "70 ms after New Year": zero, "a day later": end}
    verdict.passes("04_positions", clean, begun=right, callbacks=callbacks_that_go_back(seen=True))
    others = {"the watermark": low_watermark(), "committed": goes_on_explicitly()}
    verdict.passes("04_positions", clean, begun=right, callbacks=others)
    for where, says in {
        "beginning": "What decides where to start",
        "offset 7": "Do you set the offset before",
        "70 ms after New Year": "that isn't older? In milliseconds",
    }.items():
        begun = {**right, where: end}  # on_assign that changes nothing
        verdict.says(says, "04_positions", clean, begun=begun, callbacks=callbacks_that_go_back(seen=True))
    for callbacks, says in [
        (callbacks_that_go_back(seen=False), "offset 7: after a rebalance the same partition is assigned again"),
        ({"end": lambda consumer, partitions: consumer.assign(partitions)}, "starts at the committed offset"),  # untouched
        ({"end": lambda consumer, partitions: [setattr(p, "offset", 7) for p in partitions]}, "starts at the committed offset"),
        ({"offset 7": only_the_first_call()}, "offset 7: a second partition is assigned later"),
        ({"end": lambda consumer: None}, "end: your callback raised TypeError"),
        ({"time": by_time(seen=True, asks_for_none=True)}, "time: your callback raised KafkaException"),
    ]:
        verdict.says(says, "04_positions", clean, begun=right, callbacks=callbacks)
    verdict.says("Give check() your answer as callbacks=", "04_positions", clean, begun=right)


def goes_back(offset: int, *, seen: bool) -> Callable:
    """A callback that goes back; unless `seen`, each time."""
    known: set[int] = set()

    def on_assign(consumer: Consumer, partitions: list[TopicPartition]) -> None:
        for partition in partitions:
            if not seen or partition.partition not in known:
                partition.offset = offset
            known.add(partition.partition)
        consumer.assign(partitions)

    return on_assign


def by_time(*, seen: bool, asks_for_none: bool = False) -> Callable:
    known: set[int] = set()

    def on_assign(consumer: Consumer, partitions: list[TopicPartition]) -> None:
        new = [p for p in partitions if not seen or p.partition not in known]
        known.update(p.partition for p in partitions)
        asked = [TopicPartition(p.topic, p.partition, NEW_YEAR) for p in new]
        found = consumer.offsets_for_times(asked, timeout=10) if asked or asks_for_none else []
        consumer.incremental_assign([p for p in partitions if p not in new] + found)

    return on_assign


def low_watermark() -> Callable:
    """The beginning as a number, by asking the consumer."""
    known: set[int] = set()

    def on_assign(consumer: Consumer, partitions: list[TopicPartition]) -> None:
        for partition in partitions:
            if partition.partition not in known:
                known.add(partition.partition)
                partition.offset = consumer.get_watermark_offsets(partition, timeout=10)[0]
        consumer.assign(partitions)

    return on_assign


def goes_on_explicitly() -> Callable:
    """After the first time, where the group has committed, by name or as a number."""
    known: set[int] = set()

    def on_assign(consumer: Consumer, partitions: list[TopicPartition]) -> None:
        committed = {p.partition: p.offset for p in consumer.committed(partitions, timeout=10)}
        for partition in partitions:
            seen = partition.partition in known
            partition.offset = OFFSET_STORED if len(partitions) == 1 else committed[partition.partition]
            if not seen:
                known.add(partition.partition)
                partition.offset = OFFSET_BEGINNING
        consumer.assign(partitions)

    return on_assign


def only_the_first_call() -> Callable:
    called: list[bool] = []

    def on_assign(consumer: Consumer, partitions: list[TopicPartition]) -> None:
        if not called:
            called.append(True)
            for partition in partitions:
                partition.offset = 7
            consumer.assign(partitions)

    return on_assign


def callbacks_that_go_back(*, seen: bool) -> dict[str, Callable]:
    return {"offset 7": goes_back(7, seen=seen), "a day later": by_time(seen=seen)}

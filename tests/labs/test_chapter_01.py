"""The labs of chapter 01: what is wrong is told apart from what is right, with a sentence that helps."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from kafkalab import Cluster, check
from kafkalab.waiting import wait_until

from .support import empty

SEVEN = [f"This is message {n}" for n in (1, 2, 3)] + [f"Message {n}" for n in (4, 5, 6, 7)]
STEPS = [
    ("ann", "ann opens a cart"),
    ("bob", "bob opens a cart"),
    ("ann", "ann takes a book"),
    ("cleo", "cleo opens a cart"),
    ("bob", "bob takes a lamp"),
    ("ann", "ann pays"),
    ("cleo", "cleo takes a chair"),
    ("bob", "bob leaves"),
    ("cleo", "cleo pays"),
]


@pytest.fixture(scope="module")
def one_broker() -> Iterator[Cluster]:
    # Else the files of deleted topics would stay for a minute, and be copied whenever a check looks at files.
    with Cluster(brokers=1, backend="local", settings={"log.segment.delete.delay.ms": 0}) as cluster:
        yield cluster


@pytest.fixture
def single(one_broker: Cluster) -> Iterator[Cluster]:
    """A single broker that is up, without topics and groups of earlier tests, and without a past."""
    one_broker.faults.clear()
    yield one_broker
    empty(one_broker)


def create(cluster: Cluster, topic: str, partitions: int, **config: str) -> None:
    admin = AdminClient(cluster.client_config())
    settings = {name.replace("_", "."): value for name, value in config.items()}
    admin.create_topics([NewTopic(topic, partitions, 1, config=settings)])[topic].result()
    cluster.wait_for(lambda view: len(view.topics[topic]) == partitions, f"the topic {topic}")


def send(cluster: Cluster, topic: str, values: list[str], *, key: Callable[[int], str | None] = lambda _: None, **more: int) -> None:
    """One record at a time."""
    producer = Producer({**cluster.client_config(), "sticky.partitioning.linger.ms": 0})
    for number, value in enumerate(values):
        producer.produce(topic, value=value, key=key(number), **more)
        producer.flush()


def read(cluster: Cluster, topic: str, count: int, group: str = "my-readers") -> dict[str, tuple[int, int]]:
    """Read and commit as a group; where each value stands."""
    consumer = Consumer(cluster.client_config(group_id=group, auto_offset_reset="earliest", enable_auto_commit=False))
    consumer.subscribe([topic])
    records = consumer.consume(count, timeout=30)
    consumer.commit(asynchronous=False)
    consumer.close()
    return {r.value().decode(): (r.partition(), r.offset()) for r in records}


# -- 01_my_topic ----------------------------------------------------------------------------------------------------


def test_my_topic_right(single: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    create(single, "my-topic", 13)
    send(single, "my-topic", SEVEN)
    where = read(single, "my-topic", 7)
    assert check("01_my_topic", single, where=where), capsys.readouterr().out

    def refused(sentence: str, where: object) -> None:
        assert not check("01_my_topic", single, where=where)
        assert sentence in capsys.readouterr().out

    refused("Give check() the place", {})
    refused("where is a dictionary", list(where))
    refused("is not among your answers", {k: v for k, v in where.items() if k != "Message 4"})
    swapped = {value: (offset, partition + 1) for value, (partition, offset) in where.items()}
    refused("cannot be found there", swapped)


def untouched(cluster: Cluster) -> None:
    pass


def with_one_partition(cluster: Cluster) -> None:
    create(cluster, "my-topic", 1)
    send(cluster, "my-topic", SEVEN)


def all_at_once(cluster: Cluster) -> None:
    create(cluster, "my-topic", 13)
    send(cluster, "my-topic", SEVEN, partition=4)


def one_missing(cluster: Cluster) -> None:
    create(cluster, "my-topic", 13)
    send(cluster, "my-topic", SEVEN[:6])


def sent_twice(cluster: Cluster) -> None:
    create(cluster, "my-topic", 13)
    send(cluster, "my-topic", SEVEN * 2)


def one_too_many(cluster: Cluster) -> None:
    create(cluster, "my-topic", 13)
    send(cluster, "my-topic", [*SEVEN, "Message 8"])


def read_by_nobody(cluster: Cluster) -> None:
    create(cluster, "my-topic", 13)
    send(cluster, "my-topic", SEVEN)


def read_by_another_group(cluster: Cluster) -> None:
    read_by_nobody(cluster)
    read(cluster, "my-topic", 7, group="others")


def read_in_part(cluster: Cluster) -> None:
    create(cluster, "my-topic", 13)
    send(cluster, "my-topic", SEVEN[:4])
    read(cluster, "my-topic", 4)
    send(cluster, "my-topic", SEVEN[4:])


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (untouched, "There is no topic 'my-topic' yet"),
        (with_one_partition, "my-topic has 1 partition, not 13"),
        (all_at_once, "They all stand in one partition"),
        (one_missing, "1 message of 7 missing, for example 'Message 7'"),
        (sent_twice, "'This is message 1' is there 2 times"),
        (one_too_many, "There is also a message 'Message 8'"),
        (read_by_nobody, "Kafka knows no position of a group my-readers"),
        (read_by_another_group, "Kafka knows no position of a group my-readers"),
        (read_in_part, "There is more in my-topic than my-readers has read"),
    ],
)
def test_my_topic_wrong(
    single: Cluster, capsys: pytest.CaptureFixture[str], build: Callable[[Cluster], None], sentence: str
) -> None:
    build(single)
    assert not check("01_my_topic", single, where={})
    assert sentence in capsys.readouterr().out


# -- 01_order -------------------------------------------------------------------------------------------------------


def ordered(cluster: Cluster) -> None:
    create(cluster, "ordered", 1)
    send(cluster, "ordered", SEVEN)


def keyed(cluster: Cluster) -> None:
    create(cluster, "keyed", 13)
    send(cluster, "keyed", SEVEN, key=lambda _: "all seven")


def carts(cluster: Cluster, key: Callable[[int], str | None] = lambda n: STEPS[n][0], **more: int) -> None:
    create(cluster, "carts", 13)
    send(cluster, "carts", [step for _, step in STEPS], key=key, **more)


def test_order_right(single: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    ordered(single)
    keyed(single)
    carts(single)
    assert check("01_order", single), capsys.readouterr().out


def ordered_with_two_partitions(cluster: Cluster) -> None:
    create(cluster, "ordered", 2)
    send(cluster, "ordered", SEVEN)


def ordered_backwards(cluster: Cluster) -> None:
    create(cluster, "ordered", 1)
    send(cluster, "ordered", SEVEN[::-1])


def keyed_without_key(cluster: Cluster) -> None:
    create(cluster, "keyed", 13)
    send(cluster, "keyed", SEVEN, partition=3)


def keyed_with_a_key_each(cluster: Cluster) -> None:
    create(cluster, "keyed", 13)
    send(cluster, "keyed", SEVEN, key=lambda n: f"key {n}")


def keyed_with_one_partition(cluster: Cluster) -> None:
    create(cluster, "keyed", 1)
    send(cluster, "keyed", SEVEN, key=lambda _: "all seven")


def carts_without_keys(cluster: Cluster) -> None:
    carts(cluster, key=lambda _: None)


def carts_with_one_key(cluster: Cluster) -> None:
    carts(cluster, key=lambda _: "shop")


def carts_with_a_key_per_step(cluster: Cluster) -> None:
    carts(cluster, key=lambda n: STEPS[n][1])


def carts_in_one_partition(cluster: Cluster) -> None:
    carts(cluster, partition=0)


@pytest.mark.parametrize(
    ("build", "sentences"),
    [
        (untouched, ["There is no topic 'ordered' yet", "There is no topic 'keyed' yet", "There is no topic 'carts' yet"]),
        (ordered_with_two_partitions, ["ordered has 2 partitions, not 1"]),
        (ordered_backwards, ["They stand in another order: 'Message 7' comes first"]),
        (keyed_without_key, ["Some have no key"]),
        (keyed_with_a_key_each, ["They have 7 different keys", "spread over several partitions"]),
        (keyed_with_one_partition, ["keyed has 1 partition, not 13"]),
        (carts_without_keys, ["has no key"]),
        (carts_with_one_key, ["has the key 'shop'", "All of carts stands in one partition"]),
        (carts_with_a_key_per_step, ["Which records have to stay in order with this one", "did is spread over several"]),
        (carts_in_one_partition, ["All of carts stands in one partition"]),
    ],
)
def test_order_wrong(
    single: Cluster, capsys: pytest.CaptureFixture[str], build: Callable[[Cluster], None], sentences: list[str]
) -> None:
    build(single)
    assert not check("01_order", single)
    printed = capsys.readouterr().out
    for sentence in sentences:
        assert sentence in printed


# -- 01_one_broker --------------------------------------------------------------------------------------------------


class Attempt:
    """A learner's way through the lab, step by step."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.reports: dict[str, str] = {}
        self._impatient = Producer({**cluster.client_config(), "delivery.timeout.ms": 1000})
        self._patient = Producer({**cluster.client_config(), "delivery.timeout.ms": 60_000, "reconnect.backoff.max.ms": 300})

    def before(self) -> None:
        create(self.cluster, "atu", 1)
        self.patient("one", "two", "three")
        self.flush()

    def patient(self, *values: str) -> None:
        self._hand_over(self._patient, values)

    def impatient(self, *values: str) -> None:
        self._hand_over(self._impatient, values)
        self._impatient.flush()

    def flush(self) -> None:
        self._patient.flush()

    def _hand_over(self, producer: Producer, values: tuple[str, ...]) -> None:
        for value in values:
            producer.produce("atu", value=value, on_delivery=self._report)

    def _report(self, error: object, record: object) -> None:
        self.reports[record.value().decode()] = error.name() if error else "delivered"  # type: ignore[attr-defined]


def right_way(cluster: Cluster) -> str:
    attempt = Attempt(cluster)
    attempt.before()
    cluster.kill(0)
    attempt.patient("waiting")
    attempt.impatient("lost")
    cluster.restart(0)
    attempt.flush()
    attempt.patient("four")
    attempt.flush()
    return attempt.reports["lost"]


def test_one_broker_right(single: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    error = right_way(single)
    assert check("01_one_broker", single, error=error), capsys.readouterr().out
    assert not check("01_one_broker", single, error=None)
    assert "Give check() the name of the error" in capsys.readouterr().out
    assert not check("01_one_broker", single, error="NOT_ENOUGH_REPLICAS")
    assert "has another error than 'NOT_ENOUGH_REPLICAS'" in capsys.readouterr().out


def never_killed(cluster: Cluster) -> None:
    attempt = Attempt(cluster)
    attempt.before()
    attempt.patient("lost", "waiting", "four")
    attempt.flush()


def shut_down_in_order(cluster: Cluster) -> None:
    attempt = Attempt(cluster)
    attempt.before()
    cluster.stop_broker(0)
    attempt.patient("waiting")
    attempt.impatient("lost")
    cluster.restart(0)
    attempt.flush()


def only_paused(cluster: Cluster) -> None:
    attempt = Attempt(cluster)
    attempt.before()
    cluster.pause(0)
    attempt.impatient("waiting")
    cluster.resume(0)


def waiting_sent_too_late(cluster: Cluster) -> None:
    attempt = Attempt(cluster)
    attempt.before()
    cluster.kill(0)
    cluster.restart(0)
    attempt.patient("waiting")
    attempt.flush()


def waiting_sent_too_early(cluster: Cluster) -> None:
    attempt = Attempt(cluster)
    attempt.before()
    attempt.patient("waiting")
    attempt.flush()
    wait_for_a_later_time()
    cluster.kill(0)
    cluster.restart(0)


def waiting_given_up(cluster: Cluster) -> None:
    attempt = Attempt(cluster)
    attempt.before()
    cluster.kill(0)
    attempt.impatient("waiting", "lost")
    cluster.restart(0)


def lost_was_delivered(cluster: Cluster) -> None:
    attempt = Attempt(cluster)
    attempt.before()
    cluster.kill(0)
    attempt.patient("lost", "waiting")
    cluster.restart(0)
    attempt.flush()


def sent_in_another_order(cluster: Cluster) -> None:
    create(cluster, "atu", 1)
    send(cluster, "atu", ["three", "one", "two"])


def four_forgotten(cluster: Cluster) -> None:
    attempt = Attempt(cluster)
    attempt.before()
    cluster.kill(0)
    cluster.restart(0)


def four_sent_too_early(cluster: Cluster) -> None:
    attempt = Attempt(cluster)
    attempt.before()
    cluster.kill(0)
    attempt.patient("waiting", "four")
    wait_for_a_later_time()
    cluster.restart(0)
    attempt.flush()


def wait_for_a_later_time() -> None:
    """Let more time pass than the check allows clocks to differ."""
    later = time.time() + 0.2
    wait_until(lambda: time.time() > later, 5, "a later time")


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (untouched, "The broker was not killed yet"),
        (never_killed, "The broker was not killed yet"),
        (shut_down_in_order, "The broker was shut down in order"),
        (only_paused, "The broker was paused"),
        (waiting_sent_too_late, "'waiting' was handed to the producer only after the broker was back"),
        (waiting_sent_too_early, "'waiting' was sent while the broker still ran"),
        (waiting_given_up, "'waiting' is not in atu"),
        (lost_was_delivered, "'lost' is in atu"),
        (sent_in_another_order, "not in the order one, two, three"),
        (four_forgotten, "'four' is not in atu"),
        (four_sent_too_early, "'four' was sent before the broker was back"),
    ],
)
def test_one_broker_wrong(
    single: Cluster, capsys: pytest.CaptureFixture[str], build: Callable[[Cluster], None], sentence: str
) -> None:
    build(single)
    assert not check("01_one_broker", single, error="_MSG_TIMED_OUT")
    assert sentence in capsys.readouterr().out


def test_one_broker_still_down(single: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    attempt = Attempt(single)
    attempt.before()
    single.kill(0)
    try:
        assert not check("01_one_broker", single, error="_MSG_TIMED_OUT")
    finally:
        single.restart(0)
    assert "did not come back" in capsys.readouterr().out


# -- 01_log_files ---------------------------------------------------------------------------------------------------


FILES = [f"{offset:020}.log" for offset in (0, 3, 6, 9)]
RIGHT = {"files": FILES, "holder": FILES[1], "dumped": 10}


def readings(cluster: Cluster, values: int = 10, **config: str) -> None:
    create(cluster, "readings", 1, **config)
    send(cluster, "readings", [f"reading {n}:".ljust(300_000, ".") for n in range(values)])


def test_log_files_right(single: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    readings(single, segment_bytes="1048576")
    assert check("01_log_files", single, **RIGHT), capsys.readouterr().out

    def refused(sentence: str, **wrong: object) -> None:
        assert not check("01_log_files", single, **{**RIGHT, **wrong})
        assert sentence in capsys.readouterr().out

    refused("Give check() the names", files=[])
    refused("a list of names, each a text", files=[0, 3, 6, 9])
    refused("is not a file with records", files=[*FILES, "00000000000000000000.index"])
    refused("padded with zeros to 20 digits", files=[f"{offset:017}.log" for offset in (0, 3, 6, 9)])
    refused("You name 1 file; there are 4", files=FILES[:1])
    refused("as holder=", holder=None)
    refused("is not one of the .log files", holder="readings-0")
    refused("A file is named after its *first* record", holder=FILES[2])
    refused("as dumped=", dumped=None)
    refused("It is not 3", dumped=3)  # one file only
    refused("It is not 20", dumped=20)  # batches counted, too


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (untouched, "There is no topic 'readings' yet"),
        (readings, "A segment of readings may have 1,073,741,824 bytes"),
        (lambda cluster: readings(cluster, 9, segment_bytes="1048576"), "1 message of 10 missing, for example 'reading 9'"),
        (lambda cluster: create(cluster, "readings", 3, segment_bytes="1048576"), "readings has 3 partitions, not 1"),
    ],
)
def test_log_files_wrong(
    single: Cluster, capsys: pytest.CaptureFixture[str], build: Callable[[Cluster], None], sentence: str
) -> None:
    build(single)
    assert not check("01_log_files", single, **RIGHT)
    assert sentence in capsys.readouterr().out

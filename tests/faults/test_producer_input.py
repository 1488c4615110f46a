"""What a producer is told of wrong addresses, names, sizes and values, and what its application leaves when it is ended."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition

from kafkacourse.stocks import MalformedStockPrice, StockPrice, UnknownTopic, deserialize, partition_count
from kafkalab import Cluster
from kafkalab.cluster.offsets import watermarks
from kafkalab.errors import WaitTimeout
from kafkalab.waiting import wait_until
from support import PATIENCE, create

pytestmark = pytest.mark.cluster

QUIET = {"log_level": 0, "error_cb": lambda _: None}


@pytest.fixture(scope="module")
def broker() -> Iterator[Cluster]:
    """One broker that takes records of 64 KiB and makes no topic by itself."""
    settings = {"message.max.bytes": "65536", "auto.create.topics.enable": "false"}
    with Cluster(brokers=1, settings=settings, backend="local") as cluster:
        yield cluster


@pytest.fixture
def topic(broker: Cluster, request: pytest.FixtureRequest) -> str:
    """A topic of the test's own with three partitions."""
    name = re.sub(r"\W+", "-", request.node.name)
    # What waited while a broker slept goes out in large batches. The limit is on batches, and librdkafka splits none.
    usual = {"max_message_bytes": "1048588"} if "app" in request.fixturenames else {}
    create(broker, name, 3, 1, **usual)
    return name


def told(cluster: Cluster, topic: str, value: bytes | None = b"{}", key: bytes | None = None, **settings: object) -> str:
    """Send one record; what its delivery report says."""
    reports = []
    producer = Producer({**cluster.client_config(), **QUIET, **{k.replace("_", "."): v for k, v in settings.items()}})
    producer.produce(topic, value, key=key, on_delivery=lambda error, _: reports.append(error.name() if error else "delivered"))
    assert producer.flush(PATIENCE) == 0
    return reports[0]


def records(cluster: Cluster, topic: str) -> list[Message]:
    """All records of a topic with three partitions."""
    consumer = Consumer(cluster.client_config(group_id="reader", enable_auto_commit=False))
    try:
        ends = {p: end for p, (_, end) in watermarks(cluster, topic).items()}
        consumer.assign([TopicPartition(topic, p, 0) for p in ends])
        read = consumer.consume(sum(ends.values()), 20) if any(ends.values()) else []
        assert len(read) == sum(ends.values())
        return read
    finally:
        consumer.close()


def start_app(cluster: Cluster, topic: str, **how: object) -> subprocess.Popen:
    """The application as a process of its own."""
    command = [sys.executable, "-m", "kafkacourse.stocks.producer_app"]
    command += ["--bootstrap-servers", cluster.bootstrap_servers, "--topic", topic]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **how)  # type: ignore[call-overload]


# -- addresses ------------------------------------------------------------------------------------------------------


def test_one_right_address_is_enough(broker: Cluster, topic: str) -> None:
    servers = f"127.0.0.1:1,{broker.clients.bootstrap(0)}"
    assert told(broker, topic, bootstrap_servers=servers) == "delivered"
    assert partition_count(Producer({"bootstrap.servers": servers, **QUIET}), topic) == 3


def test_wrong_addresses_only_are_told_when_the_time_for_delivery_is_over(broker: Cluster, topic: str) -> None:
    begin = time.monotonic()
    assert told(broker, topic, bootstrap_servers="127.0.0.1:1,127.0.0.1:2", delivery_timeout_ms=1500) == "_MSG_TIMED_OUT"
    assert 1 < time.monotonic() - begin < 60, "by default it would be five minutes"


# -- topics ---------------------------------------------------------------------------------------------------------


def test_a_topic_that_does_not_exist_is_told_and_not_made(broker: Cluster) -> None:
    assert told(broker, "stock-pries", topic_metadata_propagation_max_ms=500) == "UNKNOWN_TOPIC_OR_PART"
    with pytest.raises(UnknownTopic, match="no topic 'stock-pries'"):
        partition_count(Producer({**broker.client_config(), **QUIET}), "stock-pries")
    assert "stock-pries" not in broker.describe(groups=False).topics


def test_the_application_says_that_its_topic_is_missing(broker: Cluster) -> None:
    process = start_app(broker, "stock-pries", stderr=subprocess.PIPE)
    _, complaint = process.communicate(timeout=PATIENCE)
    assert (process.returncode, complaint) == (1, "there is no topic 'stock-pries'\n")


# -- records --------------------------------------------------------------------------------------------------------


def test_a_record_that_is_too_large_for_the_broker_is_reported_and_the_next_goes_through(broker: Cluster, topic: str) -> None:
    reports = []
    producer = Producer({**broker.client_config(), **QUIET})
    for size in (70_000, 10):
        producer.produce(topic, b"x" * size, partition=0, on_delivery=lambda error, _: reports.append(error and error.name()))
        assert producer.flush(PATIENCE) == 0
    assert reports == ["MSG_SIZE_TOO_LARGE", None]
    assert [len(m.value()) for m in records(broker, topic)] == [10]


def test_a_record_that_is_too_large_for_the_producer_is_refused_at_once(broker: Cluster, topic: str) -> None:
    producer = Producer({**broker.client_config(), **QUIET})
    with pytest.raises(KafkaException) as refused:
        producer.produce(topic, b"x" * 2_000_000)
    assert refused.value.args[0].name() == "MSG_SIZE_TOO_LARGE"
    assert len(producer) == 0


@pytest.mark.parametrize(("key", "value"), [(None, b"{}"), (b"IBM", None), (None, None), (b"", b"")])
def test_what_is_missing_stays_missing(broker: Cluster, topic: str, key: bytes | None, value: bytes | None) -> None:
    assert told(broker, topic, value, key) == "delivered"
    [message] = records(broker, topic)
    assert (message.key(), message.value()) == (key, value)


def test_a_price_with_negative_cents_never_gets_as_far_as_the_producer(broker: Cluster, topic: str) -> None:
    with pytest.raises(ValueError, match="cents are a whole number from 0, not -9"):
        StockPrice("IBM", 100, -9)
    # Someone else's producer may send one all the same: whoever reads it is told.
    assert told(broker, topic, b'{"cents": -9, "dollars": 100, "name": "IBM"}', b"IBM") == "delivered"
    [message] = records(broker, topic)
    with pytest.raises(MalformedStockPrice, match="not -9"):
        deserialize(message.value())


# -- transactional ids ----------------------------------------------------------------------------------------------


def test_a_second_producer_with_a_transactional_id_fences_the_first_for_good(broker: Cluster, topic: str) -> None:
    def instance() -> Producer:
        producer = Producer({**broker.client_config(transactional_id="bank"), **QUIET})
        producer.init_transactions(60)
        producer.begin_transaction()
        return producer

    first = instance()
    first.produce(topic, b"of the first", partition=0)
    assert first.flush(PATIENCE) == 0
    second = instance()
    with pytest.raises(KafkaException) as fenced:
        first.commit_transaction(60)
    error = fenced.value.args[0]
    assert (error.name(), error.fatal()) == ("_FENCED", True)
    with pytest.raises(KafkaException):
        first.begin_transaction()
    second.produce(topic, b"of the second", partition=0)
    second.commit_transaction(60)
    with Consumer(broker.client_config(group_id="reader", isolation_level="read_committed")) as consumer:
        consumer.assign([TopicPartition(topic, 0, 0)])
        assert [message.value() for message in consumer.consume(1, 20)] == [b"of the second"]


# -- the application is ended ---------------------------------------------------------------------------------------

App = Callable[[], tuple[subprocess.Popen, str]]
"""Starts the application. Returns its process and the line that it printed when it began to send."""


@pytest.fixture
def app(broker: Cluster, topic: str) -> Iterator[App]:
    started: list[subprocess.Popen] = []

    def start() -> tuple[subprocess.Popen, str]:
        started.append(start_app(broker, topic))
        line = started[-1].stdout.readline()
        assert " at " in line
        return started[-1], line

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_orderly_end_loses_nothing_that_was_queued(broker: Cluster, topic: str, app: App, number: signal.Signals) -> None:
    process, _ = app()
    broker.pause(0)  # from here on what is sent stays in the queue
    try:
        process.send_signal(number)
        assert any("Flushing and closing" in line for line in process.stdout)
    finally:
        broker.resume(0)
    printed, _ = process.communicate(timeout=PATIENCE)
    sent, delivered, waiting = map(int, re.search(r"(\d+) sent, (\d+) delivered, (\d+) still waiting", printed).groups())
    assert process.returncode == 128 + number
    assert (delivered, waiting) == (sent, 0)
    assert len(records(broker, topic)) == sent


def test_a_kill_loses_what_was_queued_and_nothing_that_was_acknowledged(broker: Cluster, topic: str, app: App) -> None:
    process, line = app()
    printed = line + process.stdout.readline()
    process.send_signal(signal.SIGKILL)
    printed += process.stdout.read()  # communicate would pass over lines that were read ahead
    assert process.wait(PATIENCE) == -signal.SIGKILL
    assert "sent" not in printed, "a process that is killed says nothing more"
    there = {(m.partition(), m.offset()) for m in records(broker, topic)}
    acknowledged = {(int(p), int(o)) for p, o in re.findall(r"\[(\d+)\] at (\d+), ", printed)}
    assert len(acknowledged) >= 2, printed
    assert acknowledged <= there


def test_an_application_that_cannot_deliver_ends_all_the_same_and_says_so(broker: Cluster, topic: str, app: App) -> None:
    process, _ = app()
    broker.pause(0)
    try:
        process.send_signal(signal.SIGTERM)
        begin = time.monotonic()
        printed, _ = process.communicate(timeout=PATIENCE)
        took = time.monotonic() - begin
    finally:
        broker.resume(0)
    assert took < 25, "it gives up what waits, and does not close for as long as delivery may take"
    sent, delivered, waiting = map(int, re.search(r"(\d+) sent, (\d+) delivered, (\d+) still waiting", printed).groups())
    assert process.returncode == 1
    assert sent - delivered == waiting > 0
    # A broker that slept leads nothing for a moment, until it has registered again.
    wait_until(lambda: len(records(broker, topic)) >= delivered, PATIENCE, "all that was acknowledged", ignore=(WaitTimeout,))

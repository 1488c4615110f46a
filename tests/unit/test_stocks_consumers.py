"""The stock-price application's consumers: what they lose and double when killed, and what they make of bad input."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from kafkalab import Cluster
from kafkalab.waiting import wait_until

SOLUTIONS = Path(__file__).parents[2] / "solutions"


@pytest.fixture(autouse=True)
def application(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(SOLUTIONS))


@dataclass(frozen=True)
class Record:
    """What a book asks of a message."""

    place: int
    part: int = 0
    text: bytes | None = b'{"name": "IBM", "dollars": 90, "cents": 5}'

    def topic(self) -> str:
        return "stock-prices"

    def partition(self) -> int:
        return self.part

    def offset(self) -> int:
        return self.place

    def value(self) -> bytes | None:
        return self.text


def records(first: int, last: int, part: int = 0) -> list[Record]:
    return [Record(place, part) for place in range(first, last + 1)]


# -- without a cluster ----------------------------------------------------------------------------------------------


def test_following_is_the_next_offset_of_each_partition() -> None:
    from stocks.book import following

    found = following([*records(3, 5), *records(7, 7, part=2), *records(0, 1, part=2)])  # type: ignore[arg-type]
    assert [(p.topic, p.partition, p.offset) for p in found] == [("stock-prices", 0, 6), ("stock-prices", 2, 8)]


def test_a_book_books_what_it_is_given_and_with_positions_only_what_is_new(tmp_path: Path) -> None:
    from stocks.book import Book

    book = Book(tmp_path / "book.db")
    book.add(records(0, 2))
    book.add(records(0, 2))
    assert len(book.bookings()) == 6
    other = Book(tmp_path / "other.db")
    for batch in (records(0, 2), records(1, 4), records(0, 2), []):
        other.add_with_positions(batch)
    assert other.bookings() == [(0, place) for place in range(5)]
    asked = [TopicPartition("stock-prices", 0), TopicPartition("stock-prices", 1)]
    assert [p.offset for p in other.positions(asked)] == [5, OFFSET_BEGINNING]


@pytest.mark.parametrize("text", [None, b"\xff\xfe", b"not JSON", b"{}", b'{"name": "IBM", "dollars": 90, "cents": -5}'])
def test_a_malformed_price_leaves_nothing_of_its_batch_behind(tmp_path: Path, text: bytes | None) -> None:
    from stocks.book import Book
    from stocks.prices import MalformedStockPrice

    book = Book(tmp_path / "book.db")
    for write in (book.add, book.add_with_positions):
        with pytest.raises(MalformedStockPrice):
            write([*records(0, 2), Record(3, text=text)])
    assert book.bookings() == []
    assert [p.offset for p in book.positions([TopicPartition("stock-prices", 0)])] == [OFFSET_BEGINNING]


def test_a_locked_database_is_told_and_the_batch_can_be_booked_later(tmp_path: Path) -> None:
    from stocks.book import Book

    book = Book(tmp_path / "book.db", patience=0.1)
    thief = sqlite3.connect(tmp_path / "book.db", isolation_level=None)
    thief.execute("BEGIN EXCLUSIVE")
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        book.add_with_positions(records(0, 2))
    thief.execute("ROLLBACK")
    book.add_with_positions(records(0, 2))
    assert len(book.bookings()) == 3


def test_a_database_that_is_gone_is_told(tmp_path: Path) -> None:
    from stocks.book import Book

    book = Book(tmp_path / "book.db")
    book.add_with_positions(records(0, 2))
    (tmp_path / "book.db").unlink()
    with pytest.raises(sqlite3.OperationalError):
        book.add_with_positions(records(3, 5))


# -- with a cluster -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def prices(cluster: Cluster) -> str:
    """A topic with 60 prices in each of three partitions."""
    admin = AdminClient(cluster.client_config())
    admin.create_topics([NewTopic("stock-prices", 3, 3)])["stock-prices"].result()
    cluster.wait_for(lambda v: "stock-prices" in v.topics and None not in v.leaders("stock-prices").values(), "the topic")
    producer = Producer(cluster.client_config())
    for number in range(180):
        producer.produce("stock-prices", f'{{"name": "IBM", "dollars": {number}, "cents": 5}}', partition=number % 3)
    assert producer.flush(20) == 0
    return "stock-prices"


ALL = {(partition, offset) for partition in range(3) for offset in range(60)}


@pytest.mark.cluster
def test_what_is_lost_and_what_is_doubled(cluster: Cluster, prices: str, measured: Callable[[str], None]) -> None:
    from stocks import delivery, trials

    ways = [getattr(delivery, name) for name in delivery.__all__]
    outcomes = {(o.way, o.moment): o for o in trials.try_all(cluster.client_config(), prices, ways)}
    for way in delivery.__all__:
        told = [f"{m} {outcomes[way, m].lost}/{outcomes[way, m].doubled}" for m in trials.MOMENTS if outcomes[way, m].reached]
        measured(f"{way}, lost/doubled when killed: {', '.join(told)}")

    never = {key for key, o in outcomes.items() if not o.reached}
    assert never == {("exactly_once", "before commit"), ("exactly_once", "after commit")}
    lost = {key for key, o in outcomes.items() if o.lost}
    first = ("before process", "amid process", "after commit")
    assert lost == {(way, moment) for way in ("at_most_once", "each_record_at_most_once") for moment in first}
    doubled = {key for key, o in outcomes.items() if o.doubled}
    between = ("after process", "before commit", "asleep")
    at_least = ("at_least_once", "each_record_at_least_once", "each_partition_at_least_once")
    assert doubled == {(way, moment) for way in at_least for moment in between}
    assert all(o.lost + o.doubled <= (1 if "record" in o.way else 20) for o in outcomes.values())


@pytest.mark.cluster
def test_the_order_of_the_seed_loses(cluster: Cluster, prices: str, tmp_path: Path) -> None:
    """Kafka's commit inside the database's transaction, before it is final."""
    from stocks.book import Book, following

    class HastyBook(Book):
        def __init__(self, path: Path, consumer: Consumer) -> None:
            super().__init__(path)
            self.consumer, self.batch = consumer, []

        def _before_commit(self) -> None:
            self.consumer.commit(offsets=following(self.batch), asynchronous=False)
            raise KeyboardInterrupt  # as good as a crash

    settings = cluster.client_config(group_id="hasty", enable_auto_commit=False, auto_offset_reset="earliest")
    consumer = Consumer(settings)
    consumer.assign([TopicPartition(prices, 0)])
    book = HastyBook(tmp_path / "book.db", consumer)
    book.batch = consumer.consume(10, 10)
    with pytest.raises(KeyboardInterrupt):
        book.add(book.batch)
    assert book.bookings() == []
    assert consumer.committed([TopicPartition(prices, 0)], timeout=10)[0].offset == 10
    consumer.close()


@pytest.mark.cluster
def test_two_consumers_with_the_same_partition_by_hand_book_each_price_once(cluster: Cluster, prices: str, tmp_path: Path) -> None:
    from stocks.book import Book

    consumers = []
    for _ in range(2):
        consumer = Consumer(cluster.client_config(group_id="twins", enable_auto_commit=False))
        consumer.assign([TopicPartition(prices, 0, 0)])
        consumers.append((consumer, Book(tmp_path / "book.db")))
    for _ in range(3):
        for consumer, book in consumers:
            batch = consumer.consume(20, 10)
            assert len(batch) == 20
            book.add_with_positions(batch)
    assert Counter(consumers[0][1].bookings()) == Counter((0, offset) for offset in range(60))
    for consumer, _ in consumers:
        consumer.close()


@pytest.mark.cluster
def test_a_commit_past_the_end_is_taken_and_the_reset_policy_decides(cluster: Cluster, prices: str) -> None:
    def first(reset: str) -> int | str:
        more = {"auto.offset.reset": reset, "enable.partition.eof": True, "enable.auto.commit": False}
        consumer = Consumer({**cluster.client_config(group_id="past"), **more})
        consumer.assign([TopicPartition(prices, 0)])
        message = consumer.poll(10)
        consumer.close()
        return message.error().code() if message.error() else message.offset()

    consumer = Consumer(cluster.client_config(group_id="past"))
    consumer.commit(offsets=[TopicPartition(prices, 0, 1000)], asynchronous=False)
    consumer.close()
    assert first("earliest") == 0
    assert first("latest") == KafkaError._PARTITION_EOF
    assert first("error") == KafkaError._AUTO_OFFSET_RESET


@pytest.fixture
def app(cluster: Cluster, prices: str, tmp_path: Path) -> Iterator[Callable[[], subprocess.Popen]]:
    """Starts the consumer application, each time with the same book."""
    started: list[subprocess.Popen] = []

    def start() -> subprocess.Popen:
        command = [sys.executable, "-m", "stocks.consumer_app", "--bootstrap-servers", cluster.bootstrap_servers]
        command += ["--book", str(tmp_path / "book.db"), "--group", f"app-{tmp_path.name}", "--instance", "one"]
        environment = {**os.environ, "PYTHONPATH": str(SOLUTIONS)}
        started.append(subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.mark.cluster
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_the_application_is_ended_and_started_again(
    app: Callable[[], subprocess.Popen], tmp_path: Path, number: signal.Signals
) -> None:
    from stocks.book import Book

    process = app()
    assert process.stdout.readline().endswith(" prices\n")
    process.send_signal(number)
    assert process.wait(30) == (-9 if number == signal.SIGKILL else 128 + number)
    app()
    book = Book(tmp_path / "book.db")
    wait_until(lambda: len(set(book.bookings())) >= 180, 120, "all prices", last_seen=lambda: len(book.bookings()))
    assert Counter(book.bookings()) == Counter(ALL)

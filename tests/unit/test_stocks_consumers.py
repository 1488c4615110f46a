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
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
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

    def key(self) -> bytes:
        return b"IBM"

    def value(self) -> bytes | None:
        return self.text


def records(first: int, last: int, part: int = 0) -> list[Record]:
    return [Record(place, part) for place in range(first, last + 1)]


# -- without a cluster ----------------------------------------------------------------------------------------------


def test_following_is_the_next_offset_of_each_partition() -> None:
    from stocks.book import following

    found = following([*records(3, 5), *records(7, 7, part=2), *records(0, 1, part=2)])  # type: ignore[arg-type]
    assert [(p.topic, p.partition, p.offset) for p in found] == [("stock-prices", 0, 6), ("stock-prices", 2, 8)]


class Letters:
    """A producer that keeps what it is given, and reports it when flushed."""

    def __init__(self, error: KafkaError | None = None, answers: bool = True) -> None:
        self.sent: list[tuple[str, dict]] = []
        self.error, self.answers = error, answers

    def produce(self, topic: str, **record: object) -> None:
        self.sent.append((topic, record))

    def flush(self, timeout: float) -> int:
        for _, record in self.sent if self.answers else ():
            record["on_delivery"](self.error, None)
        return 0 if self.answers else len(self.sent)


BAD = [None, b"", b"\xff\xfe", b"IBM 90.05", b"[" * 100_000, b"null", b'{"name": "IBM", "dollars": 90}',
       b'{"name": "IBM", "dollars": 90, "cents": -5}', b'{"name": "\\ud800", "dollars": 90, "cents": 5}',
       b'{"name": "IBM", "dollars": 1' + b"0" * 30 + b', "cents": 5}', b'{"name": "IBM", "dollars": NaN, "cents": 5}']  # fmt: skip


def test_what_is_no_stock_price_is_set_aside_as_it_came_and_stops_nothing() -> None:
    from stocks.dead_letters import LatestPrices

    producer = Letters()
    latest = LatestPrices(producer, "dead")  # type: ignore[arg-type]
    batch = [Record(place, part=2, text=text) for place, text in enumerate(BAD)]
    latest.handle([*records(0, 1), *batch, *records(2, 3)])  # type: ignore[arg-type, list-item]
    assert [str(price) for price in latest.prices.values()] == ["IBM 90.05"]
    assert [topic for topic, _ in producer.sent] == ["dead"] * len(BAD)
    assert [(record["key"], record["value"]) for _, record in producer.sent] == [(b"IBM", text) for text in BAD]
    for place, (_, record) in enumerate(producer.sent):
        headers = record["headers"]
        assert (headers["topic"], headers["partition"], headers["offset"]) == ("stock-prices", "2", str(place))
        assert 0 < len(headers["reason"].encode()) <= 400


@pytest.mark.parametrize(
    ("producer", "says"),
    [(Letters(KafkaError(KafkaError._MSG_TIMED_OUT)), "timed out"), (Letters(answers=False), "no answer within 10 s")],
)
def test_what_cannot_be_set_aside_is_told_before_anything_is_committed(producer: Letters, says: str) -> None:
    from stocks.dead_letters import LatestPrices, NotSetAside

    with pytest.raises(NotSetAside, match=says):
        LatestPrices(producer, "dead").handle([Record(0, text=b"{}")])  # type: ignore[arg-type, list-item]


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
def test_in_postgresql_too_exactly_once_is_exactly_once(cluster: Cluster, prices: str, postgresql_server: str) -> None:
    """And at least once is not, which shows that the trials reach it there."""
    from stocks import delivery, trials

    moments = ("before process", "amid process", "after process", "rebalance", "asleep")
    ways = [delivery.exactly_once, delivery.at_least_once]
    outcomes = {(o.way, o.moment): o for o in trials.try_all(cluster.client_config(), prices, ways, moments, books=postgresql_server)}
    assert all(o.reached for o in outcomes.values())
    assert not {key for key, o in outcomes.items() if o.lost}
    assert {key for key, o in outcomes.items() if o.doubled} == {("at_least_once", m) for m in ("after process", "asleep")}


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


@pytest.mark.cluster
def test_a_clock_that_ran_backwards_hides_what_came_before_it(cluster: Cluster) -> None:
    """The log's order is the order of arrival: a position by time is the first record that is new enough, and all after it."""
    from stocks.positions import at_time

    admin = AdminClient(cluster.client_config())
    kept = {"retention.ms": "-1"}  # times near 1970: by default Kafka would soon delete them
    admin.create_topics([NewTopic("backwards", 1, 3, config=kept)])["backwards"].result()
    cluster.wait_for(lambda v: "backwards" in v.topics and None not in v.leaders("backwards").values(), "the topic")
    producer = Producer(cluster.client_config())
    for milliseconds in (3000, 1000, 2000, 4000):
        producer.produce("backwards", str(milliseconds), partition=0, timestamp=milliseconds)
        producer.flush(10)

    def read_from(milliseconds: int) -> list[str]:
        more = {"enable.partition.eof": True, "enable.auto.commit": False}
        consumer, values = Consumer({**cluster.client_config(group_id=f"since-{milliseconds}"), **more}), []
        consumer.subscribe(["backwards"], on_assign=at_time(milliseconds))
        while (message := consumer.poll(20)) and not message.error():
            values.append(message.value().decode())
        consumer.close()
        assert message.error().code() == KafkaError._PARTITION_EOF
        return values

    assert read_from(1500) == ["3000", "1000", "2000", "4000"]
    assert read_from(3500) == ["4000"]
    assert read_from(9000) == []


@pytest.fixture(scope="module")
def dead_letters(cluster: Cluster) -> str:
    """The topic of the application's dead letters."""
    admin = AdminClient(cluster.client_config())
    admin.create_topics([NewTopic("stock-prices-dead-letters", 1, 3)])["stock-prices-dead-letters"].result()
    cluster.wait_for(lambda v: None not in v.leaders("stock-prices-dead-letters").values(), "the topic")
    return "stock-prices-dead-letters"


@pytest.fixture
def app(cluster: Cluster, prices: str, dead_letters: str, tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen]]:
    """Starts the consumer application, each time with the same book."""
    started: list[subprocess.Popen] = []

    def start(topic: str = prices) -> subprocess.Popen:
        command = [sys.executable, "-m", "stocks.consumer_app", "--bootstrap-servers", cluster.bootstrap_servers, "--topic", topic]
        command += ["--book", str(tmp_path / "book.db"), "--group", f"app-{tmp_path.name}", "--instance", "one"]
        environment = {**os.environ, "PYTHONPATH": str(SOLUTIONS)}
        started.append(subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
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
    assert process.stdout.readline().endswith(" prices, 0 set aside\n")  # it is in the middle of its work
    process.send_signal(number)
    assert process.wait(30) == (-9 if number == signal.SIGKILL else 128 + number)
    app()
    book = Book(tmp_path / "book.db")
    wait_until(lambda: len(set(book.bookings())) >= 180, 120, "all prices", last_seen=lambda: len(book.bookings()))
    assert Counter(book.bookings()) == Counter(ALL)


@pytest.mark.cluster
@pytest.mark.parametrize("fault", ["locked", "gone"])
def test_a_database_that_fails_ends_the_application_and_costs_nothing(
    cluster: Cluster, app: Callable[..., subprocess.Popen], tmp_path: Path, fault: str
) -> None:
    from stocks.book import Book

    topic, file = f"prices-{fault}", tmp_path / "book.db"
    admin = AdminClient(cluster.client_config())
    admin.create_topics([NewTopic(topic, 3, 3)])[topic].result()
    cluster.wait_for(lambda v: topic in v.topics and None not in v.leaders(topic).values(), "the topic")
    producer = Producer(cluster.client_config())

    def send(count: int) -> None:
        for number in range(count):
            producer.produce(topic, '{"name": "IBM", "dollars": 90, "cents": 5}', partition=number % 3)
        assert producer.flush(20) == 0

    send(60)
    process = app(topic)
    wait_until(lambda: file.exists() and len(Book(file).bookings()) == 60, 60, "the first prices")
    thief = sqlite3.connect(file, isolation_level=None, timeout=30)
    if fault == "locked":
        thief.execute("BEGIN EXCLUSIVE")
    else:
        file.unlink()
    send(30)
    assert process.wait(60) == 1
    assert "the database does not take it" in process.stderr.read()
    thief.close()
    app(topic)
    wait_until(lambda: len(set(Book(file).bookings())) == 90, 120, "all prices")
    assert Counter(Book(file).bookings()) == Counter((partition, offset) for partition in range(3) for offset in range(30))


@pytest.mark.cluster
def test_what_is_malformed_is_set_aside_by_the_application_and_passed_over(
    cluster: Cluster, app: Callable[..., subprocess.Popen], dead_letters: str, tmp_path: Path
) -> None:
    from stocks.book import Book

    topic = "prices-malformed"
    admin = AdminClient(cluster.client_config())
    admin.create_topics([NewTopic(topic, 1, 3)])[topic].result()
    cluster.wait_for(lambda v: topic in v.topics and None not in v.leaders(topic).values(), "the topic")
    producer, good = Producer(cluster.client_config()), b'{"name": "IBM", "dollars": 90, "cents": 5}'
    for value in (good, *BAD, good, BAD[1]):  # and so the topic ends with one
        producer.produce(topic, value)
    assert producer.flush(20) == 0
    booked = [(0, 0), (0, len(BAD) + 1)]

    process = app(topic)
    reader = Consumer(cluster.client_config(group_id="reads-dead-letters", auto_offset_reset="earliest"))
    reader.subscribe([dead_letters])
    letters = [message.value() for message in reader.consume(len(BAD) + 1, 60)]
    assert [value or b"" for value in letters] == [value or b"" for value in (*BAD, BAD[1])]
    wait_until(lambda: Book(tmp_path / "book.db").bookings() == booked, 60, "both prices")
    process.terminate()
    assert process.wait(30) == 143

    producer.produce(topic, good)
    assert producer.flush(20) == 0
    app(topic)
    booked.append((0, len(BAD) + 3))
    wait_until(lambda: Book(tmp_path / "book.db").bookings() == booked, 60, "the new price")
    assert not reader.consume(1, 1), "nothing is set aside twice: it is behind the book's position"
    reader.close()


@pytest.mark.cluster
def test_what_it_cannot_begin_with_is_told_in_bounded_time(cluster: Cluster, app: Callable[..., subprocess.Popen], tmp_path: Path) -> None:
    process = app("no-such-topic")
    assert process.wait(60) == 1
    assert process.stderr.read() == "there is no topic 'no-such-topic'\n"
    (tmp_path / "book.db").mkdir()
    process = app()
    assert process.wait(60) == 1
    assert "unable to open database file" in process.stderr.read()


def test_brokers_that_do_not_answer_are_told_in_bounded_time(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    from stocks import consumer_app

    monkeypatch.setattr(consumer_app, "_CONNECT_SECONDS", 1)
    monkeypatch.setattr(consumer_app.signal, "signal", lambda *_: None)
    assert consumer_app.main(["--bootstrap-servers", "127.0.0.1:1", "--book", str(tmp_path / "book.db")]) == 1
    assert "no broker answered within 1 s" in capsys.readouterr().err

"""The stock-price application's consumers: what they lose and read twice when they are killed, and where they begin again."""

from __future__ import annotations

import re
import signal
import sqlite3
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import converter
import delivery
import nbformat
import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from positions import at_offset, at_the_end, at_time

from kafkacourse.stocks import trials
from kafkacourse.stocks.book import Book, following
from kafkacourse.stocks.loop import read_batches
from kafkalab import Cluster
from kafkalab.waiting import wait_until
from support import MALFORMED_PRICES, PATIENCE, create

pytestmark = pytest.mark.cluster


# -- with a cluster -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def prices(cluster: Cluster) -> str:
    """A topic with 60 prices in each of three partitions."""
    create(cluster, "stock-prices", 3)
    producer = Producer(cluster.client_config())
    for number in range(180):
        producer.produce("stock-prices", f'{{"name": "IBM", "dollars": {number}, "cents": 5}}', partition=number % 3)
    assert producer.flush(PATIENCE) == 0
    return "stock-prices"


ALL = {(partition, offset) for partition in range(3) for offset in range(60)}


# Trials that the lab on delivery leaves out; it has 20 others, every day.
NOT_IN_THE_LAB = ("at_most_once", "at_least_once", "exactly_once"), ("during processing", "before commit", "rebalance")


@pytest.mark.parametrize(
    ("ways", "moments"),
    [NOT_IN_THE_LAB, pytest.param(delivery.__all__, trials.MOMENTS, marks=pytest.mark.at_length)],
    ids=["not in the lab", "all"],
)
def test_what_is_lost_and_what_is_duplicated(
    cluster: Cluster, prices: str, measured: Callable[[str], None], ways: Sequence[str], moments: Sequence[str]
) -> None:
    tried = trials.try_all(cluster.client_config(), prices, [getattr(delivery, way) for way in ways], moments)
    outcomes = {(o.way, o.moment): o for o in tried}
    for way in ways:
        told = [f"{m} {outcomes[way, m].lost}/{outcomes[way, m].duplicates}" for m in moments if outcomes[way, m].reached]
        measured(f"{way}, lost/duplicates when killed: {', '.join(told)}")

    never = {key for key, o in outcomes.items() if not o.reached}
    assert never == outcomes.keys() & {("exactly_once", "before commit"), ("exactly_once", "after commit")}
    lost = {key for key, o in outcomes.items() if o.lost}
    first = ("before processing", "during processing", "after commit")
    at_most = ("at_most_once", "each_record_at_most_once")
    assert lost == outcomes.keys() & {(way, moment) for way in at_most for moment in first}
    duplicated = {key for key, o in outcomes.items() if o.duplicates}
    between = ("after processing", "before commit", "asleep")
    at_least = ("at_least_once", "each_record_at_least_once", "each_partition_at_least_once")
    assert duplicated == outcomes.keys() & {(way, moment) for way in at_least for moment in between}
    assert all(o.lost + o.duplicates <= (1 if "record" in o.way else 20) for o in outcomes.values())
    table = the_labs_table()
    for (way, moment), outcome in outcomes.items():
        cell = table[way, moment]
        assert outcome.reached == bool(cell), (way, moment)
        limit = re.search(r"(\d+) (lost|duplicate)", cell)
        most_lost, most_duplicates = (int(limit[1]) if limit and limit[2] == name else 0 for name in ("lost", "duplicate"))
        assert bool(outcome.lost) == bool(most_lost) and outcome.lost <= most_lost, (way, moment, outcome)
        assert bool(outcome.duplicates) == bool(most_duplicates) and outcome.duplicates <= most_duplicates, (
            way,
            moment,
            outcome,
        )


def the_labs_table() -> dict[tuple[str, str], str]:
    """What the lab on delivery says, by way and moment: "20 lost", "up to 20 duplicates", "–", or nothing where it never comes."""
    notebook = nbformat.read(Path(__file__).parents[2] / "solutions/04_consumer/04_delivery.ipynb", as_version=4)
    [text] = [cell.source for cell in notebook.cells if "| | before processing |" in cell.source]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    [_, *moments], _, *ways = rows
    assert tuple(moments) == trials.MOMENTS
    table = {}
    for way, *cells in ways:
        table |= {(re.sub(r"\W+", "_", way), moment): cell for moment, cell in zip(moments, cells, strict=True)}
    assert {way for way, _ in table} == set(delivery.__all__)
    return table


@pytest.mark.parametrize(
    "moments",
    [
        ("during processing", "after processing", "asleep"),
        pytest.param(("before processing", "rebalance"), marks=pytest.mark.at_length),
    ],
    ids=", ".join,
)
def test_in_postgresql_too_exactly_once_is_exactly_once(
    cluster: Cluster, prices: str, postgresql_server: str, moments: Sequence[str]
) -> None:
    """And at least once is not, which shows that the trials reach it there."""
    ways = [delivery.exactly_once, delivery.at_least_once]
    tried = trials.try_all(cluster.client_config(), prices, ways, moments, books=postgresql_server)
    outcomes = {(o.way, o.moment): o for o in tried}
    assert all(o.reached for o in outcomes.values())
    assert not {key for key, o in outcomes.items() if o.lost}
    twice = {("at_least_once", moment) for moment in ("after processing", "asleep")}
    assert {key for key, o in outcomes.items() if o.duplicates} == outcomes.keys() & twice


@pytest.mark.at_length  # every day the lab on delivery does that
def test_a_conversion_is_killed_or_overslept_and_each_copy_is_committed_once(cluster: Cluster, prices: str) -> None:
    targets = {moment: f"copies-{moment.replace(' ', '-')}" for moment in trials.CONVERSION_MOMENTS}
    for target in targets.values():
        create(cluster, target, 3)
    config = cluster.client_config()

    def run(moment: str) -> bool:
        return trials.try_conversion(config, prices, targets[moment], converter.convert, moment)

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(run, targets)) == [True] * 4
    wanted = Counter(read(cluster, prices, "read_committed"))
    assert wanted.total() == len(wanted) == 180
    for moment, aborted in {"during processing": 5, "before commit": 20, "after commit": 0, "asleep": 20}.items():
        assert Counter(read(cluster, targets[moment], "read_committed")) == wanted, moment
        found = read(cluster, targets[moment], "read_uncommitted")
        assert 180 + bool(aborted) <= len(found) <= 180 + aborted, moment  # a batch holds 20 at most


def test_copies_without_their_offsets_in_the_transaction_are_told_from_right_ones(cluster: Cluster, prices: str) -> None:
    """Which shows that the trial can fail."""
    create(cluster, "copies-apart", 3)
    assert trials.try_conversion(cluster.client_config(), prices, "copies-apart", convert_apart, "after commit")
    found = Counter(read(cluster, "copies-apart", "read_committed"))
    assert len(found) == 180 and found.total() > 180


def convert_apart(consumer: Consumer, producer: Producer, target: str, batch: list) -> None:
    producer.begin_transaction()
    for record in batch:
        producer.produce(target, key=record.key(), value=record.value())
    producer.commit_transaction()
    consumer.commit(offsets=following(batch), asynchronous=False)


def read(cluster: Cluster, topic: str, isolation_level: str) -> list[bytes]:
    """All values of a topic of three partitions."""
    settings = cluster.client_config(group_id="reads-all", isolation_level=isolation_level, enable_auto_commit=False)
    consumer = Consumer({**settings, "enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(3)])
    values, ends = [], 0
    while ends < 3:
        message = consumer.poll(60)
        assert message is not None and (message.error() is None or message.error().code() == KafkaError._PARTITION_EOF)
        values, ends = (values, ends + 1) if message.error() else ([*values, message.value()], ends)
    consumer.close()
    return values


PROTOCOLS = {
    "eager": {"heartbeat.interval.ms": 200},
    "cooperative": {"heartbeat.interval.ms": 200, "partition.assignment.strategy": "cooperative-sticky"},
    "new protocol": {"group.protocol": "consumer"},
}


# With the new protocol partitions are taken away one by one, as with the cooperative one.
@pytest.mark.parametrize("protocol", ["eager", "new protocol", pytest.param("cooperative", marks=pytest.mark.at_length)])
def test_batches_are_booked_once_when_consumers_join_and_leave(
    cluster: Cluster, prices: str, tmp_path: Path, protocol: str
) -> None:
    quiet, path = threading.Event(), tmp_path / "book.db"
    stops = {name: threading.Event() for name in ("stays", "joins", "joins later")}
    batches: Counter[str] = Counter()
    raised: list[BaseException] = []

    def run(name: str) -> None:
        settings = cluster.client_config(group_id=f"loop {protocol}", enable_auto_commit=False, auto_offset_reset="error")
        book = Book(path)

        def handle(batch: list) -> None:
            quiet.wait(0.1 if batches["joins"] >= 2 else 0.5)  # there is work left for who joins, on a slow machine too
            book.add_with_positions(batch)
            batches[name] += 1

        try:
            consumer = Consumer({**settings, **PROTOCOLS[protocol]})
            read_batches(consumer, prices, handle, batch=2, stopping=stops[name].is_set, start_at=book.positions)
        except BaseException as error:
            raised.append(error)
        finally:
            book.close()

    Book(path).close()
    book = Book(path)
    threads = {name: threading.Thread(target=run, args=[name], daemon=True) for name in stops}
    threads["stays"].start()
    wait_until(lambda: batches["stays"], PATIENCE, "the first one to work")
    threads["joins"].start()
    wait_until(lambda: batches["joins"] >= 2, PATIENCE, "the second one to work", last_seen=lambda: (batches, raised))
    stops["joins"].set()
    threads["joins"].join(PATIENCE)
    threads["joins later"].start()
    wait_until(lambda: len(book.bookings()) >= 180, PATIENCE, "all prices", last_seen=lambda: (len(book.bookings()), raised))
    for name, thread in threads.items():
        stops[name].set()
        thread.join(PATIENCE)
        assert not thread.is_alive()
    assert not raised
    assert Counter(book.bookings()) == Counter(ALL)
    book.close()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_callback_says_where_to_begin_whatever_the_protocol(cluster: Cluster, prices: str, protocol: str) -> None:
    def first_offsets(callback: Callable) -> dict[int, int]:
        settings = cluster.client_config(group_id=f"begins {protocol}", enable_auto_commit=False, enable_partition_eof=True)
        consumer, first = Consumer({**settings, **PROTOCOLS[protocol]}), {}
        consumer.subscribe([prices], on_assign=callback)
        while len(first) < 3:
            message = consumer.poll(60)
            first.setdefault(message.partition(), message.offset())
        consumer.close()
        return first

    assert first_offsets(at_offset(7)) == dict.fromkeys(range(3), 7)
    assert first_offsets(at_time(0)) == dict.fromkeys(range(3), 0)
    assert first_offsets(at_the_end()) == dict.fromkeys(range(3), 60)


def test_the_order_of_the_seed_loses(cluster: Cluster, prices: str, tmp_path: Path) -> None:
    """Kafka's commit inside the database's transaction, before it is final."""

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
    book.batch = consumer.consume(10, 60)
    with pytest.raises(KeyboardInterrupt):
        book.add(book.batch)
    assert book.bookings() == []
    assert consumer.committed([TopicPartition(prices, 0)], timeout=PATIENCE)[0].offset == 10
    consumer.close()


def test_two_consumers_with_the_same_partition_by_hand_book_each_price_once(
    cluster: Cluster, prices: str, tmp_path: Path
) -> None:
    consumers = []
    for _ in range(2):
        consumer = Consumer(cluster.client_config(group_id="twins", enable_auto_commit=False))
        consumer.assign([TopicPartition(prices, 0, 0)])
        consumers.append((consumer, Book(tmp_path / "book.db")))
    for _ in range(3):
        for consumer, book in consumers:
            batch = consumer.consume(20, 60)
            assert len(batch) == 20
            book.add_with_positions(batch)
    assert Counter(consumers[0][1].bookings()) == Counter((0, offset) for offset in range(60))
    for consumer, _ in consumers:
        consumer.close()


def test_a_commit_past_the_end_is_taken_and_the_reset_policy_decides(cluster: Cluster, prices: str) -> None:
    def first(reset: str) -> int | str:
        more = {"auto.offset.reset": reset, "enable.partition.eof": True, "enable.auto.commit": False}
        consumer = Consumer({**cluster.client_config(group_id="past"), **more})
        consumer.assign([TopicPartition(prices, 0)])
        message = consumer.poll(60)
        consumer.close()
        return message.error().code() if message.error() else message.offset()

    consumer = Consumer(cluster.client_config(group_id="past"))
    consumer.commit(offsets=[TopicPartition(prices, 0, 1000)], asynchronous=False)
    consumer.close()
    assert first("earliest") == 0
    assert first("latest") == KafkaError._PARTITION_EOF
    assert first("error") == KafkaError._AUTO_OFFSET_RESET


def test_a_clock_that_ran_backwards_hides_what_came_before_it(cluster: Cluster) -> None:
    """The log's order is the order of arrival: a position by time is the first record that is new enough, and all after it."""
    create(cluster, "backwards", 1, retention_ms="-1")  # times near 1970: by default Kafka would soon delete them
    producer = Producer(cluster.client_config())
    for milliseconds in (3000, 1000, 2000, 4000):
        producer.produce("backwards", str(milliseconds), partition=0, timestamp=milliseconds)
        producer.flush(PATIENCE)

    def read_from(milliseconds: int) -> list[str]:
        more = {"enable.partition.eof": True, "enable.auto.commit": False}
        consumer, values = Consumer({**cluster.client_config(group_id=f"since-{milliseconds}"), **more}), []
        consumer.subscribe(["backwards"], on_assign=at_time(milliseconds))
        while (message := consumer.poll(60)) and not message.error():
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
    create(cluster, "stock-prices-dead-letters", 1)
    return "stock-prices-dead-letters"


@pytest.fixture
def app(cluster: Cluster, prices: str, dead_letters: str, tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen]]:
    """Starts the consumer application, each time with the same book."""
    started: list[subprocess.Popen] = []

    def start(topic: str = prices, servers: str = cluster.bootstrap_servers) -> subprocess.Popen:
        command = [sys.executable, "-m", "kafkacourse.stocks.consumer_app", "--bootstrap-servers", servers, "--topic", topic]
        command += ["--book", str(tmp_path / "book.db"), "--group", f"app-{tmp_path.name}", "--instance", "one"]
        started.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_the_application_is_ended_and_started_again(
    app: Callable[[], subprocess.Popen], tmp_path: Path, number: signal.Signals
) -> None:
    def begins(process: subprocess.Popen) -> dict[int, str]:
        told = [re.fullmatch(r"stock-prices \[(\d)\] from (.*)\n", process.stdout.readline()) for _ in range(3)]
        return {int(line[1]): line[2] for line in told}

    process = app()
    assert begins(process) == dict.fromkeys(range(3), "the beginning")
    assert process.stdout.readline().endswith(" prices, 0 set aside\n")  # it is in the middle of its work
    process.send_signal(number)
    assert process.wait(PATIENCE) == (-9 if number == signal.SIGKILL else 128 + number)
    book = Book(tmp_path / "book.db")
    booked = {partition: str(offset + 1) for partition, offset in book.bookings()}  # the last one of each
    assert begins(app()) == {**dict.fromkeys(range(3), "the beginning"), **booked}
    wait_until(lambda: len(set(book.bookings())) >= 180, PATIENCE, "all prices", last_seen=lambda: len(book.bookings()))
    assert Counter(book.bookings()) == Counter(ALL)
    [(name, price)] = book.latest().items()
    assert name == "IBM" and price.dollars in (177, 178, 179) and price.cents == 5  # one of the three partitions' last ones


def test_one_right_address_is_enough(
    cluster: Cluster, app: Callable[..., subprocess.Popen], prices: str, tmp_path: Path
) -> None:
    right = cluster.bootstrap_servers.split(",")[0]
    process = app(prices, f"127.0.0.1:1,{right}")
    book = Book(tmp_path / "book.db")
    wait_until(lambda: len(book.bookings()) >= 180, PATIENCE, "all prices", last_seen=lambda: len(book.bookings()))
    process.terminate()
    assert process.wait(PATIENCE) == 143
    assert Counter(book.bookings()) == Counter(ALL)


@pytest.mark.parametrize("fault", ["locked", "gone"])
def test_a_database_that_fails_ends_the_application_and_costs_nothing(
    cluster: Cluster, app: Callable[..., subprocess.Popen], tmp_path: Path, fault: str
) -> None:
    topic, file = f"prices-{fault}", tmp_path / "book.db"
    create(cluster, topic, 3)
    producer = Producer(cluster.client_config())

    def send(count: int) -> None:
        for number in range(count):
            producer.produce(topic, '{"name": "IBM", "dollars": 90, "cents": 5}', partition=number % 3)
        assert producer.flush(PATIENCE) == 0

    send(60)
    process = app(topic)
    wait_until(lambda: file.exists() and len(Book(file).bookings()) == 60, PATIENCE, "the first prices")
    thief = sqlite3.connect(file, isolation_level=None, timeout=30)
    if fault == "locked":
        thief.execute("BEGIN EXCLUSIVE")
    else:
        file.unlink()
    send(30)
    assert process.wait(PATIENCE) == 1
    assert "the database rejects it" in process.stderr.read()
    thief.close()
    app(topic)
    wait_until(lambda: len(set(Book(file).bookings())) == 90, PATIENCE, "all prices")
    assert Counter(Book(file).bookings()) == Counter((partition, offset) for partition in range(3) for offset in range(30))


def test_what_is_malformed_is_set_aside_by_the_application_and_passed_over(
    cluster: Cluster, app: Callable[..., subprocess.Popen], dead_letters: str, tmp_path: Path
) -> None:
    topic = "prices-malformed"
    create(cluster, topic, 1)
    producer, good = Producer(cluster.client_config()), b'{"name": "IBM", "dollars": 90, "cents": 5}'
    for value in (good, *MALFORMED_PRICES, good, MALFORMED_PRICES[1]):  # and so the topic ends with one
        producer.produce(topic, value)
    assert producer.flush(PATIENCE) == 0
    booked = [(0, 0), (0, len(MALFORMED_PRICES) + 1)]

    process = app(topic)
    reader = Consumer(cluster.client_config(group_id="reads-dead-letters", auto_offset_reset="earliest"))
    reader.subscribe([dead_letters])
    letters = [message.value() for message in reader.consume(len(MALFORMED_PRICES) + 1, 60)]
    assert [value or b"" for value in letters] == [value or b"" for value in (*MALFORMED_PRICES, MALFORMED_PRICES[1])]
    wait_until(lambda: Book(tmp_path / "book.db").bookings() == booked, PATIENCE, "both prices")
    process.terminate()
    assert process.wait(PATIENCE) == 143

    producer.produce(topic, good)
    assert producer.flush(PATIENCE) == 0
    app(topic)
    booked.append((0, len(MALFORMED_PRICES) + 3))
    wait_until(lambda: Book(tmp_path / "book.db").bookings() == booked, PATIENCE, "the new price")
    assert not reader.consume(1, 1), "nothing is set aside twice: it is behind the book's position"
    reader.close()


def test_what_it_cannot_begin_with_is_told_in_bounded_time(
    cluster: Cluster, app: Callable[..., subprocess.Popen], tmp_path: Path
) -> None:
    process = app("no-such-topic")
    assert process.wait(PATIENCE) == 1
    assert process.stderr.read() == "there is no topic 'no-such-topic'\n"
    (tmp_path / "book.db").mkdir()
    process = app()
    assert process.wait(PATIENCE) == 1
    assert "unable to open database file" in process.stderr.read()

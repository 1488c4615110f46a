"""The stock-price application's consumers: what they lose and double when killed, and what they make of bad input."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
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


class Transactions:
    """A producer that notes what is asked of it. What is in `fails` raises, the first time."""

    def __init__(self, **fails: BaseException) -> None:
        self.calls: list[str] = []
        self._fails = fails

    def __getattr__(self, name: str) -> Callable[..., None]:
        def called(*args: object, **kwargs: object) -> None:
            self.calls.append(name)
            if name in self._fails:
                raise self._fails.pop(name)

        return called


def kafka_error(code: int) -> KafkaException:
    return KafkaException(KafkaError(code))


@pytest.mark.parametrize(
    ("producer", "error", "calls"),
    [
        (Transactions(), None, "begin_transaction produce produce send_offsets_to_transaction commit_transaction"),
        (Transactions(produce=BufferError()), None,
         "begin_transaction produce poll produce produce send_offsets_to_transaction commit_transaction"),
        (Transactions(produce=TypeError()), TypeError, "begin_transaction produce abort_transaction"),
        (Transactions(produce=KeyboardInterrupt()), KeyboardInterrupt, "begin_transaction produce abort_transaction"),
        (Transactions(commit_transaction=kafka_error(KafkaError._FENCED), abort_transaction=kafka_error(KafkaError._STATE)),
         KafkaException, "begin_transaction produce produce send_offsets_to_transaction commit_transaction abort_transaction"),
        (Transactions(begin_transaction=kafka_error(KafkaError._STATE)), KafkaException, "begin_transaction"),
    ],
    ids=["right", "full queue", "wrong type", "interrupted", "fenced", "not begun"],
)  # fmt: skip
def test_a_conversion_leaves_no_transaction_open(producer: Transactions, error: type[BaseException] | None, calls: str) -> None:
    from stocks.converter import convert

    def run() -> None:
        convert(Transactions(), producer, "copies", records(0, 1))  # type: ignore[arg-type]

    if error is None:
        run()
    else:
        with pytest.raises(error) as raised:
            run()
        if error is KafkaException:  # what happened first, not what became of the abort
            assert raised.value.args[0].code() != KafkaError._STATE or calls == "begin_transaction"
    assert producer.calls == calls.split()


class Assigned:
    """A consumer that takes any assignment; those for a time begin at 27."""

    def __init__(self) -> None:
        self.offsets: dict[int, int] = {}

    def assign(self, partitions: list[TopicPartition]) -> None:
        self.offsets = {p.partition: p.offset for p in partitions}

    def offsets_for_times(self, partitions: list[TopicPartition], timeout: float) -> list[TopicPartition]:
        return [TopicPartition(p.topic, p.partition, 27) for p in partitions]


@pytest.mark.parametrize("name", ["offset", "time"])
def test_a_callback_acts_only_the_first_time_that_it_sees_a_partition(name: str) -> None:
    from stocks.positions import at_offset, at_time

    callback = {"offset": at_offset(27), "time": at_time(1000)}[name]
    consumer, committed = Assigned(), TopicPartition("stock-prices", 0).offset
    for partitions, offsets in [([0, 2], [27, 27]), ([0], [committed]), ([0, 1, 2], [committed, 27, committed])]:
        callback(consumer, [TopicPartition("stock-prices", p) for p in partitions])  # type: ignore[arg-type]
        assert consumer.offsets == dict(zip(partitions, offsets, strict=True))


def test_the_end_of_a_partition_is_the_end_only_until_something_comes() -> None:
    from stocks.loop import read_batches

    def message(partition: int, error: KafkaError | None = None) -> SimpleNamespace:
        return SimpleNamespace(error=lambda: error, topic=lambda: "stock-prices", partition=lambda: partition)

    end, read, ending = KafkaError(KafkaError._PARTITION_EOF), [], []
    to_come = [message(0, end), message(0), message(1, end), message(0), message(0, end)]

    class Scripted:
        def subscribe(self, topics: list[str], on_assign: Callable, on_revoke: Callable) -> None:
            pass

        def consume(self, number: int, timeout: float) -> list[SimpleNamespace]:
            return [to_come.pop(0)]

        def assignment(self) -> list[TopicPartition]:
            return [TopicPartition("stock-prices", partition) for partition in (0, 1)]

        def unsubscribe(self) -> None:
            ending.append("unsubscribe")

        def poll(self, timeout: float) -> None:
            ending.append("poll")

        def close(self) -> None:
            ending.append("close")

    read_batches(Scripted(), "stock-prices", read.extend, until_end=True)  # type: ignore[arg-type]
    assert len(read) == 2 and not to_come
    assert ending == ["unsubscribe", "poll", "close"]  # closing beside a rebalance that nobody answers may wait for ever


@pytest.mark.parametrize(("code", "raises"), [(KafkaError._FATAL, False), (KafkaError._STATE, True)])
def test_who_is_fenced_closes_without_leaving(code: int, raises: bool) -> None:
    from stocks.loop import leave

    closed = []

    def unsubscribe() -> None:
        raise KafkaException(KafkaError(code))

    consumer = SimpleNamespace(unsubscribe=unsubscribe, close=lambda: closed.append(True))
    with pytest.raises(KafkaException) if raises else nullcontext():
        leave(consumer)  # type: ignore[arg-type]
    assert closed


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
    for (way, moment), cell in the_labs_table().items():
        outcome = outcomes[way, moment]
        assert outcome.reached == bool(cell), (way, moment)
        most, what = (re.findall(r"(\d+) (lost|doubled)", cell) or [(0, "")])[0]
        lost, doubled = (int(most) if what == name else 0 for name in ("lost", "doubled"))
        assert bool(outcome.lost) == bool(lost) and outcome.lost <= lost, (way, moment, outcome)
        assert bool(outcome.doubled) == bool(doubled) and outcome.doubled <= doubled, (way, moment, outcome)


def the_labs_table() -> dict[tuple[str, str], str]:
    """What the lab on delivery tells its readers, by way and moment: "20 lost", "up to 20 doubled", "–", or nothing where it never comes."""
    notebook = nbformat.read(SOLUTIONS / "04_consumer/04_delivery.ipynb", as_version=4)
    [text] = [cell.source for cell in notebook.cells if "| | before process |" in cell.source]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    [_, *moments], _, *ways = rows
    from stocks import delivery, trials

    assert tuple(moments) == trials.MOMENTS
    table = {(re.sub(r"\W+", "_", way), moment): cell for way, *cells in ways for moment, cell in zip(moments, cells, strict=True)}
    assert {way for way, _ in table} == set(delivery.__all__)
    return table


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
def test_a_conversion_is_killed_or_overslept_and_each_copy_is_committed_once(cluster: Cluster, prices: str) -> None:
    from stocks import converter, trials

    targets = {moment: f"copies-{moment.replace(' ', '-')}" for moment in trials.CONVERSION_MOMENTS}
    create(cluster, *targets.values())
    config = cluster.client_config()

    def run(moment: str) -> bool:
        return trials.try_conversion(config, prices, targets[moment], converter.convert, moment)

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(run, targets)) == [True] * 4
    wanted = Counter(read(cluster, prices, "read_committed"))
    assert wanted.total() == len(wanted) == 180
    for moment, aborted in {"amid process": 5, "before commit": 20, "after commit": 0, "asleep": 20}.items():
        assert Counter(read(cluster, targets[moment], "read_committed")) == wanted, moment
        found = read(cluster, targets[moment], "read_uncommitted")
        assert 180 + bool(aborted) <= len(found) <= 180 + aborted, moment  # a batch holds 20 at most


@pytest.mark.cluster
def test_copies_without_their_offsets_in_the_transaction_are_told_from_right_ones(cluster: Cluster, prices: str) -> None:
    """Which shows that the trial can fail."""
    from stocks import trials

    create(cluster, "copies-apart")
    assert trials.try_conversion(cluster.client_config(), prices, "copies-apart", convert_apart, "after commit")
    found = Counter(read(cluster, "copies-apart", "read_committed"))
    assert len(found) == 180 and found.total() > 180


def convert_apart(consumer: Consumer, producer: Producer, target: str, batch: list) -> None:
    from stocks.book import following

    producer.begin_transaction()
    for record in batch:
        producer.produce(target, key=record.key(), value=record.value())
    producer.commit_transaction()
    consumer.commit(offsets=following(batch), asynchronous=False)


def create(cluster: Cluster, *topics: str) -> None:
    admin = AdminClient(cluster.client_config())
    for created in admin.create_topics([NewTopic(topic, 3, 3) for topic in topics]).values():
        created.result()
    cluster.wait_for(lambda v: all(t in v.topics and None not in v.leaders(t).values() for t in topics), "the topics")


def read(cluster: Cluster, topic: str, isolation_level: str) -> list[bytes]:
    """All values of a topic of three partitions."""
    settings = cluster.client_config(group_id="reads-all", isolation_level=isolation_level, enable_auto_commit=False)
    consumer = Consumer({**settings, "enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(3)])
    values, ends = [], 0
    while ends < 3:
        message = consumer.poll(20)
        assert message is not None and (message.error() is None or message.error().code() == KafkaError._PARTITION_EOF)
        values, ends = (values, ends + 1) if message.error() else ([*values, message.value()], ends)
    consumer.close()
    return values


PROTOCOLS = {
    "eager": {"heartbeat.interval.ms": 200},
    "cooperative": {"heartbeat.interval.ms": 200, "partition.assignment.strategy": "cooperative-sticky"},
    "new protocol": {"group.protocol": "consumer"},
}


@pytest.mark.cluster
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_batches_are_booked_once_when_consumers_join_and_leave(
    cluster: Cluster, prices: str, tmp_path: Path, protocol: str
) -> None:
    from stocks.book import Book
    from stocks.loop import read_batches

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
    wait_until(lambda: batches["stays"], 30, "the first one to work")
    threads["joins"].start()
    wait_until(lambda: batches["joins"] >= 2, 30, "the second one to work", last_seen=lambda: (batches, raised))
    stops["joins"].set()
    threads["joins"].join(20)
    threads["joins later"].start()
    wait_until(lambda: len(book.bookings()) >= 180, 60, "all prices", last_seen=lambda: (len(book.bookings()), raised))
    for name, thread in threads.items():
        stops[name].set()
        thread.join(20)
        assert not thread.is_alive()
    assert not raised
    assert Counter(book.bookings()) == Counter(ALL)
    book.close()


@pytest.mark.cluster
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_callback_says_where_to_begin_whatever_the_protocol(cluster: Cluster, prices: str, protocol: str) -> None:
    from stocks.positions import at_offset, at_the_end, at_time

    def first_offsets(callback: Callable) -> dict[int, int]:
        settings = cluster.client_config(group_id=f"begins {protocol}", enable_auto_commit=False, enable_partition_eof=True)
        consumer, first = Consumer({**settings, **PROTOCOLS[protocol]}), {}
        consumer.subscribe([prices], on_assign=callback)
        while len(first) < 3:
            message = consumer.poll(20)
            first.setdefault(message.partition(), message.offset())
        consumer.close()
        return first

    assert first_offsets(at_offset(7)) == dict.fromkeys(range(3), 7)
    assert first_offsets(at_time(0)) == dict.fromkeys(range(3), 0)
    assert first_offsets(at_the_end()) == dict.fromkeys(range(3), 60)


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

    def start(topic: str = prices, servers: str = cluster.bootstrap_servers) -> subprocess.Popen:
        command = [sys.executable, "-m", "stocks.consumer_app", "--bootstrap-servers", servers, "--topic", topic]
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

    def begins(process: subprocess.Popen) -> dict[int, str]:
        told = [re.fullmatch(r"stock-prices \[(\d)\] from (.*)\n", process.stdout.readline()) for _ in range(3)]
        return {int(line[1]): line[2] for line in told}

    process = app()
    assert begins(process) == dict.fromkeys(range(3), "the beginning")
    assert process.stdout.readline().endswith(" prices, 0 set aside\n")  # it is in the middle of its work
    process.send_signal(number)
    assert process.wait(30) == (-9 if number == signal.SIGKILL else 128 + number)
    book = Book(tmp_path / "book.db")
    booked = {partition: str(offset + 1) for partition, offset in book.bookings()}  # the last one of each
    assert begins(app()) == {**dict.fromkeys(range(3), "the beginning"), **booked}
    wait_until(lambda: len(set(book.bookings())) >= 180, 120, "all prices", last_seen=lambda: len(book.bookings()))
    assert Counter(book.bookings()) == Counter(ALL)
    [(name, price)] = book.latest().items()
    assert name == "IBM" and price.dollars in (177, 178, 179) and price.cents == 5  # one of the three partitions' last ones


@pytest.mark.cluster
def test_one_right_address_is_enough(cluster: Cluster, app: Callable[..., subprocess.Popen], prices: str, tmp_path: Path) -> None:
    from stocks.book import Book

    right = cluster.bootstrap_servers.split(",")[0]
    process = app(prices, f"127.0.0.1:1,{right}")
    book = Book(tmp_path / "book.db")
    wait_until(lambda: len(book.bookings()) >= 180, 60, "all prices", last_seen=lambda: len(book.bookings()))
    process.terminate()
    assert process.wait(30) == 143
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

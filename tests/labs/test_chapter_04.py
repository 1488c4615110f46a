"""The labs of chapter 04: each wrong answer is told apart from the right one, with a sentence that helps."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from kafkalab import Cluster, ConsoleConsumer
from kafkalab.checks.sight import watermarks
from kafkalab.workers import wait_until_shared

from .support import Verdict

pytestmark = pytest.mark.cluster

Place = tuple[int, int]

EXAMPLE, GROUP = "my-example-topic", "KafkaExampleConsumer"


def create(cluster: Cluster, topic: str, partitions: int) -> None:
    admin = AdminClient(cluster.client_config())
    admin.create_topics([NewTopic(topic, partitions, 3)])[topic].result()
    cluster.wait_for(lambda view: topic in view.topics and None not in view.leaders(topic).values(), topic)


def greet(cluster: Cluster, count: int, partitions: int = 13) -> list[Place]:
    """Send greetings, in turn to all partitions; where they are, by partition."""
    places: list[Place] = []
    producer = Producer(cluster.client_config())
    for number in range(count):
        producer.produce(
            EXAMPLE,
            key=number.to_bytes(8, "big"),
            value=f"Hello Mom {number}",
            partition=number % partitions,
            on_delivery=lambda error, m: places.append((m.partition(), m.offset())),
        )
    producer.flush()
    return sorted(places)


def commit(cluster: Cluster, group: str, topic: str, *, behind: int = 0, partitions: list[int] | None = None) -> None:
    """Commit a group as having read all but `behind` records of these partitions, without joining it."""
    consumer = Consumer(cluster.client_config(group_id=group))
    ends = {p: end for p, (_, end) in watermarks(cluster, topic).items() if partitions is None or p in partitions}
    offsets = [TopicPartition(topic, p, max(0, end - behind)) for p, end in ends.items()]
    consumer.commit(offsets=offsets, asynchronous=False)
    consumer.close()


@contextmanager
def members(cluster: Cluster, group: str, number: int) -> Iterator[list[ConsoleConsumer]]:
    with ExitStack() as stack:
        joined = [stack.enter_context(ConsoleConsumer(cluster, EXAMPLE, group=group)) for _ in range(number)]
        wait_until_shared(*joined)
        yield joined


# -- 04_poll_loop ---------------------------------------------------------------------------------------------------


def never_committed(cluster: Cluster) -> list[Place]:
    commit(cluster, GROUP, EXAMPLE, partitions=[12])
    return greet(cluster, 5)


def committed_the_last_one_read(cluster: Cluster) -> list[Place]:
    places = greet(cluster, 5)
    commit(cluster, GROUP, EXAMPLE, behind=1)
    return places


def began_with_the_latest(cluster: Cluster) -> list[Place]:
    places = greet(cluster, 5)
    commit(cluster, GROUP, EXAMPLE)
    return places[3:]


def kept_nothing(cluster: Cluster) -> list[Place]:
    greet(cluster, 5)
    commit(cluster, GROUP, EXAMPLE)
    return []


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (never_committed, "committed nothing in partition 0"),
        (committed_the_last_one_read, "Committed is the *next* offset"),
        (began_with_the_latest, "did not read offset 0 of partition 0 (3 of 5 are missing)"),
        (kept_nothing, "Give check() your answer as read="),
    ],
)
def test_poll_loop_wrong(clean: Cluster, verdict: Verdict, wrong: Callable[[Cluster], list[Place]], says: str) -> None:
    create(clean, EXAMPLE, 13)
    passed, printed = verdict("04_poll_loop", clean, read=wrong(clean))
    assert not passed
    assert says in printed


def test_poll_loop_right_and_in_a_topic_of_another_shape(clean: Cluster, verdict: Verdict) -> None:
    create(clean, EXAMPLE, 13)
    places = greet(clean, 5)
    commit(clean, GROUP, EXAMPLE)
    passed, printed = verdict("04_poll_loop", clean, read=places)
    assert passed, printed
    passed, printed = verdict("04_poll_loop", clean, read=[*places, places[0]])
    assert not passed and "more than once" in printed


# -- 04_same_group, 04_batch_size -----------------------------------------------------------------------------------


def test_same_group(clean: Cluster, verdict: Verdict) -> None:
    create(clean, EXAMPLE, 13)
    places = greet(clean, 25)
    commit(clean, GROUP, EXAMPLE)
    read = {"a": [p for p in places if p[0] < 5], "b": [p for p in places if 5 <= p[0] < 9], "c": [p for p in places if p[0] > 8]}
    with members(clean, GROUP, 3):
        passed, printed = verdict("04_same_group", clean, read=read)
        assert passed, printed
        wrong = {
            "Is this group new": {**read, "c": [*read["c"], *read["a"]]},
            "Did you wait for all of them?": {**read, "c": []},
            "read by more than one of them": {**read, "c": read["a"][: len(read["c"])]},
            "was read by a and b": {**read, "a": read["a"][1:], "b": [*read["b"], read["a"][0]]},
        }
        for says, answer in wrong.items():
            passed, printed = verdict("04_same_group", clean, read=answer)
            assert not passed and says in printed
    with members(clean, GROUP, 2):
        passed, printed = verdict("04_same_group", clean, read=read)
        assert not passed and "has 2 members, not 3" in printed


def test_batch_size(clean: Cluster, verdict: Verdict) -> None:
    create(clean, EXAMPLE, 13)
    places = greet(clean, 535)[30:]
    fives = [places[n : n + 5] for n in range(0, 405, 5)]
    right = {5: fives, 500: [places[405:]]}
    with members(clean, GROUP, 1):
        passed, printed = verdict("04_batch_size", clean, polls=right)
        assert "✓ the last member owns all 13" in printed
        wrong = {
            "a call returned 6 records": {5: [places[:6], *fives], 500: right[500]},
            "no call returned more than 5": {5: fives, 500: [places[n : n + 5] for n in range(405, 505, 5)]},
            "No batch held records of two partitions": {5: fives, 500: [[p for p in places if p[0] == 3]]},
            "505 were to be": {5: fives[1:], 500: right[500]},
            "No batch of the large kind": {5: fives, 500: []},
        }
        for says, answer in wrong.items():
            passed, printed = verdict("04_batch_size", clean, polls=answer)
            assert not passed and says in printed
    commit(clean, GROUP, EXAMPLE)
    passed, printed = verdict("04_batch_size", clean, polls=right)
    assert not passed and "has 0 members, not 1" in printed


# -- 04_different_groups --------------------------------------------------------------------------------------------


def test_different_groups(clean: Cluster, verdict: Verdict) -> None:
    create(clean, EXAMPLE, 13)
    places = greet(clean, 35)
    names = [f"{GROUP}-{n}" for n in range(3)]
    for name in names[:2]:
        commit(clean, name, EXAMPLE)
    read = dict.fromkeys(names, places)
    passed, printed = verdict("04_different_groups", clean, read=read)
    assert not passed and "There are 2 groups whose names begin" in printed
    commit(clean, names[2], EXAMPLE)
    passed, printed = verdict("04_different_groups", clean, read=read)
    assert passed, printed
    passed, printed = verdict("04_different_groups", clean, read={**read, names[1]: places[30:]})
    assert not passed and "(30 of 35 are missing)" in printed


# -- 04_delivery, 04_exactly_once: books as the trials leave them ---------------------------------------------------

PRICES, COPIES = "stock-prices", "copies"
AROUND = ("before process", "after process", "after commit")


def load(cluster: Cluster, count: int = 60) -> list[Place]:
    create(cluster, PRICES, 3)
    producer = Producer(cluster.client_config())
    for number in range(count):
        producer.produce(PRICES, key="IBM", value=f'{{"name": "IBM", "dollars": {number}, "cents": 1}}', partition=number % 3)
    producer.flush()
    return [(number % 3, number // 3) for number in range(count)]


def write_book(folder: Path, way: str, moment: str, places: list[Place]) -> None:
    path = folder / f"{way}, {moment}.db"
    path.unlink(missing_ok=True)
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE bookings (part INTEGER, place INTEGER)")
        database.executemany("INSERT INTO bookings VALUES (?, ?)", places)
    database.close()


def test_delivery(clean: Cluster, verdict: Verdict, tmp_path: Path) -> None:
    places = load(clean)
    lost, doubled, one_doubled = places[20:], places + places[:20], places + places[:1]

    def right() -> None:
        for way, outcomes in {
            "at_most_once": (lost, places, lost),
            "at_least_once": (places, doubled, places),
            "each_record_at_least_once": (places, one_doubled, places),
        }.items():
            for moment, booked in zip(AROUND, outcomes, strict=True):
                write_book(tmp_path, way, moment, booked)

    passed, printed = verdict("04_delivery", clean, folder=tmp_path)
    assert not passed and "There is no book of at_most_once" in printed
    right()
    passed, printed = verdict("04_delivery", clean, folder=tmp_path)
    assert passed, printed
    wrong = [
        ("at_most_once", "before process", places, "lost nothing, so it cannot have committed before"),  # the two swapped
        ("at_most_once", "after process", doubled, "At most once means never twice"),
        ("at_least_once", "before process", lost, "At least once means that none is ever lost"),  # the two swapped
        ("at_least_once", "after process", places, "Does it commit at all, and to Kafka?"),
        ("at_least_once", "after commit", one_doubled, "Which offset was committed?"),  # the last one read, without + 1
        ("each_record_at_least_once", "after process", doubled, "doubled 20"),  # the whole batch
        ("each_record_at_least_once", "after process", [], "booked nothing at all"),
    ]
    for way, moment, booked, says in wrong:
        right()
        write_book(tmp_path, way, moment, booked)
        passed, printed = verdict("04_delivery", clean, folder=tmp_path)
        assert not passed and says in printed, printed


def test_exactly_once(clean: Cluster, verdict: Verdict, tmp_path: Path) -> None:
    places = load(clean)
    moments = ("before process", "amid process", "after process", "asleep")
    for moment in moments:
        write_book(tmp_path, "exactly_once", moment, places)
    passed, printed = verdict("04_exactly_once", clean, folder=tmp_path)
    assert passed, printed
    for moment, booked, says in [
        ("after process", places + places[:20], "0 lost, 20 doubled"),  # positions in a transaction of their own
        ("asleep", places + places[:20], "asleep: 0 lost, 20 doubled"),
        ("amid process", places[1:], "1 lost, 0 doubled"),
    ]:
        write_book(tmp_path, "exactly_once", moment, booked)
        passed, printed = verdict("04_exactly_once", clean, folder=tmp_path)
        assert not passed and says in printed
        write_book(tmp_path, "exactly_once", moment, places)


LIVE = "stock-prices-live"


def test_application(clean: Cluster, verdict: Verdict, tmp_path: Path) -> None:
    create(clean, LIVE, 3)
    producer = Producer(clean.client_config())
    for number in range(60):
        value = f'{{"name": "S{number % 3}", "dollars": {number}, "cents": 1}}'
        producer.produce(LIVE, key=f"S{number % 3}", value=value, partition=number % 3)
    producer.flush()
    places = [(number % 3, number // 3) for number in range(60)]
    prices = {"S0": 5701, "S1": 5801, "S2": 5901}
    ten, all_of_it = dict.fromkeys(range(3), 10), dict.fromkeys(range(3), 20)
    endings = {"SIGINT": (130, {}), "SIGTERM": (143, ten), "SIGKILL": (-9, all_of_it)}
    begun = [dict.fromkeys(range(3), 0), dict.fromkeys(range(3), 0), ten, all_of_it]
    book = tmp_path / "book.db"

    def write(booked: list[Place] = places, latest: dict[str, int] = prices) -> None:
        book.unlink(missing_ok=True)
        with sqlite3.connect(book) as database:
            database.execute("CREATE TABLE bookings (part INTEGER, place INTEGER)")
            database.executemany("INSERT INTO bookings VALUES (?, ?)", booked)
            database.execute("CREATE TABLE latest (name TEXT, cents INTEGER)")
            database.executemany("INSERT INTO latest VALUES (?, ?)", list(latest.items()))
        database.close()

    verdict.says("Give check() your answer as endings=", "04_application", clean, endings={}, begun=[{}], book=book)
    verdict.says("The application has no book yet", "04_application", clean, endings=endings, begun=begun, book=book)
    write()
    verdict.passes("04_application", clean, endings=endings, begun=begun, book=book)
    for says, given in {
        "was not ended by SIGKILL yet": {"endings": {name: endings[name] for name in ("SIGINT", "SIGTERM")}, "begun": begun[:3]},
        "SIGTERM ended it with exit status None, not 143": {"endings": {**endings, "SIGTERM": (None, ten)}},  # not waited for
        "SIGINT ended it with exit status 1, not 130": {"endings": {**endings, "SIGINT": (1, {})}},
        "3 endings and 3 starts": {"begun": begun[:3]},
        "After SIGTERM it was to go on at 10 in partition 0, and it began at 12": {"begun": [*begun[:2], {**ten, 0: 12}, begun[3]]},
        "it began at None": {"begun": [*begun[:2], {}, begun[3]]},
    }.items():
        verdict.says(says, "04_application", clean, **{"endings": endings, "begun": begun, "book": book, **given})
    write(booked=places + places[:20])  # a commit after the booking
    verdict.says("0 lost, 20 doubled", "04_application", clean, endings=endings, begun=begun, book=book)
    write(booked=places[1:])
    verdict.says("1 lost, 0 doubled", "04_application", clean, endings=endings, begun=begun, book=book)
    write(latest={**prices, "S1": 5501})  # a row that is written once and never again
    verdict.says("The book's price of S1 is not the last one", "04_application", clean, endings=endings, begun=begun, book=book)
    write(latest={"S0": 5701})
    verdict.says("The book knows no price of S1", "04_application", clean, endings=endings, begun=begun, book=book)


# -- 04_transactions ------------------------------------------------------------------------------------------------


def copy(cluster: Cluster, numbers: range, *, commit: bool = True) -> None:
    producer = Producer(cluster.client_config(transactional_id="test"))
    producer.init_transactions()
    producer.begin_transaction()
    for number in numbers:
        producer.produce(COPIES, key="IBM", value=f'{{"name": "IBM", "dollars": {number}, "cents": 1}}')
    producer.flush()
    producer.commit_transaction() if commit else producer.abort_transaction()


def test_transactions(clean: Cluster, verdict: Verdict) -> None:
    load(clean)
    create(clean, COPIES, 3)
    passed, printed = verdict("04_transactions", clean, convert=aborts)
    assert not passed and "Nothing that is committed stands in copies" in printed
    copy(clean, range(59))
    passed, printed = verdict("04_transactions", clean, convert=aborts)
    assert not passed and "1 price of stock-prices is not in copies" in printed and "Both isolation levels show the same" in printed
    copy(clean, range(59, 60))
    copy(clean, range(20), commit=False)
    passed, printed = verdict("04_transactions", clean, convert=aborts)
    assert passed, printed
    copy(clean, range(5))  # offsets that are not in the transaction: read again
    passed, printed = verdict("04_transactions", clean, convert=aborts)
    assert not passed and "holds 5 records too many" in printed


def aborts(consumer: Consumer, producer: Producer, target: str, records: list) -> None:
    producer.begin_transaction()
    try:
        for record in records:
            producer.produce(target, record.value(), record.key())
        producer.commit_transaction()
    except BaseException:
        producer.abort_transaction()
        raise


def leaves_it_open(consumer: Consumer, producer: Producer, target: str, records: list) -> None:
    producer.begin_transaction()
    for record in records:
        producer.produce(target, record.value(), record.key())
    producer.commit_transaction()


def aborts_for_kafka_only(consumer: Consumer, producer: Producer, target: str, records: list) -> None:
    try:
        leaves_it_open(consumer, producer, target, records)
    except KafkaException:
        producer.abort_transaction()
        raise


def swallows_it(consumer: Consumer, producer: Producer, target: str, records: list) -> None:
    with suppress(Exception):
        aborts(consumer, producer, target, records)


def without_a_transaction(consumer: Consumer, producer: Producer, target: str, records: list) -> None:
    for record in records:
        producer.produce(target, record.value(), record.key())


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda *_: None, "convert began no transaction"),  # untouched
        (without_a_transaction, "convert began no transaction"),
        (leaves_it_open, "the transaction was left open"),
        (aborts_for_kafka_only, "Is it a KafkaException?"),
        (swallows_it, "convert returned as if the batch had been copied"),
        (lambda *_: 1 / 0, "convert another one, ZeroDivisionError"),
    ],
)
def test_transactions_that_are_left_open(verdict: Verdict, wrong: Callable, says: str, cluster: Cluster) -> None:
    verdict.says(says, "04_transactions", cluster, convert=wrong)


# -- 04_dead_letters, 04_positions ----------------------------------------------------------------------------------

DEAD = "stock-prices-dead-letters"
NEW_YEAR = 1_704_067_200_000
BAD = [None, b"\xff\xfe", b"IBM 99.50", b'{"name": "IBM"}', b'{"name": "IBM", "dollars": 99, "cents": -5}']


def load_with_bad(cluster: Cluster) -> None:
    """Sixty prices, 20 in each partition, then the bad ones in partition 0."""
    load(cluster)
    create(cluster, DEAD, 1)
    producer = Producer(cluster.client_config())
    for value in BAD:
        producer.produce(PRICES, key="IBM", value=value, partition=0, timestamp=NEW_YEAR)
    producer.flush()


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
        (NeverFlushes, "nothing was flushed. The batch is committed next"),
        (FlushesTooEarly, "nothing was flushed. The batch is committed next"),
        (LooksAway, "What does flush() return?"),
        (CountsOnly, "A dead letter was given up"),
        (Stops, "handle raised ValueError: not a stock price"),
    ],
)
def test_dead_letters_that_are_not_safe_when_the_batch_is_committed(verdict: Verdict, wrong: type, says: str, cluster: Cluster) -> None:
    verdict.says(says, "04_dead_letters", cluster, handler=wrong, prices={})


def test_dead_letters(clean: Cluster, verdict: Verdict) -> None:
    load_with_bad(clean)
    commit(clean, "latest-prices", PRICES)
    right = {"IBM": "IBM 59.01"}  # whatever partition it came from, the check takes the last one that it reads
    for number, value in enumerate(BAD[:4]):
        bury(clean, 20 + number, value)
    passed, printed = verdict("04_dead_letters", clean, handler=SetsAside, prices=right)
    assert not passed and "(1 of 5 are missing)" in printed
    bury(clean, 24, BAD[4])
    passed, printed = verdict("04_dead_letters", clean, handler=SetsAside, prices=right)
    assert passed, printed
    for prices, says in [({}, "Give check() your answer"), ({"SUN": "SUN 1.01"}, "no price of IBM"), ({"IBM": "IBM 0.01"}, "not the latest")]:
        passed, printed = verdict("04_dead_letters", clean, handler=SetsAside, prices=prices)
        assert not passed and says in printed
    bury(clean, 20, b"")  # null made empty
    passed, printed = verdict("04_dead_letters", clean, handler=SetsAside, prices=right)
    assert not passed and "also when it is null" in printed
    bury(clean, 20, None)
    bury(clean, 3, b"{}")
    passed, printed = verdict("04_dead_letters", clean, handler=SetsAside, prices=right)
    assert not passed and "was set aside, but it is a stock price" in printed


def test_dead_letters_without_headers_and_a_group_that_stopped(clean: Cluster, verdict: Verdict) -> None:
    load_with_bad(clean)
    commit(clean, "latest-prices", PRICES, behind=5)
    producer = Producer(clean.client_config())
    producer.produce(DEAD, key="IBM", value=BAD[1])
    producer.flush()
    passed, printed = verdict("04_dead_letters", clean, prices={"IBM": "IBM 59.01"})
    assert not passed and "A dead letter has the headers none" in printed and "5 records behind the end" in printed


def test_positions(clean: Cluster, verdict: Verdict) -> None:
    load(clean)  # sent today: all of it after New Year 2024
    zero, end = dict.fromkeys(range(3), 0), dict.fromkeys(range(3), 20)
    seven = dict.fromkeys(range(3), 7)
    right = {"beginning": zero, "end": end, "offset 7": seven, "70 ms after New Year": zero, "a day later": end}
    verdict.passes("04_positions", clean, begun=right, callbacks=callbacks_that_go_back(seen=True))
    for where, says in {
        "beginning": "Who says where to begin",
        "offset 7": "Is the offset set before",
        "70 ms after New Year": "not older; in milliseconds",
    }.items():
        begun = {**right, where: end}  # on_assign that changes nothing
        verdict.says(says, "04_positions", clean, begun=begun, callbacks=callbacks_that_go_back(seen=True))
    for callbacks, says in [
        (callbacks_that_go_back(seen=False), "offset 7: the group shares anew, the same partition is assigned once more"),  # the seed's listener
        ({"end": lambda consumer, partitions: consumer.assign(partitions)}, "begins where the group has committed"),  # untouched
        ({"end": lambda consumer, partitions: [setattr(p, "offset", 7) for p in partitions]}, "begins where the group has committed"),
        ({"offset 7": only_the_first_call()}, "offset 7: a second partition is assigned later"),
        ({"end": lambda consumer: None}, "end: your callback raised TypeError"),
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


def by_time(*, seen: bool) -> Callable:
    known: set[int] = set()

    def on_assign(consumer: Consumer, partitions: list[TopicPartition]) -> None:
        new = [p for p in partitions if not seen or p.partition not in known]
        known.update(p.partition for p in partitions)
        asked = [TopicPartition(p.topic, p.partition, NEW_YEAR) for p in new]
        consumer.incremental_assign([p for p in partitions if p not in new] + consumer.offsets_for_times(asked, timeout=10))

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

"""Books and topics as the trials leave them: each wrong answer gets its sentence, and the right ones pass."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer

from kafkacourse.stocks.transactions import until_done
from kafkalab import Cluster
from support import Place, Verdict, create, put

pytestmark = pytest.mark.cluster

# -- 04_delivery, 04_exactly_once: books as the trials leave them ---------------------------------------------------

PRICES, COPIES = "stock-prices", "copies"
AROUND = ("before processing", "after processing", "after commit")


def price(dollars: int, name: str = "IBM") -> str:
    return f'{{"name": "{name}", "dollars": {dollars}, "cents": 1}}'


def load(cluster: Cluster, count: int = 60) -> list[Place]:
    create(cluster, PRICES, 3)
    return put(cluster, PRICES, [("IBM", price(number), number % 3) for number in range(count)])


def write_book(folder: Path, way: str, moment: str, places: list[Place]) -> None:
    path = folder / f"{way}, {moment}.db"
    path.unlink(missing_ok=True)
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE bookings (part INTEGER, place INTEGER)")
        database.executemany("INSERT INTO bookings VALUES (?, ?)", places)
    database.close()


def test_delivery(clean: Cluster, verdict: Verdict, tmp_path: Path) -> None:
    places = load(clean)
    lost, twice, one_twice = places[20:], places + places[:20], places + places[:1]

    def right() -> None:
        for way, outcomes in {
            "at_most_once": (lost, places, lost),
            "at_least_once": (places, twice, places),
            "each_record_at_least_once": (places, one_twice, places),
        }.items():
            for moment, booked in zip(AROUND, outcomes, strict=True):
                write_book(tmp_path, way, moment, booked)

    verdict.says("There is no book of at_most_once", "04_delivery", clean, folder=tmp_path)
    right()
    verdict.passes("04_delivery", clean, folder=tmp_path)
    wrong = [
        ("at_most_once", "before processing", places, "lost nothing, so it can't have committed before"),  # the two swapped
        ("at_most_once", "after processing", twice, "At most once allows none"),
        ("at_least_once", "before processing", lost, "At least once allows no loss"),  # the two swapped
        ("at_least_once", "after processing", places, "Does it commit at all, and does it"),
        ("at_least_once", "after commit", one_twice, "Which offset does it commit?"),  # the last one read, without + 1
        ("each_record_at_least_once", "after processing", twice, "booked 20 duplicates"),  # the whole batch
        ("each_record_at_least_once", "after processing", [], "it booked nothing at all"),
    ]
    for way, moment, booked, says in wrong:
        right()
        write_book(tmp_path, way, moment, booked)
        verdict.says(says, "04_delivery", clean, folder=tmp_path)


def test_exactly_once(clean: Cluster, verdict: Verdict, tmp_path: Path) -> None:
    places = load(clean)
    moments = ("before processing", "during processing", "after processing", "asleep")
    for moment in moments:
        write_book(tmp_path, "exactly_once", moment, places)
    verdict.passes("04_exactly_once", clean, folder=tmp_path)
    for moment, booked, says in [
        ("after processing", places + places[:20], "0 lost, 20 duplicates"),  # positions in a transaction of their own
        ("asleep", places + places[:20], "asleep: 0 lost, 20 duplicates"),
        ("during processing", places[1:], "1 lost, 0 duplicates"),
    ]:
        write_book(tmp_path, "exactly_once", moment, booked)
        verdict.says(says, "04_exactly_once", clean, folder=tmp_path)
        write_book(tmp_path, "exactly_once", moment, places)


LIVE = "stock-prices-live"


def test_application(clean: Cluster, verdict: Verdict, tmp_path: Path) -> None:
    create(clean, LIVE, 3)
    places = put(clean, LIVE, [(f"S{number % 3}", price(number, f"S{number % 3}"), number % 3) for number in range(60)])
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

    verdict.says("`endings` is empty", "04_application", clean, endings={}, begun=[{}], book=book)
    verdict.says("The application has no book yet", "04_application", clean, endings=endings, begun=begun, book=book)
    write()
    verdict.passes("04_application", clean, endings=endings, begun=begun, book=book)
    for says, given in {
        "SIGKILL hasn't ended the application": {"endings": dict(list(endings.items())[:2]), "begun": begun[:3]},
        "After SIGTERM its exit status was None, not 143": {"endings": {**endings, "SIGTERM": (None, ten)}},  # not waited for
        "After SIGINT its exit status was 1, not 130": {"endings": {**endings, "SIGINT": (1, {})}},
        "3 endings and 3 starts": {"begun": begun[:3]},
        "After SIGTERM the book said 10 for partition 0, and the next start began at 12": {
            "begun": [*begun[:2], {**ten, 0: 12}, begun[3]]
        },
        "the next start began at None": {"begun": [*begun[:2], {}, begun[3]]},
    }.items():
        verdict.says(says, "04_application", clean, **{"endings": endings, "begun": begun, "book": book, **given})
    write(booked=places + places[:20])  # a commit after the booking
    verdict.says("0 lost, 20 duplicates", "04_application", clean, endings=endings, begun=begun, book=book)
    write(booked=places[1:])
    verdict.says("1 lost, 0 duplicates", "04_application", clean, endings=endings, begun=begun, book=book)
    write(latest={**prices, "S1": 5501})  # a row that is written once and never again
    verdict.says("The book's price of S1 isn't the last one", "04_application", clean, endings=endings, begun=begun, book=book)
    write(latest={"S0": 5701})
    verdict.says("The book has no price of S1", "04_application", clean, endings=endings, begun=begun, book=book)


# -- 04_transactions ------------------------------------------------------------------------------------------------


def copy(cluster: Cluster, numbers: range, *, commit: bool = True) -> None:
    producer = Producer(cluster.client_config(transactional_id="test"))
    producer.init_transactions()
    producer.begin_transaction()
    for number in numbers:
        producer.produce(COPIES, key="IBM", value=price(number))
    producer.flush()
    producer.commit_transaction() if commit else producer.abort_transaction()


def test_transactions(clean: Cluster, verdict: Verdict) -> None:
    load(clean)
    create(clean, COPIES, 3)
    verdict.says("With read_committed, copies is empty", "04_transactions", clean, convert=aborts)
    copy(clean, range(59))
    verdict.says("1 price of stock-prices is not in copies", "04_transactions", clean, convert=aborts)
    copy(clean, range(59, 60))
    verdict.says("Both isolation levels return the same", "04_transactions", clean, convert=aborts)
    copy(clean, range(20), commit=False)
    verdict.passes("04_transactions", clean, convert=aborts)
    copy(clean, range(5))  # offsets that are not in the transaction: read again
    verdict.says("holds 5 duplicates", "04_transactions", clean, convert=aborts)


def aborts(consumer: Consumer, producer: Producer, target: str, records: list) -> None:
    copies_with(producer, target, records, until_done)


def copies_with(producer: Producer, target: str, records: list, call: Callable, fatal: bool = True) -> None:
    """Copies records, makes the calls of the transaction by another function, and may look for fatal errors."""
    producer.begin_transaction()
    try:
        for record in records:
            producer.produce(target, record.value(), record.key())
        call(producer.send_offsets_to_transaction, [], None)
        call(producer.commit_transaction)
    except BaseException as error:
        if not (fatal and isinstance(error, KafkaException) and error.args[0].fatal()):
            call(producer.abort_transaction)
        raise


def tries_once(consumer: Consumer, producer: Producer, target: str, records: list) -> None:
    copies_with(producer, target, records, lambda call, *arguments: call(*arguments))


def aborts_after_a_fatal_error(consumer: Consumer, producer: Producer, target: str, records: list) -> None:
    copies_with(producer, target, records, until_done, fatal=False)


def swallows_what_is_fatal(consumer: Consumer, producer: Producer, target: str, records: list) -> None:
    with suppress(KafkaException):
        aborts(consumer, producer, target, records)


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
        (leaves_it_open, "convert left the transaction open"),
        (aborts_for_kafka_only, "Is every error a KafkaException?"),
        (swallows_it, "convert returned as if it had copied the batch"),
        (lambda *_: 1 / 0, "convert raised another one, ZeroDivisionError"),
        (tries_once, "send_offsets_to_transaction raised an error that is retriable() once, and convert raised"),
        (aborts_after_a_fatal_error, "and convert raised another one. Who has to hear of the first?"),
        (swallows_what_is_fatal, "and convert returned. Who has to hear of the first?"),
    ],
)
def test_transactions_that_are_left_open(verdict: Verdict, wrong: Callable, says: str, cluster: Cluster) -> None:
    verdict.says(says, "04_transactions", cluster, convert=wrong)

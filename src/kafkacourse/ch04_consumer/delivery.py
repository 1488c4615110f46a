"""At most once, at least once, exactly once: what the trials left in their books and topics."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from kafkacourse.stocks.prices import deserialize
from kafkalab.checks.context import CheckContext, Unmet
from kafkalab.checks.groups import Place, places
from kafkalab.checks.lab import Lab
from kafkalab.checks.requirements import Probe
from kafkalab.checks.topics import existing
from kafkalab.checks.wording import counted

__all__ = ["lab"]

PRICES, COPIES, LIVE = "stock-prices", "copies", "stock-prices-live"

lab = Lab("04_delivery")

# -- 2: two lines, in two orders ------------------------------------------------------------------------------------

AROUND = ("before processing", "after processing", "after commit")


def _rows(book: Path, sql: str) -> list[tuple[Any, ...]]:
    with sqlite3.connect(book) as database:
        found = database.execute(sql).fetchall()
    database.close()
    return found


def _outcomes(ctx: CheckContext, way: str, moments: Iterable[str]) -> dict[str, tuple[int, int]]:
    """Return, for each trial of a function, how many records its book lacks, and how many duplicates it holds."""
    folder = ctx.answer("folder", Path, "the folder with the books of the trials")
    sent = places(ctx, PRICES)
    outcomes = {}
    for moment in moments:
        book = folder / f"{way}, {moment}.db"
        if not book.is_file():
            raise Unmet(f"There is no book of {way}, killed {moment}. Did you run the trials?")
        booked: Counter[Place] = Counter(_rows(book, "SELECT part, place FROM bookings"))
        if not booked:
            raise Unmet(f"The book of {way}, killed {moment}, is empty: it booked nothing at all.")
        outcomes[moment] = len(sent - booked.keys()), booked.total() - len(booked)
    return outcomes


delivery = lab.add_check(
    "04_delivery",
    "At most once, at least once",
    hints=(
        "There are two lines, the same in both functions.",
        "`book.add(records)` and `consumer.commit(offsets=following(records), asynchronous=False)`.",
        "For one record: `book.add([record])`, and `consumer.commit(record, asynchronous=False)`, which commits the offset "
        "after it.",
    ),
)


@delivery.requires("at_most_once loses records when killed before it processes, and books no duplicates")
def at_most_once(ctx: CheckContext) -> None:
    outcomes = _outcomes(ctx, "at_most_once", AROUND)
    for moment, (_, duplicates) in outcomes.items():
        if duplicates:
            raise Unmet(f"at_most_once, killed {moment}, booked {counted(duplicates, 'duplicate')}. At most once allows none.")
    if not outcomes["before processing"][0]:
        raise Unmet(
            "at_most_once, killed before it processed, lost nothing, so it can't have committed before. Which comes first?"
        )
    if outcomes["after processing"][0]:
        raise Unmet("at_most_once, killed after it had processed a batch, lost records. Does it book each batch as a whole?")


def _at_least_once(way: str, most: int) -> Probe:
    """Return a probe: a function must never lose a record, and book at most this many duplicates."""

    def probe(ctx: CheckContext) -> None:
        outcomes = _outcomes(ctx, way, AROUND)
        for moment, (lost, _) in outcomes.items():
            if lost:
                raise Unmet(f"{way}, killed {moment}, lost {counted(lost, 'record')}. At least once allows no loss.")
        if again := outcomes["after commit"][1]:
            raise Unmet(f"{way}, killed after its commit, booked {counted(again, 'duplicate')}. Which offset does it commit?")
        duplicates = outcomes["after processing"][1]
        if not duplicates:
            raise Unmet(
                f"{way}, killed between its booking and its commit, booked no duplicate. Does it commit at all, and does it "
                "commit to Kafka?"
            )
        if duplicates > most:
            raise Unmet(
                f"{way}, killed after its second booking, booked {counted(duplicates, 'duplicate')}. How many records should "
                "there be between two commits?"
            )

    return probe


delivery.requires("at_least_once books duplicates when killed after it processed, and loses nothing")(
    _at_least_once("at_least_once", 20)
)
delivery.requires("Record by record, there is at most one duplicate")(_at_least_once("each_record_at_least_once", 1))

# -- 3: exactly once, by the database -------------------------------------------------------------------------------

exactly_once = lab.add_check(
    "04_exactly_once",
    "Exactly once, by the database",
    hints=(
        "Is there a method of the book that writes more than the bookings?",
        "It is one line, and no commit.",
    ),
)


@exactly_once.requires("exactly_once loses nothing and books no duplicates at any moment")
def nothing_lost_nothing_twice(ctx: CheckContext) -> None:
    moments = ("before processing", "during processing", "after processing", "asleep")
    for moment, (lost, duplicates) in _outcomes(ctx, "exactly_once", moments).items():
        if lost or duplicates:
            raise Unmet(
                f"exactly_once, {moment}: {lost} lost, {counted(duplicates, 'duplicate')}. Are the bookings and the positions "
                "written in the same transaction of the database?"
            )


application = lab.add_check(
    "04_application",
    "An application that ends and continues",
    hints=(
        "In the loop: start it, send the signal, and wait until it has ended. Only then ask the book.",
        "`app.send_signal(getattr(signal, name))`, `app.communicate(timeout=30)`, `app.returncode`.",
        "`endings[name] = app.returncode, goes_on()` and `begun.append(begins)`.",
    ),
)

STATUS = {"SIGINT": 130, "SIGTERM": 143, "SIGKILL": -9}


def _endings(ctx: CheckContext) -> dict[str, tuple[int | None, dict[int, int]]]:
    what = "signal → (exit status, where to go on by the book)"
    return ctx.answer("endings", dict[str, tuple[int | None, dict[int, int]]], what)


@application.requires("Each of the three signals ends it with the right exit status")
def signals_end_it(ctx: CheckContext) -> None:
    endings = _endings(ctx)
    for name, status in STATUS.items():
        if name not in endings:
            raise Unmet(f"{name} hasn't ended the application yet.")
        if endings[name][0] != status:
            raise Unmet(
                f"After {name} its exit status was {endings[name][0]}, not {status}. Was it still working, and had it ended "
                "when you looked?"
            )


@application.requires("Each start continues after the last price that is booked", after=signals_end_it)
def starts_continue(ctx: CheckContext) -> None:
    endings = _endings(ctx)
    begun = ctx.answer("begun", list[dict[int, int]], "where each start of the application began")
    if len(begun) != len(endings) + 1:
        raise Unmet(
            f"{len(endings)} endings and {counted(len(begun), 'start')}: does the list hold each start, including the last?"
        )
    for (name, (_, booked)), begins in zip(endings.items(), begun[1:], strict=True):
        for partition, position in booked.items():
            if begins.get(partition) != position:
                raise Unmet(
                    f"After {name} the book said {position} for partition {partition}, and the next start began at "
                    f"{begins.get(partition)}. When did you ask the book?"
                )


def _asked(ctx: CheckContext, sql: str) -> list[tuple[Any, ...]]:
    book = ctx.answer("book", Path, "the file of the application's book")
    if not book.is_file():
        raise Unmet("The application has no book yet. Did you start it?")
    return _rows(book, sql)


@application.requires("Every price is booked once")
def booked_once(ctx: CheckContext) -> None:
    booked: Counter[Place] = Counter(_asked(ctx, "SELECT part, place FROM bookings"))
    lost, duplicates = len(places(ctx, LIVE) - booked.keys()), booked.total() - len(booked)
    if lost or duplicates:
        raise Unmet(f"The application's book: {lost} lost, {counted(duplicates, 'duplicate')}. Did it read to the end?")


@application.requires("The book's price of each stock is the topic's last one", after=booked_once)
def latest_is_booked(ctx: CheckContext) -> None:
    wanted: dict[str, int] = {}
    for m in ctx.records(LIVE):
        price = deserialize(m.value())
        wanted[price.name] = 100 * price.dollars + price.cents
    found: dict[str, int] = dict(_asked(ctx, "SELECT name, cents FROM latest"))
    if missing := sorted(wanted.keys() - found.keys()):
        raise Unmet(f"The book has no price of {missing[0]}.")
    if wrong := sorted(name for name, cents in wanted.items() if found[name] != cents):
        raise Unmet(f"The book's price of {wrong[0]} isn't the last one in {LIVE}. Did the application read to the end?")


# -- 4: exactly once, by Kafka --------------------------------------------------------------------------------------

transactions = lab.add_check(
    "04_transactions",
    "Exactly once, by Kafka",
    hints=(
        "Four methods of the producer, in this order: begin_transaction, produce, send_offsets_to_transaction, "
        "commit_transaction.",
        "`producer.send_offsets_to_transaction(following(records), consumer.consumer_group_metadata())`: the consumer itself "
        "commits nothing.",
        "`until_done(producer.commit_transaction)` calls it, and calls it again after an error that may pass.",
        "`try:`, and `except BaseException as error:` with an abort and `raise`: not every error is a KafkaException. One that "
        "is holds Kafka's error in `error.args[0]`, and that has `fatal()`.",
    ),
)


@transactions.requires("With read_committed, copies holds every price once")
def each_price_copied_once(ctx: CheckContext) -> None:
    existing(ctx, COPIES)
    wanted = Counter((m.key(), m.value()) for m in ctx.records(PRICES))
    found = Counter((m.key(), m.value()) for m in ctx.records(COPIES))
    if not found:
        raise Unmet(f"With read_committed, {COPIES} is empty. Did a transaction of yours commit?")
    if missing := (wanted - found).total():
        raise Unmet(f"{counted(missing, 'price')} of {PRICES} {'is' if missing == 1 else 'are'} not in {COPIES}.")
    if more := (found - wanted).total():
        raise Unmet(
            f"{COPIES} holds {counted(more, 'duplicate')} in committed transactions. Did you send the offsets to the "
            "transaction, too?"
        )


def _readable(ctx: CheckContext, isolation: str) -> int:
    """Return how many of the copies a consumer with that isolation level can read."""
    ends = ctx.end_offsets(COPIES)
    settings = ctx.cluster.client_config(
        group_id="check", isolation_level=isolation, enable_partition_eof=True, enable_auto_commit=False, fetch_wait_max_ms=50
    )
    consumer = Consumer(settings)
    consumer.assign([TopicPartition(COPIES, p, 0) for p in ends])
    read, left = 0, set(ends)
    try:
        while left:
            message = consumer.poll(10)
            if message is None:
                raise Unmet(f"{COPIES} can't be read to its end. Is a transaction still open?")
            error = message.error()
            if error is None:
                read += 1
            elif error.code() == KafkaError._PARTITION_EOF:
                left.discard(message.partition() or 0)
            else:
                raise Unmet(f"{COPIES} can't be read to its end: {error.str()}")
    finally:
        consumer.close()
    return read


@transactions.requires("The records of aborted transactions are still in the log", after=each_price_copied_once)
def aborted_records_remain(ctx: CheckContext) -> None:
    if _readable(ctx, "read_committed") == _readable(ctx, "read_uncommitted"):
        raise Unmet(f"Both isolation levels return the same records of {COPIES}. Was a transaction that wrote to it aborted?")


class _Refused(Exception):
    pass


class _Clerk:
    """A producer (or consumer) that notes which methods were called. Some raise what the probe gave, once for each error."""

    def __init__(self, **errors: list[Any]) -> None:
        self.asked: list[str] = []
        self._errors = errors

    def __getattr__(self, name: str) -> Callable[..., object]:
        def asked(*args: object, **kwargs: object) -> object:
            self.asked.append(name)
            if self._errors.get(name):
                raise self._errors[name].pop(0)
            return 0 if name in ("poll", "flush") else None

        return asked


def _error(code: int, why: str, **what: bool) -> KafkaException:
    return KafkaException(KafkaError(code, why, **what))


def _convert(ctx: CheckContext, clerk: _Clerk) -> BaseException | None:
    """Have the learner's function copy a record with this producer, and return what it raised."""
    convert = ctx.function("convert", "your function")
    record = Message(topic=PRICES, partition=0, offset=7, key=b"IBM", value=b"{}", timestamp=(1, 1_704_067_200_000))
    try:
        convert(_Clerk(), clerk, COPIES, [record])
    except Exception as error:
        return error
    return None


@transactions.requires("A batch that can't be copied leaves no transaction open")
def none_is_left_open(ctx: CheckContext) -> None:
    clerk = _Clerk(produce=[_Refused("a record that can't be written")])
    raised = _convert(ctx, clerk)
    if raised is not None and not isinstance(raised, _Refused):
        raise Unmet(f"produce raised an error, and convert raised another one, {type(raised).__name__}: {raised}") from raised
    if "begin_transaction" not in clerk.asked:
        raise Unmet("convert began no transaction.")
    if "abort_transaction" not in clerk.asked:
        raise Unmet(
            "produce raised an error, and convert left the transaction open. Consumers with read_committed now wait for its "
            "end. Is every error a KafkaException?"
        )
    if raised is None:
        raise Unmet("produce raised an error, and convert returned as if it had copied the batch.")


@transactions.requires("An error that may pass is tried again, and a fatal one is raised", after=none_is_left_open)
def errors_are_told_apart(ctx: CheckContext) -> None:
    for method in ("send_offsets_to_transaction", "commit_transaction"):
        late = _Clerk(**{method: [_error(KafkaError._TIMED_OUT, "no answer yet", retriable=True)]})
        raised = _convert(ctx, late)
        if raised is not None or late.asked.count(method) < 2 or "commit_transaction" not in late.asked:
            ending = "didn't call it again" if raised is None else f"raised {raised}"
            raise Unmet(f"{method} raised an error that is retriable() once, and convert {ending}. What may help here?")
    fenced = [_error(KafkaError._FENCED, "another producer has this transactional.id", fatal=True) for _ in range(2)]
    raised = _convert(ctx, _Clerk(commit_transaction=fenced[:1], abort_transaction=fenced[1:]))
    if raised is not fenced[0]:
        ending = "returned" if raised is None else "raised another one"
        raise Unmet(f"commit_transaction raised an error that is fatal(), and convert {ending}. Who has to hear of the first?")

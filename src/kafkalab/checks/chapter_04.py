"""Chapter 04: groups and batches, delivery semantics, positions, threads."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, TopicPartition

from kafkalab.checks.common import Place, answer, behind, counted, each_once, existing
from kafkalab.checks.lab import Lab, Requirement, Unmet
from kafkalab.checks.sight import Sight
from kafkalab.cluster import GroupView

__all__ = ["LABS"]

# -- what several labs ask ------------------------------------------------------------------------------------------


def _group(sight: Sight, name: str) -> GroupView:
    groups = sight.view().groups
    if name not in groups:
        raise Unmet(f"There is no consumer group {name!r}. Groups: {', '.join(sorted(groups)) or 'none'}.")
    return groups[name]


def _places(sight: Sight, topic: str) -> list[Place]:
    """Where the records of a topic stand, as far as they can be read."""
    existing(sight, topic)
    return [(m.partition(), m.offset()) for m in sight.records(topic)]


def _read_to_the_end(sight: Sight, group: str, topic: str) -> None:
    for partition, end, lag in behind(sight, _group(sight, group).lag, topic):
        if lag is None:
            raise Unmet(
                f"{group} has committed nothing in partition {partition}, where {counted(end, 'record')} stand. Were they read, and "
                "who tells Kafka that they were?"
            )
        raise Unmet(
            f"In partition {partition} {group} is {counted(lag, 'record')} behind the end. Committed is the *next* offset to read."
        )


def _committed_to_the_end(group: str, topic: str) -> Callable[[Sight], None]:
    return lambda sight: _read_to_the_end(sight, group, topic)


# -- groups ---------------------------------------------------------------------------------------------------------

_TOPIC, _GROUP = "my-example-topic", "KafkaExampleConsumer"
_PARTITIONS = 13


def _topic_shape(sight: Sight) -> None:
    found = existing(sight, _TOPIC)
    if len(found) != _PARTITIONS:
        raise Unmet(f"It has {counted(len(found), 'partition')}. How many does the text ask for?")


def _greetings(sight: Sight) -> None:
    existing(sight, _TOPIC)
    records = sight.records(_TOPIC)
    if len(records) < 5:
        raise Unmet(f"There are {counted(len(records), 'record')}.")
    for m in records:
        if len(m.key() or b"") != 8 or (m.value() or b"").decode() != f"Hello Mom {int.from_bytes(m.key(), 'big')}":
            raise Unmet(f"Offset {m.offset()} of partition {m.partition()} is no greeting with its own key as a long.")


def _loop_read_all(sight: Sight) -> None:
    read = answer(sight, "read", "(partition, offset) of each record that your loop returned")
    each_once(read, _places(sight, _TOPIC), "Your loop")  # type: ignore[arg-type]


def _three_members(sight: Sight) -> None:
    members = _group(sight, _GROUP).members
    if len(members) != 3:
        raise Unmet(f"{_GROUP} has {counted(len(members), 'member')}, not 3.")
    sizes = sorted(len(m.partitions) for m in members)
    if sizes != [4, 4, 5]:
        raise Unmet(f"The members own {', '.join(map(str, sizes))} partitions. Did you wait until the group had settled?")


def _read_by_name(sight: Sight) -> Mapping[str, list[Place]]:
    return answer(sight, "read", "who read what: a dictionary with a list of (partition, offset) for each consumer")  # type: ignore[return-value]


def _shared_25(sight: Sight) -> None:
    read = _read_by_name(sight)
    total = sum(map(len, read.values()))
    if total != 25:
        more = " Is this group new, so that it began at the beginning?" if total > 25 else " Did you wait for all of them?"
        raise Unmet(f"Together they read {counted(total, 'record')}, not the 25 that were sent.{more}")
    if len({tuple(place) for places in read.values() for place in places}) != 25:
        raise Unmet("A record was read by more than one of them. Are they in the same group?")


def _one_reader_each(sight: Sight) -> None:
    readers: dict[int, set[str]] = {}
    for name, places in _read_by_name(sight).items():
        for partition, _ in places:
            readers.setdefault(partition, set()).add(name)
    if several := sorted(p for p, names in readers.items() if len(names) > 1):
        raise Unmet(
            f"Partition {several[0]} was read by {' and '.join(sorted(readers[several[0]]))}. Were the records sent before the group "
            "had settled?"
        )


def _three_groups(sight: Sight) -> None:
    names = [name for name in sight.view().groups if name.startswith(f"{_GROUP}-")]
    if len(names) != 3:
        raise Unmet(f"There are {counted(len(names), 'group')} whose names begin with {_GROUP}-, not 3.")
    for name in names:
        _read_to_the_end(sight, name, _TOPIC)


def _each_group_all(sight: Sight) -> None:
    wanted = _places(sight, _TOPIC)
    for group, places in _read_by_name(sight).items():
        each_once(places, wanted, group)


def _polls(sight: Sight) -> tuple[list[list[Place]], list[list[Place]]]:
    given = answer(sight, "polls", "what each call returned, by size of the batch: {5: [...], 500: [...]}")
    small, large = (given.get(size) for size in (5, 500))  # type: ignore[attr-defined]
    if not small or not large:
        raise Unmet(f"No batch of {'at most 5' if not small else 'the large kind'} was polled yet.")
    return small, large


def _batches_of_five(sight: Sight) -> None:
    small, _ = _polls(sight)
    if (most := max(map(len, small))) > 5:
        raise Unmet(f"With n = 5 a call returned {most} records. Which n was given?")


def _larger_batches(sight: Sight) -> None:
    _, large = _polls(sight)
    if max(map(len, large)) <= 5:
        raise Unmet("With n = 500, too, no call returned more than 5 records. Were there more, when it began?")
    if max(len({p for p, _ in poll}) for poll in large) < 2:
        raise Unmet("No batch held records of two partitions.")


def _all_runs_read(sight: Sight) -> None:
    small, large = _polls(sight)
    read = [tuple(place) for poll in (*small, *large) for place in poll]
    sent = len(_places(sight, _TOPIC))
    if sent < 535:
        raise Unmet(f"The topic holds {sent} records. Ten times 50 come on top of the 35 before.")
    if len(set(read)) != 505 or len(read) != 505:
        raise Unmet(f"In this part {len(read)} records were read, {len(set(read))} different ones: 505 were to be, 5 from part 3 and 500 sent.")


def _survivor(sight: Sight) -> None:
    members = _group(sight, _GROUP).members
    if len(members) != 1:
        raise Unmet(f"{_GROUP} has {counted(len(members), 'member')}, not 1.")
    if len(members[0].partitions) != _PARTITIONS:
        raise Unmet(f"It owns {counted(len(members[0].partitions), 'partition')}. Did you wait until the group had settled?")


_GROUPS = (
    Lab(
        "04_poll_loop",
        "A poll loop",
        (
            Requirement("my-example-topic has 13 partitions", _topic_shape),
            Requirement("it holds greetings whose keys are longs", _greetings),
            Requirement("the loop read every record, each once", _loop_read_all),
            Requirement("KafkaExampleConsumer has committed all of them", _committed_to_the_end(_GROUP, _TOPIC)),
        ),
        (
            "The loop has three cases: nothing came, an error came, a record came.",
            "`consumer.poll(0.1)` returns None or a message; `message.error()` is None for a record.",
            "`consumer.commit(message, asynchronous=True)` commits the offset after that message. `close()` waits for it.",
            'Settings: `group_id`, `enable_auto_commit=False`, `auto_offset_reset="earliest"`. Subscribe before the first poll.',
        ),
    ),
    Lab(
        "04_same_group",
        "Three consumers, one group",
        (
            Requirement("KafkaExampleConsumer has three members, which own 5, 4 and 4 partitions", _three_members),
            Requirement("together they read the 25 records, none twice", _shared_25),
            Requirement("each partition was read by one of them", _one_reader_each),
            Requirement("the group has committed all of them", _committed_to_the_end(_GROUP, _TOPIC)),
        ),
        (
            "The same group id as in part 1, so that the group goes on from there.",
            "Send when all three have joined: `wait_until_shared(GROUP, 3)`.",
            "`wait_until_read(members, 25)` waits for all three together.",
        ),
    ),
    Lab(
        "04_different_groups",
        "Three consumers, three groups",
        (
            Requirement("three more groups have committed all records", _three_groups),
            Requirement("each of them read every record, each once", _each_group_all),
        ),
        (
            "What makes two consumers members of the same group? Give each of them another one.",
            'Names like `f"{GROUP}-{n}"` will do. Each of them reads 35 records, since it begins at the beginning.',
        ),
    ),
    Lab(
        "04_batch_size",
        "5 at a time, and 500",
        (
            Requirement("no batch of the first kind holds more than 5 records", _batches_of_five),
            Requirement("a batch of the second kind holds more, of several partitions", _larger_batches),
            Requirement("the ten times 50 records were read, each once", _all_runs_read),
            Requirement("the last member owns all 13 partitions", _survivor),
            Requirement("the group has committed all of them", _committed_to_the_end(_GROUP, _TOPIC)),
        ),
        (
            "A member that leaves before it has read and committed its part leaves the rest to the others: wait first.",
            "After `n` times 50, and with the 5 of part 3, `wait_until_read(small, 5 + 50 * n)` waits for all three, the ones that left included.",
            "Send the last 100 while nobody reads, then start `Member(GROUP, \"large\", batch=500)`.",
        ),
    ),
)

# -- delivery semantics ---------------------------------------------------------------------------------------------

_PRICES, _COPIES = "stock-prices", "copies"


def _books(sight: Sight, way: str, moments: Iterable[str]) -> dict[str, tuple[int, int]]:
    """How many records are missing in the book of each trial of a way, and how many bookings there are too many."""
    sent = set(_places(sight, _PRICES))
    outcomes = {}
    for moment in moments:
        booked = _booked(sight, way, moment)
        outcomes[moment] = len(sent - booked.keys()), sum(booked.values()) - len(booked)
    return outcomes


def _booked(sight: Sight, way: str, moment: str) -> Counter[Place]:
    folder = answer(sight, "folder", "where the books of the trials are")
    path = Path(str(folder), f"{way}, {moment}.db")
    if not path.is_file():
        raise Unmet(f"There is no book of {way}, killed {moment}. Was it tried?")
    with sqlite3.connect(path) as database:
        booked = Counter(database.execute("SELECT part, place FROM bookings").fetchall())
    database.close()
    if not booked:
        raise Unmet(f"{way} has booked nothing at all.")
    return booked


_AROUND = ("before process", "after process", "after commit")


def _at_most_once(sight: Sight) -> None:
    outcomes = _books(sight, "at_most_once", _AROUND)
    for moment, (_, doubled) in outcomes.items():
        if doubled:
            raise Unmet(f"at_most_once, killed {moment}, booked {counted(doubled, 'record')} twice. At most once means never twice.")
    if not outcomes["before process"][0]:
        raise Unmet("at_most_once, killed before it processed, lost nothing, so it cannot have committed before. Which comes first?")
    if outcomes["after process"][0]:
        raise Unmet("at_most_once, killed after it had processed all of a batch, lost some. Is each batch booked as a whole?")


def _at_least_once(way: str, most: int) -> Callable[[Sight], None]:
    def probe(sight: Sight) -> None:
        outcomes = _books(sight, way, _AROUND)
        for moment, (lost, _) in outcomes.items():
            if lost:
                raise Unmet(f"{way}, killed {moment}, lost {counted(lost, 'record')}. At least once means that none is ever lost.")
        if outcomes["after commit"][1]:
            raise Unmet(f"{way}, killed after its commit, booked {counted(outcomes['after commit'][1], 'record')} twice. Which offset was committed?")
        doubled = outcomes["after process"][1]
        if not doubled:
            raise Unmet(f"{way}, killed between its booking and its commit, doubled nothing. Does it commit at all, and to Kafka?")
        if doubled > most:
            raise Unmet(f"{way}, killed after its second booking, doubled {doubled}. How many should stand between two commits?")

    return probe


def _exactly_once(sight: Sight) -> None:
    for moment, (lost, doubled) in _books(sight, "exactly_once", ("before process", "amid process", "after process", "asleep")).items():
        if lost or doubled:
            raise Unmet(
                f"exactly_once, {moment}: {lost} lost, {doubled} doubled. Do the bookings and the positions stand in the same "
                "transaction of the database?"
            )


# What the application was given, and how it ends when it is told to, by which signal.
_LIVE = "stock-prices-live"
_STATUS = {"SIGINT": 130, "SIGTERM": 143, "SIGKILL": -9}


def _endings(sight: Sight) -> Mapping[str, tuple[int, Mapping[int, int]]]:
    return answer(sight, "endings", "{signal: (exit status, where to go on, by the book)}")  # type: ignore[return-value]


def _ended(sight: Sight) -> None:
    endings = _endings(sight)
    for name, status in _STATUS.items():
        if name not in endings:
            raise Unmet(f"The application was not ended by {name} yet.")
        if endings[name][0] != status:
            raise Unmet(
                f"{name} ended it with exit status {endings[name][0]}, not {status}. Was it at work, and had it ended, when you looked?"
            )


def _went_on(sight: Sight) -> None:
    endings = _endings(sight)
    begun = list(answer(sight, "begun", "where each start of the application began"))  # type: ignore[call-overload]
    if len(begun) != len(endings) + 1:
        raise Unmet(f"{len(endings)} endings and {counted(len(begun), 'start')}: is each start's beginning in the list, the last one's too?")
    for (name, (_, booked)), begins in zip(endings.items(), begun[1:], strict=True):
        for partition, position in booked.items():
            if begins.get(partition) != position:
                raise Unmet(
                    f"After {name} it was to go on at {position} in partition {partition}, and it began at {begins.get(partition)}. "
                    "When did you ask the book?"
                )


def _asked(sight: Sight, sql: str) -> list[tuple]:
    path = Path(str(answer(sight, "book", "where the application's book is")))
    if not path.is_file():
        raise Unmet("The application has no book yet.")
    with sqlite3.connect(path) as database:
        found = database.execute(sql).fetchall()
    database.close()
    return found


def _booked_once(sight: Sight) -> None:
    booked, sent = Counter(_asked(sight, "SELECT part, place FROM bookings")), _places(sight, _LIVE)
    lost, doubled = len(set(sent) - booked.keys()), booked.total() - len(booked)
    if lost or doubled:
        raise Unmet(f"{lost} lost, {doubled} doubled in the application's book. Has it read to the end?")


def _latest_booked(sight: Sight) -> None:
    wanted: dict[str, int] = {}
    for m in sight.records(_LIVE):
        fields = json.loads(m.value())
        wanted[fields["name"]] = 100 * fields["dollars"] + fields["cents"]
    found = dict(_asked(sight, "SELECT name, cents FROM latest"))
    if missing := sorted(wanted.keys() - found.keys()):
        raise Unmet(f"The book knows no price of {missing[0]}.")
    if wrong := sorted(name for name, cents in wanted.items() if found[name] != cents):
        raise Unmet(f"The book's price of {wrong[0]} is not the last one of {_LIVE}. Has the application read to the end?")


def _copied(sight: Sight, isolation: str) -> int:
    """How many records of the copies can be read at that isolation level."""
    ends = sight.end_offsets(_COPIES)
    existing(sight, _COPIES)
    settings = {"isolation.level": isolation, "enable.partition.eof": True, "enable.auto.commit": False, "fetch.wait.max.ms": 50}
    consumer = Consumer({**sight.cluster.client_config(group_id="check"), **settings})
    consumer.assign([TopicPartition(_COPIES, p, 0) for p in ends])
    read, left = 0, set(ends)
    try:
        while left:
            message = consumer.poll(10)
            if message is None:
                raise Unmet(f"The topic {_COPIES} cannot be read to its end. Is a transaction still open?")
            if message.error() is None:
                read += 1
            else:
                left.discard(message.partition())
    finally:
        consumer.close()
    return read


def _each_copied_once(sight: Sight) -> None:
    wanted = Counter((m.key(), m.value()) for m in sight.records(_PRICES))
    existing(sight, _COPIES)
    found = Counter((m.key(), m.value()) for m in sight.records(_COPIES))
    if not found:
        raise Unmet("Nothing that is committed stands in copies.")
    if missing := (wanted - found).total():
        raise Unmet(f"{counted(missing, 'price')} of stock-prices {'is' if missing == 1 else 'are'} not in copies.")
    if more := (found - wanted).total():
        raise Unmet(f"copies holds {counted(more, 'record')} too many, in committed transactions. Were the offsets sent to the transaction, too?")


def _aborted_in_the_log(sight: Sight) -> None:
    committed, all_of_them = (_copied(sight, level) for level in ("read_committed", "read_uncommitted"))
    if committed == all_of_them:
        raise Unmet("Both isolation levels show the same. Was anything written in a transaction that came to nothing?")


class _Refused(Exception):
    pass


class _Clerk:
    """A producer that takes no record, and notes what it is asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __getattr__(self, name: str) -> Callable[..., object]:
        def asked(*args: object, **kwargs: object) -> object:
            self.asked.append(name)
            if name == "produce":
                raise _Refused("a record that cannot be written")
            return 0 if name in ("poll", "flush") else None

        return asked


def _none_left_open(sight: Sight) -> None:
    convert, clerk = answer(sight, "convert", "your function"), _Clerk()
    try:
        convert(_Clerk(), clerk, _COPIES, [_BadRecord()])  # type: ignore[operator]
        told = False
    except _Refused:
        told = True
    except Exception as error:
        raise Unmet(f"produce raised an error, and convert another one, {type(error).__name__}: {error}") from error
    if "begin_transaction" not in clerk.asked:
        raise Unmet("convert began no transaction.")
    if "abort_transaction" not in clerk.asked:
        raise Unmet("produce raised an error, and the transaction was left open. Who reads what is committed waits for its end. Is it a KafkaException?")
    if not told:
        raise Unmet("produce raised an error, and convert returned as if the batch had been copied.")


_DELIVERY = (
    Lab(
        "04_delivery",
        "At most once, at least once",
        (
            Requirement("at_most_once loses when killed before it processes, and never doubles", _at_most_once),
            Requirement("at_least_once doubles when killed after it processed, and never loses", _at_least_once("at_least_once", 20)),
            Requirement("record by record at most one is doubled", _at_least_once("each_record_at_least_once", 1)),
        ),
        (
            "There are two lines, the same in both functions.",
            "`book.add(records)` and `consumer.commit(offsets=following(records), asynchronous=False)`.",
            "For one record: `book.add([record])`, and `consumer.commit(record, asynchronous=False)`, which commits the offset after it.",
        ),
    ),
    Lab(
        "04_exactly_once",
        "Exactly once, by the database",
        (Requirement("exactly_once loses nothing and doubles nothing at any moment", _exactly_once),),
        (
            "Is there a method of the book that writes more than the bookings?",
            "It is one line, and no commit.",
        ),
    ),
    Lab(
        "04_application",
        "An application that is ended and goes on",
        (
            Requirement("it ends as each of the three signals has it", _ended),
            Requirement("each start goes on after the last price that is booked", _went_on),
            Requirement("every price is booked once", _booked_once),
            Requirement("the book's price of each stock is the last one of the topic", _latest_booked),
        ),
        (
            "In the loop: start it, send the signal, wait until it has ended; only then ask the book.",
            "`app.send_signal(getattr(signal, name))`, `app.communicate(timeout=30)`, `app.returncode`.",
            "`endings[name] = app.returncode, goes_on()` and `begun.append(begins)`.",
        ),
    ),
    Lab(
        "04_transactions",
        "Exactly once, by Kafka",
        (
            Requirement("every price stands in copies exactly once, for those who read what is committed", _each_copied_once),
            Requirement("what was aborted still stands in the log", _aborted_in_the_log),
            Requirement("a batch that cannot be copied leaves no transaction open", _none_left_open),
        ),
        (
            "Four methods of the producer, in this order: begin_transaction, produce, send_offsets_to_transaction, commit_transaction.",
            "`producer.send_offsets_to_transaction(following(records), consumer.consumer_group_metadata())`: no commit of the consumer's own.",
            "`try:`, and `except BaseException:` with `producer.abort_transaction()` and `raise`: not every error is a KafkaException.",
        ),
    ),
)

# -- dead letters and positions -------------------------------------------------------------------------------------

_DEAD = "stock-prices-dead-letters"
_NEW_YEAR = 1_704_067_200_000


def _price(value: bytes | None) -> tuple[str, str] | None:
    """Symbol and price as text, or None for what is no stock price."""
    try:
        fields = json.loads(value or b"")
        name, dollars, cents = fields["name"], fields["dollars"], fields["cents"]
    except (ValueError, KeyError, TypeError):
        return None
    return (name, f"{name} {dollars}.{cents:02}") if 0 <= cents < 100 and dollars >= 0 else None


def _latest_right(sight: Sight) -> None:
    given = answer(sight, "prices", "the latest price of each stock, as text: {'IBM': 'IBM 90.05', …}")
    wanted = dict(price for m in sight.records(_PRICES) if (price := _price(m.value())))
    if missing := sorted(wanted.keys() - given.keys()):  # type: ignore[attr-defined]
        raise Unmet(f"There is no price of {missing[0]}. Does something stop your loop?")
    if wrong := sorted(name for name in wanted if given[name] != wanted[name]):  # type: ignore[index]
        raise Unmet(f"{given[wrong[0]]} is not the latest price of {wrong[0]}. Which of two records of a stock is kept?")  # type: ignore[index]


def _all_set_aside(sight: Sight) -> None:
    existing(sight, _DEAD)
    bad = {(m.partition(), m.offset()): m for m in sight.records(_PRICES) if not _price(m.value())}
    letters = {}
    for m in sight.records(_DEAD):
        headers = {name: value.decode() for name, value in m.headers() or []}
        if not headers.keys() >= {"reason", "topic", "partition", "offset"}:
            raise Unmet(f"A dead letter has the headers {', '.join(sorted(headers)) or 'none'}. Which four does the text ask for?")
        letters[int(headers["partition"]), int(headers["offset"])] = m
    if missing := sorted(bad.keys() - letters.keys()):
        raise Unmet(f"Offset {missing[0][1]} of partition {missing[0][0]} is no stock price and was not set aside ({len(missing)} of {len(bad)} are missing).")
    if extra := sorted(letters.keys() - bad.keys()):
        raise Unmet(f"Offset {extra[0][1]} of partition {extra[0][0]} was set aside, but it is a stock price.")
    for place, m in letters.items():
        if (m.key(), m.value()) != (bad[place].key(), bad[place].value()):
            raise Unmet("A dead letter has another key or value than the record that was set aside. Send it as it came, also when it is null.")


class _BadRecord:
    """What a handler asks of a message that is no stock price."""

    def error(self) -> None:
        return None

    def topic(self) -> str:
        return _PRICES

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return 7

    def key(self) -> bytes:
        return b"IBM"

    def value(self) -> bytes:
        return b"{}"

    def headers(self) -> None:
        return None

    def timestamp(self) -> tuple[int, int]:
        return 1, _NEW_YEAR


class _Courier:
    """A producer that answers as it is told: delivered, or failed, or not at all."""

    def __init__(self, error: KafkaError | None = None, *, answers: bool = True) -> None:
        self.sent, self.flushed = 0, False
        self._error, self._answers = error, answers
        self._waiting: list[Callable[[KafkaError | None, object], None] | None] = []

    def produce(self, *args: object, **kwargs: object) -> None:
        self.sent, self.flushed = self.sent + 1, False
        self._waiting.append(kwargs.get("on_delivery") or kwargs.get("callback"))  # type: ignore[arg-type]

    def poll(self, timeout: float = 0) -> int:
        told, self._waiting = (self._waiting, []) if self._answers else ([], self._waiting)
        for report in told:
            if report is not None:
                report(self._error, _BadRecord())
        return len(told)

    def flush(self, timeout: float = 0) -> int:
        self.flushed = True
        self.poll()
        return len(self._waiting)

    def __len__(self) -> int:
        return len(self._waiting)

    def __bool__(self) -> bool:
        return True


def _safe_before_commit(sight: Sight) -> None:
    make = answer(sight, "handler", "your class")

    def handle(courier: _Courier) -> Exception | None:
        try:
            make(courier, _DEAD).handle([_BadRecord()])  # type: ignore[operator]
        except Exception as error:
            return error
        return None

    courier = _Courier()
    if (error := handle(courier)) is not None:
        raise Unmet(f"A record that is no stock price: handle raised {type(error).__name__}: {error}")
    if not courier.sent:
        raise Unmet("handle was given a record that is no stock price, and produced nothing.")
    if not courier.flushed:
        raise Unmet("handle returned and nothing was flushed. The batch is committed next: what becomes of the dead letter in a crash?")
    if handle(_Courier(answers=False)) is None:
        raise Unmet("No broker answered, and handle returned as if all were well. What does flush() return?")
    if handle(_Courier(KafkaError(KafkaError._MSG_TIMED_OUT))) is None:
        raise Unmet("A dead letter was given up (on_delivery was told an error), and handle returned as if all were well.")


class _Group:
    """A consumer whose group shares anew, as often as it is told to."""

    def __init__(self) -> None:
        self._taken: dict[int, int] = {}

    def shares(self, callback: Callable[[object, list[TopicPartition]], None], *partitions: int) -> dict[int, int]:
        """Where the callback has it begin; OFFSET_INVALID is where the group has committed."""
        given = [TopicPartition(_PRICES, partition) for partition in partitions]
        self._taken = {p.partition: p.offset for p in given}  # a callback that assigns nothing changes nothing
        callback(self, given)
        return self._taken

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        self._taken = {p.partition: p.offset for p in partitions}

    incremental_assign = assign

    def offsets_for_times(self, partitions: Iterable[TopicPartition], timeout: float = 0) -> list[TopicPartition]:
        return [TopicPartition(p.topic, p.partition, 27) for p in partitions]


def _only_once(sight: Sight) -> None:
    given = answer(sight, "callbacks", "new ones of your callbacks, by what they are called")
    committed = TopicPartition(_PRICES, 0).offset
    for name, callback in given.items():  # type: ignore[attr-defined]
        group = _Group()
        try:
            first, again, more = group.shares(callback, 0), group.shares(callback, 0), group.shares(callback, 0, 1)
        except Exception as error:
            raise Unmet(f"{name}: your callback raised {type(error).__name__}: {error}") from error
        if first.get(0, committed) == committed:
            raise Unmet(f"{name}: given a partition for the first time, the callback begins where the group has committed.")
        if {0: committed} != again or more.get(0) != committed:
            raise Unmet(f"{name}: the group shares anew, the same partition is assigned once more, and the callback sends it back again.")
        if more.get(1, committed) == committed:
            raise Unmet(f"{name}: a second partition is assigned later, for the first time, and the callback takes no notice of it.")


def _begun(where: str, wanted: Callable[[Sight], Mapping[int, int]], helps: str) -> Callable[[Sight], None]:
    def probe(sight: Sight) -> None:
        given = answer(sight, "begun", "the first offset of each partition, for each place to begin")
        if given.get(where) != wanted(sight):  # type: ignore[attr-defined]
            raise Unmet(f"{where}: {given.get(where)}. {helps}")  # type: ignore[attr-defined]

    return probe


def _ends(sight: Sight) -> Mapping[int, int]:
    return sight.end_offsets(_PRICES)


def _since(sight: Sight) -> Mapping[int, int]:
    found = dict(_ends(sight))
    for m in reversed(sight.records(_PRICES)):
        if m.timestamp()[1] >= _NEW_YEAR + 70:
            found[m.partition()] = m.offset()
    return found


_POSITIONS = (
    Lab(
        "04_dead_letters",
        "The latest prices, and what is none",
        (
            Requirement("the latest price of each stock is known", _latest_right),
            Requirement("what is no stock price stands among the dead letters, as it came", _all_set_aside),
            Requirement("the group latest-prices has committed everything", _committed_to_the_end("latest-prices", _PRICES)),
            Requirement("when handle returns, what was set aside is with Kafka", _safe_before_commit),
        ),
        (
            "`deserialize` raises `MalformedStockPrice`; its text is the reason.",
            "`producer.produce(topic, key=…, value=…, headers={…})`; headers are text or bytes, so turn numbers into text.",
            "Before `handle` returns, `producer.flush(10)`: only then may the batch be committed. It returns how many still wait.",
            "What was given up waits no more: only `on_delivery=lambda error, message: …` is told. Keep the errors, look at them after `flush`.",
        ),
    ),
    Lab(
        "04_positions",
        "Begin where you like",
        (
            Requirement(
                "at the beginning",
                _begun("beginning", lambda sight: dict.fromkeys(_ends(sight), 0), "Who says where to begin, if not what is committed?"),
            ),
            Requirement("at the end", _begun("end", _ends, "The end is where the next record will stand.")),
            Requirement(
                "at an offset",
                _begun("offset 7", lambda sight: dict.fromkeys(_ends(sight), 7), "Is the offset set before `assign` is called?"),
            ),
            Requirement(
                "at a moment",
                _begun("70 ms after New Year", _since, "The first record of each partition that is not older; in milliseconds."),
            ),
            Requirement("after the last record, at the end", _begun("a day later", _ends, "What is looked up for a moment that has not come?")),
            Requirement("only the first time that a partition is assigned", _only_once),
        ),
        (
            "Inside: `def on_assign(consumer, partitions)`. Set `partition.offset` of each, then `consumer.assign(partitions)`.",
            "`OFFSET_BEGINNING` and `OFFSET_END` can be given as offsets.",
            "`consumer.offsets_for_times([TopicPartition(topic, partition, milliseconds)], timeout=10)` returns partitions with offsets.",
            "Keep a set of the partitions that were seen, beside `on_assign`. What is in it already is assigned as it comes.",
        ),
    ),
)

LABS = (*_GROUPS, *_DELIVERY, *_POSITIONS)

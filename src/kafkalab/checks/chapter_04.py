"""Chapter 04: groups and batches, delivery semantics, positions, threads."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition

from kafkalab.checks.lab import Lab, Requirement, Unmet
from kafkalab.checks.sight import Sight
from kafkalab.cluster import GroupView, PartitionView

__all__ = ["LABS"]

Place = tuple[int, int]
"""Partition and offset."""


# -- what several labs ask ------------------------------------------------------------------------------------------


def _existing(sight: Sight, topic: str) -> tuple[PartitionView, ...]:
    found = sight.partitions(topic)
    if not found:
        raise Unmet(f"There is no topic {topic!r} yet.")
    return found


def _group(sight: Sight, name: str) -> GroupView:
    groups = sight.view().groups
    if name not in groups:
        raise Unmet(f"There is no consumer group {name!r}. Groups: {', '.join(sorted(groups)) or 'none'}.")
    return groups[name]


def _answer(sight: Sight, name: str, what: str) -> object:
    given = sight.answers.get(name)
    if not given:
        raise Unmet(f"Give check() your answer as {name}=…: {what}.")
    return given


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _places(sight: Sight, topic: str) -> list[Place]:
    """Where the records of a topic stand, as far as they can be read."""
    _existing(sight, topic)
    return [(m.partition(), m.offset()) for m in sight.records(topic)]


def _read_to_the_end(sight: Sight, group: str, topic: str) -> None:
    lag = {p: n for (name, p), n in _group(sight, group).lag.items() if name == topic}
    for partition, end in sight.end_offsets(topic).items():
        if not end:
            continue
        if partition not in lag:
            raise Unmet(
                f"{group} has committed nothing in partition {partition}, where {_count(end, 'record')} stand. Were they read, and "
                "who tells Kafka that they were?"
            )
        if lag[partition]:
            raise Unmet(
                f"In partition {partition} {group} is {_count(lag[partition], 'record')} behind the end. Committed is the *next* "
                "offset to read."
            )


def _committed_to_the_end(group: str, topic: str) -> Callable[[Sight], None]:
    return lambda sight: _read_to_the_end(sight, group, topic)


def _each_once(read: Iterable[Place], wanted: Iterable[Place], who: str) -> None:
    """Raise `Unmet` unless what was read is what was wanted, each record once."""
    counts, wanted = Counter(tuple(place) for place in read), set(wanted)
    if missing := sorted(wanted - counts.keys()):
        raise Unmet(f"{who} did not read offset {missing[0][1]} of partition {missing[0][0]} ({len(missing)} of {len(wanted)} are missing).")
    if twice := sorted(place for place, n in counts.items() if n > 1):
        raise Unmet(f"{who} read offset {twice[0][1]} of partition {twice[0][0]} more than once.")


# -- groups ---------------------------------------------------------------------------------------------------------

_TOPIC, _GROUP = "my-example-topic", "KafkaExampleConsumer"
_PARTITIONS = 13


def _topic_shape(sight: Sight) -> None:
    found = _existing(sight, _TOPIC)
    if len(found) != _PARTITIONS:
        raise Unmet(f"It has {_count(len(found), 'partition')}. How many does the text ask for?")


def _greetings(sight: Sight) -> None:
    _existing(sight, _TOPIC)
    records = sight.records(_TOPIC)
    if len(records) < 5:
        raise Unmet(f"There are {_count(len(records), 'record')}.")
    for m in records:
        if len(m.key() or b"") != 8 or (m.value() or b"").decode() != f"Hello Mom {int.from_bytes(m.key(), 'big')}":
            raise Unmet(f"Offset {m.offset()} of partition {m.partition()} is no greeting with its own key as a long.")


def _loop_read_all(sight: Sight) -> None:
    read = _answer(sight, "read", "(partition, offset) of each record that your loop returned")
    _each_once(read, _places(sight, _TOPIC), "Your loop")  # type: ignore[arg-type]


def _three_members(sight: Sight) -> None:
    members = _group(sight, _GROUP).members
    if len(members) != 3:
        raise Unmet(f"{_GROUP} has {_count(len(members), 'member')}, not 3.")
    sizes = sorted(len(m.partitions) for m in members)
    if sizes != [4, 4, 5]:
        raise Unmet(f"The members own {', '.join(map(str, sizes))} partitions. Did you wait until the group had settled?")


def _read_by_name(sight: Sight) -> Mapping[str, list[Place]]:
    return _answer(sight, "read", "who read what: a dictionary with a list of (partition, offset) for each consumer")  # type: ignore[return-value]


def _shared_25(sight: Sight) -> None:
    read = _read_by_name(sight)
    total = sum(map(len, read.values()))
    if total != 25:
        more = " Is this group new, so that it began at the beginning?" if total > 25 else " Did you wait for all of them?"
        raise Unmet(f"Together they read {_count(total, 'record')}, not the 25 that were sent.{more}")
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
        raise Unmet(f"There are {_count(len(names), 'group')} whose names begin with {_GROUP}-, not 3.")
    for name in names:
        _read_to_the_end(sight, name, _TOPIC)


def _each_group_all(sight: Sight) -> None:
    wanted = _places(sight, _TOPIC)
    for group, places in _read_by_name(sight).items():
        _each_once(places, wanted, group)


def _polls(sight: Sight) -> tuple[list[list[Place]], list[list[Place]]]:
    given = _answer(sight, "polls", "what each call returned, by size of the batch: {5: [...], 500: [...]}")
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
        raise Unmet(f"{_GROUP} has {_count(len(members), 'member')}, not 1.")
    if len(members[0].partitions) != _PARTITIONS:
        raise Unmet(f"It owns {_count(len(members[0].partitions), 'partition')}. Did you wait until the group had settled?")


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
    folder = _answer(sight, "folder", "where the books of the trials are")
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
            raise Unmet(f"at_most_once, killed {moment}, booked {_count(doubled, 'record')} twice. At most once means never twice.")
    if not outcomes["before process"][0]:
        raise Unmet("at_most_once, killed before it processed, lost nothing, so it cannot have committed before. Which comes first?")
    if outcomes["after process"][0]:
        raise Unmet("at_most_once, killed after it had processed all of a batch, lost some. Is each batch booked as a whole?")


def _at_least_once(way: str, most: int) -> Callable[[Sight], None]:
    def probe(sight: Sight) -> None:
        outcomes = _books(sight, way, _AROUND)
        for moment, (lost, _) in outcomes.items():
            if lost:
                raise Unmet(f"{way}, killed {moment}, lost {_count(lost, 'record')}. At least once means that none is ever lost.")
        if outcomes["after commit"][1]:
            raise Unmet(f"{way}, killed after its commit, booked {_count(outcomes['after commit'][1], 'record')} twice. Which offset was committed?")
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


def _copied(sight: Sight, isolation: str) -> int:
    """How many records of the copies can be read at that isolation level."""
    ends = sight.end_offsets(_COPIES)
    _existing(sight, _COPIES)
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
    _existing(sight, _COPIES)
    found = Counter((m.key(), m.value()) for m in sight.records(_COPIES))
    if not found:
        raise Unmet("Nothing that is committed stands in copies.")
    if missing := (wanted - found).total():
        raise Unmet(f"{_count(missing, 'price')} of stock-prices {'is' if missing == 1 else 'are'} not in copies.")
    if more := (found - wanted).total():
        raise Unmet(f"copies holds {_count(more, 'record')} too many, in committed transactions. Were the offsets sent to the transaction, too?")


def _aborted_in_the_log(sight: Sight) -> None:
    committed, all_of_them = (_copied(sight, level) for level in ("read_committed", "read_uncommitted"))
    if committed == all_of_them:
        raise Unmet("Both isolation levels show the same. Was anything written in a transaction that came to nothing?")


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
        "04_transactions",
        "Exactly once, by Kafka",
        (
            Requirement("every price stands in copies exactly once, for those who read what is committed", _each_copied_once),
            Requirement("what was aborted still stands in the log", _aborted_in_the_log),
        ),
        (
            "Four methods of the producer, in this order: begin_transaction, produce, send_offsets_to_transaction, commit_transaction.",
            "`producer.send_offsets_to_transaction(following(records), consumer.consumer_group_metadata())`: no commit of the consumer's own.",
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
    given = _answer(sight, "prices", "the latest price of each stock, as text: {'IBM': 'IBM 90.05', …}")
    wanted = dict(price for m in sight.records(_PRICES) if (price := _price(m.value())))
    if missing := sorted(wanted.keys() - given.keys()):  # type: ignore[attr-defined]
        raise Unmet(f"There is no price of {missing[0]}. Does something stop your loop?")
    if wrong := sorted(name for name in wanted if given[name] != wanted[name]):  # type: ignore[index]
        raise Unmet(f"{given[wrong[0]]} is not the latest price of {wrong[0]}. Which of two records of a stock is kept?")  # type: ignore[index]


def _all_set_aside(sight: Sight) -> None:
    _existing(sight, _DEAD)
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


def _begun(where: str, wanted: Callable[[Sight], Mapping[int, int]], helps: str) -> Callable[[Sight], None]:
    def probe(sight: Sight) -> None:
        given = _answer(sight, "begun", "the first offset of each partition, for each place to begin")
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
        ),
        (
            "`deserialize` raises `MalformedStockPrice`; its text is the reason.",
            "`producer.produce(topic, key=…, value=…, headers={…})`; headers are text or bytes, so turn numbers into text.",
            "Before `handle` returns, `producer.flush()`: only then may the batch be committed.",
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
        ),
        (
            "Inside: `def on_assign(consumer, partitions)`. Set `partition.offset` of each, then `consumer.assign(partitions)`.",
            "`OFFSET_BEGINNING` and `OFFSET_END` can be given as offsets.",
            "`consumer.offsets_for_times([TopicPartition(topic, partition, milliseconds)], timeout=10)` returns partitions with offsets.",
        ),
    ),
)

LABS = (*_GROUPS, *_DELIVERY, *_POSITIONS)

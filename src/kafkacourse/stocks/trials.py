"""Try out consumers: each runs in its own process, is killed at a chosen moment, then runs again to the end.

An application doesn't need any of this. It shows what a crash does to a consumer.
"""

from __future__ import annotations

import contextlib
import inspect
import logging
import multiprocessing
import os
import signal
import sys
import tempfile
import textwrap
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from kafkacourse.stocks import book as book_module
from kafkacourse.stocks.book import Book
from kafkacourse.stocks.database import Database
from kafkacourse.stocks.loop import read_batches

__all__ = ["CONVERSION_MOMENTS", "MOMENTS", "Conversion", "Outcome", "Way", "compare", "try_all", "try_conversion"]

Way = Callable[[Consumer, Book, Sequence[Message]], None]
"""Handles a batch."""

MOMENTS = ("before processing", "during processing", "after processing", "before commit", "after commit", "rebalance", "asleep")
"""When to kill: ``rebalance`` when partitions are revoked; ``asleep`` stops it until another one has taken over."""

Function = TypeVar("Function", bound=Callable[..., Any])

_NTH = 2  # the second time a moment comes, because then an earlier batch is done
_PATIENCE = 60
_LAST_RESORT = 300  # seconds; by then the parent, which ends what it started, must be dead

# These processes are forked from a server that has loaded the modules, but never started a client.
_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(
    ["concurrent.futures.thread", "confluent_kafka", "decimal", "inspect", "json", "random", "sqlite3", "tempfile", "uuid"]
)

# Starting a process also polls all others. If two threads poll the same process at once, one of them gets 255.
_one_asks = threading.Lock()


def _start(run: Callable[..., None], *task: object) -> BaseProcess:
    process = _processes.Process(target=run, args=task, daemon=True)
    with _one_asks:
        process.start()
    return process


def _exit_status(process: BaseProcess, timeout: float = _PATIENCE) -> int | None:
    """Return the exit status, or None if the process hasn't ended after `timeout` seconds."""
    wait([process.sentinel], timeout)
    with _one_asks:
        return process.exitcode


def _wake(process: BaseProcess) -> None:
    assert process.pid is not None  # the process was started
    os.kill(process.pid, signal.SIGCONT)


@dataclass(frozen=True)
class Outcome:
    """The result of one trial.

    Attributes
    ----------
    way, moment
        The function and the moment.
    reached
        False if the moment never came. Some functions commit nothing to Kafka, for example.
    lost, duplicates
        How many records have no booking, and how many bookings are duplicates.
    """

    way: str
    moment: str
    reached: bool
    lost: int
    duplicates: int


def compare(where: Path | str, sent: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """Compare a book with the records that were sent.

    Parameters
    ----------
    where
        The book.
    sent
        Partition and offset of all records.

    Returns
    -------
    tuple of int
        How many records are lost, and how many bookings are duplicates.
    """
    book = Book(where)
    booked = Counter(book.bookings())
    book.close()
    return len(set(sent) - booked.keys()), sum(booked.values()) - len(booked)


def try_all(
    config: Mapping[str, object],
    topic: str,
    ways: Sequence[Way],
    moments: Sequence[str] = MOMENTS,
    *,
    books: Path | str | None = None,
    at_once: int = 4,
) -> list[Outcome]:
    """Try each function at each moment, several at once, each with its own group and book.

    Parameters
    ----------
    config
        Client settings: at least ``bootstrap.servers``.
    topic
        A topic of stock prices, with at least two batches in each partition.
    ways
        Functions that handle a batch. One called ``exactly_once`` starts at its book's positions.
    moments
        Some of `MOMENTS`.
    books
        Keep the books in this folder, as ``way, moment.db``, or in the PostgreSQL database at this URL, each in a
        schema ``way_moment``. A book of an earlier trial is replaced.
    at_once
        How many trials run side by side.

    Returns
    -------
    list of Outcome
        All moments of the first function, then those of the next.

    Raises
    ------
    RuntimeError
        If a process ended in an unexpected way.
    """
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(at_once) as pool:
        sent = _records(config, topic)
        trial = partial(_trial, dict(config), topic, sent, books or Path(scratch))
        # Start the slow ones first.
        pairs = sorted(((way, moment) for way in ways for moment in moments), key=lambda p: p[1] not in ("rebalance", "asleep"))
        done = dict(zip(((w.__name__, m) for w, m in pairs), pool.map(lambda pair: trial(*pair), pairs), strict=True))
    return [done[way.__name__, moment] for way in ways for moment in moments]


def _records(config: Mapping[str, object], topic: str) -> list[tuple[int, int]]:
    consumer = Consumer({**config, "group.id": "trials"})
    partitions = consumer.list_topics(topic, timeout=10).topics[topic].partitions
    marks = {p: consumer.get_watermark_offsets(TopicPartition(topic, p), timeout=10) for p in partitions}
    consumer.close()
    return [(p, offset) for p, (low, high) in marks.items() for offset in range(low, high)]


def _new_book(books: Path | str, way: str, moment: str) -> str:
    """Return the path or URL of a new book. One of an earlier trial is removed."""
    if isinstance(books, Path):
        file = books / f"{way}, {moment}.db"
        file.unlink(missing_ok=True)
        where = str(file)
    else:
        schema = f"{way}_{moment}".replace(" ", "_")
        database = Database(books, _PATIENCE)
        database.run(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
        database.run(f"CREATE SCHEMA {schema}")
        database.close()
        where = f"{books}{'&' if '?' in books else '?'}options=-csearch_path%3D{schema}"
    Book(where).close()
    return where


def _trial(
    config: Mapping[str, object], topic: str, sent: list[tuple[int, int]], books: Path | str, way: Way, moment: str
) -> Outcome:
    where = _new_book(books, way.__name__, moment)
    group = f"{way.__name__}-{uuid.uuid4().hex[:6]}"
    member = {"group.id": group, "enable.auto.commit": False, "enable.partition.eof": True, "auto.offset.reset": "earliest"}
    # The fetch wait makes the end of a partition known after 0.1 s (default 0.5 s).
    member |= {"session.timeout.ms": 3000, "heartbeat.interval.ms": 500, "fetch.wait.max.ms": 100, "log_level": 0}
    # A static member: a process that comes back under the same name gets its old place at once. The other member leaves
    # the group when it ends.
    one, other = {**config, **member, "group.instance.id": "one"}, {**config, **member}

    arrived = _processes.Event()

    def start(settings: Mapping[str, object], moment: str | None = None) -> BaseProcess:
        return _start(_run, settings, topic, where, _as_text(way), moment, arrived)

    def read_to_the_end(settings: Mapping[str, object]) -> None:
        if (status := _exit_status(start(settings))) != 0:
            raise RuntimeError(f"{way.__name__}, after {moment!r}: its successor ended with exit status {status}")

    first = start(one, moment)
    if moment in ("asleep", "rebalance"):
        while _exit_status(first, 0) is None and not arrived.wait(0.1):
            pass  # wait until it works or ends
        read_to_the_end(other)
    if moment == "asleep" and arrived.is_set():
        _wake(first)
    status = _exit_status(first)
    if status not in (0, -signal.SIGKILL):
        raise RuntimeError(f"{way.__name__}, to be killed {moment!r}: it ended with exit status {status}")
    if moment not in ("asleep", "rebalance"):
        read_to_the_end(one)
    lost, duplicates = compare(where, sent)
    reached = arrived.is_set() if moment == "asleep" else status == -signal.SIGKILL
    return Outcome(way.__name__, moment, reached, lost, duplicates)


# -- in the process that is tried -----------------------------------------------------------------------------------


class _Failpoint:
    """Kill this process, or suspend it, when a moment comes for the second time."""

    def __init__(self, moment: str | None, arrived: Event) -> None:
        self._moment, self._arrived, self._left = moment, arrived, _NTH

    def at(self, moment: str) -> None:
        if moment == "before processing" and self._moment == "rebalance":
            self._arrived.set()  # this member works, so another one may join
        if moment == "before processing" and self._moment == "asleep":
            moment = "asleep"
        if moment != self._moment:
            return
        self._left -= 1
        if moment == "asleep" and not self._left:
            self._arrived.set()
        if moment == "rebalance" or not self._left:
            os.kill(os.getpid(), signal.SIGSTOP if moment == "asleep" else signal.SIGKILL)


class _TriedBook(Book):
    def __init__(self, where: str, failpoint: _Failpoint) -> None:
        super().__init__(where)
        self._failpoint = failpoint

    def add(self, records: Sequence[Message]) -> None:
        self._failpoint.at("before processing")
        super().add(records)
        self._failpoint.at("after processing")

    def add_with_positions(self, records: Sequence[Message], *, left_out: Sequence[Message] = ()) -> None:
        self._failpoint.at("before processing")
        super().add_with_positions(records, left_out=left_out)
        self._failpoint.at("after processing")

    def _before_commit(self) -> None:
        self._failpoint.at("during processing")


class _TriedConsumer(Consumer):
    failpoint: _Failpoint

    def commit(self, *args: Any, **kwargs: Any) -> Any:
        self.failpoint.at("before commit")
        done = super().commit(*args, **kwargs)
        self.failpoint.at("after commit")
        return done


def _run(settings: Mapping[str, object], topic: str, where: str, way: Way | str, moment: str | None, arrived: Event) -> None:
    signal.alarm(_LAST_RESORT)
    failpoint = _Failpoint(moment, arrived)
    book, consumer = _TriedBook(where, failpoint), _TriedConsumer(dict(settings))
    consumer.failpoint = failpoint
    handle = way if callable(way) else _from_text(way)
    # A member that slept too long was removed from the group, so its commit is rejected.
    with contextlib.suppress(*[KafkaException] if moment == "asleep" else []):
        read_batches(
            consumer,
            topic,
            partial(handle, consumer, book),
            until_end=moment != "rebalance",
            start_at=book.positions if handle.__name__ == "exactly_once" else None,
            on_revoke=partial(failpoint.at, "rebalance"),
        )


def _as_text(way: Function) -> Function | str:
    """Return what another process can receive: the source of a function from a notebook, else the function."""
    return textwrap.dedent(inspect.getsource(way)) if way.__module__ == "__main__" else way


def _from_text(text: str) -> Any:
    names = dict(vars(book_module))
    before = set(names)
    exec(text, names)
    return next(value for name, value in names.items() if name not in before and callable(value))


# -- between two topics ---------------------------------------------------------------------------------------------

Conversion = Callable[[Consumer, Producer, str, Sequence[Message]], None]
"""Copies a batch into another topic."""


CONVERSION_MOMENTS = ("during processing", "before commit", "after commit", "asleep")
"""When to kill: ``asleep`` suspends it before its commit until another one has taken over, and kills nothing."""

_AMID = 5  # records that are already in the log
_FENCED = 3  # exit status of a process that woke up and was fenced


def try_conversion(
    config: Mapping[str, object], topic: str, target: str, convert: Conversion, moment: str = "before commit"
) -> bool:
    """Copy a topic with `convert` and kill it at its second batch. Then run it again to the end.

    Parameters
    ----------
    config
        Client settings: at least ``bootstrap.servers``.
    topic
        A topic with at least two batches in each partition.
    target
        The topic to write to, a new one for each trial.
    convert
        Copies a batch.
    moment
        One of `CONVERSION_MOMENTS`: when 5 records of the batch are in the log, or all of them, before or after the
        commit.

    Returns
    -------
    bool
        Whether the moment came: the process was killed, or woke up and was fenced. False if it never committed a
        transaction.

    Raises
    ------
    RuntimeError
        If its successor didn't reach the end.
    """
    settings = {**config, "group.id": f"convert-{uuid.uuid4().hex[:6]}", "group.instance.id": "one", "log_level": 0}
    settings |= {"enable.auto.commit": False, "auto.offset.reset": "earliest"}
    settings |= {"enable.partition.eof": True, "fetch.wait.max.ms": 100}
    transactional = {**config, "transactional.id": f"convert-{uuid.uuid4().hex[:6]}", "log_level": 0}

    arrived = _processes.Event()

    def start(moment: str | None) -> BaseProcess:
        return _start(_run_conversion, settings, transactional, topic, target, _as_text(convert), moment, arrived)

    first = start(moment)
    while _exit_status(first, 0) is None and not arrived.wait(0.1):
        pass  # wait until it works or ends
    after = _exit_status(start(None))
    if arrived.is_set():
        _wake(first)
    status = _exit_status(first)
    if after != 0:
        raise RuntimeError(f"{convert.__name__}, {moment}: its successor ended with exit status {after}")
    return status == (_FENCED if moment == "asleep" else -signal.SIGKILL)


class _TriedProducer(Producer):
    failpoint: _Failpoint
    _written = 0

    def begin_transaction(self) -> None:
        self._written = 0
        super().begin_transaction()

    def produce(self, *args: Any, **kwargs: Any) -> None:
        super().produce(*args, **kwargs)
        self._written += 1
        if self._written == _AMID:
            self._at("during processing")

    def commit_transaction(self, *args: Any) -> None:
        self._at("before commit")
        self._at("asleep")
        super().commit_transaction(*args)
        self.failpoint.at("after commit")

    def _at(self, moment: str) -> None:
        self.flush()  # everything produced is in the log when the process dies
        self.failpoint.at(moment)


def _run_conversion(
    settings: Mapping[str, object],
    transactional: Mapping[str, object],
    topic: str,
    target: str,
    convert: Conversion | str,
    moment: str | None,
    arrived: Event,
) -> None:
    signal.alarm(_LAST_RESORT)
    silent = logging.getLogger("trials")  # librdkafka would log that they are fenced, whatever the log level
    silent.disabled = True
    consumer, producer = Consumer(dict(settings), logger=silent), _TriedProducer(dict(transactional), logger=silent)
    producer.failpoint = _Failpoint(moment, arrived)
    producer.init_transactions()  # aborts a transaction that a predecessor left open
    handle = convert if callable(convert) else _from_text(convert)
    try:
        read_batches(consumer, topic, partial(handle, consumer, producer, target), until_end=True)
    except KafkaException as error:
        if moment != "asleep" or error.args[0].code() != KafkaError._FENCED:
            raise
        sys.exit(_FENCED)

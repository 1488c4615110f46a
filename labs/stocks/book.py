"""What was processed, in a database: the effect that a consumer must bring about once for each record."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import OFFSET_BEGINNING, Message, TopicPartition

from stocks.prices import deserialize

__all__ = ["Book", "following"]

_TABLES = """
CREATE TABLE IF NOT EXISTS bookings (topic TEXT, part INTEGER, place INTEGER, name TEXT, cents INTEGER);
CREATE TABLE IF NOT EXISTS positions (topic TEXT, part INTEGER, next INTEGER, PRIMARY KEY (topic, part));
"""


def following(records: Sequence[Message]) -> list[TopicPartition]:
    """Where to go on after these records: for each of their partitions the offset after the last one, which is what is committed."""
    after: dict[tuple[str, int], int] = {}
    for record in records:
        place = (record.topic(), record.partition())
        after[place] = max(after.get(place, 0), record.offset() + 1)
    return [TopicPartition(topic, partition, offset) for (topic, partition), offset in after.items()]


class Book:
    """Bookings of stock prices in SQLite: a row for each record, and a second one if it is processed again.

    Parameters
    ----------
    path
        The database's file; made if it is not there.
    patience
        Seconds to wait for another process that holds the database locked.

    Raises
    ------
    sqlite3.OperationalError
        By each method, when the database is locked for longer, or gone. Nothing of what was to be written stands in it then.
    """

    def __init__(self, path: Path | str, *, patience: float = 5.0) -> None:
        self._database = sqlite3.connect(path, timeout=patience, isolation_level=None)
        self._database.executescript(_TABLES)

    def add(self, records: Sequence[Message]) -> None:
        """Book these records, all of them or none."""
        with self._transaction():
            self._insert(records)

    def add_with_positions(self, records: Sequence[Message]) -> None:
        """Book these records and where to go on after them, all or nothing; what was booked before is left out.

        Who reads on from `positions` books each record exactly once: the database cannot hold the one without the other. And should
        somebody else have read the same partition meanwhile, `positions` tells.
        """
        with self._transaction():
            done = {(p.topic, p.partition): p.offset for p in self._read_positions()}
            new = [r for r in records if r.offset() >= done.get((r.topic(), r.partition()), 0)]
            self._insert(new)
            self._database.executemany(
                "INSERT INTO positions VALUES (?, ?, ?) ON CONFLICT (topic, part) DO UPDATE SET next = excluded.next",
                [(p.topic, p.partition, p.offset) for p in following(new)],
            )

    def positions(self, partitions: Sequence[TopicPartition]) -> list[TopicPartition]:
        """Where to go on in these partitions: at the beginning in those of which nothing is booked."""
        known = {(p.topic, p.partition): p.offset for p in self._read_positions()}
        return [TopicPartition(p.topic, p.partition, known.get((p.topic, p.partition), OFFSET_BEGINNING)) for p in partitions]

    def bookings(self) -> list[tuple[int, int]]:
        """Partition and offset of each booking, in the order booked."""
        return self._database.execute("SELECT part, place FROM bookings ORDER BY rowid").fetchall()

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    def _read_positions(self) -> list[TopicPartition]:
        return [TopicPartition(*row) for row in self._database.execute("SELECT topic, part, next FROM positions")]

    def _insert(self, records: Sequence[Message]) -> None:
        prices = [(record, deserialize(record.value())) for record in records]
        rows = [(r.topic(), r.partition(), r.offset(), p.name, 100 * p.dollars + p.cents) for r, p in prices]
        self._database.executemany("INSERT INTO bookings VALUES (?, ?, ?, ?, ?)", rows)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._database.execute("BEGIN IMMEDIATE")  # locks for writing at once, so that what is read here stays true
        try:
            yield
            self._before_commit()
            self._database.execute("COMMIT")
        except BaseException:
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")
            raise

    def _before_commit(self) -> None:
        """Called when all is written and nothing is final."""

"""What was processed, in a database: the effect that a consumer must bring about once for each record."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from confluent_kafka import OFFSET_BEGINNING, Message, TopicPartition

from stocks.database import Database
from stocks.prices import StockPrice, deserialize
from stocks.records import place

__all__ = ["Book", "following"]

_TABLES = (
    "CREATE TABLE IF NOT EXISTS bookings (topic TEXT, part INTEGER, place BIGINT, name TEXT, cents BIGINT)",
    "CREATE TABLE IF NOT EXISTS latest (name TEXT PRIMARY KEY, topic TEXT, part INTEGER, place BIGINT, cents BIGINT)",
    "CREATE TABLE IF NOT EXISTS positions (topic TEXT, part INTEGER, next BIGINT, PRIMARY KEY (topic, part))",
)

# Both databases know how to put a row in the place of another one.
_LATEST = """INSERT INTO latest VALUES (?, ?, ?, ?, ?) ON CONFLICT (name) DO UPDATE
    SET topic = excluded.topic, part = excluded.part, place = excluded.place, cents = excluded.cents"""
_POSITION = "INSERT INTO positions VALUES (?, ?, ?) ON CONFLICT (topic, part) DO UPDATE SET next = excluded.next"


def following(records: Sequence[Message]) -> list[TopicPartition]:
    """Where to go on after these records.

    Parameters
    ----------
    records
        Of one or more partitions, in any order.

    Returns
    -------
    list of TopicPartition
        For each of their partitions the offset after the last one, which is what is committed.
    """
    after: dict[tuple[str, int], int] = {}
    for record in records:
        topic, partition, offset = place(record)
        after[topic, partition] = max(after.get((topic, partition), 0), offset + 1)
    return [TopicPartition(topic, partition, offset) for (topic, partition), offset in after.items()]


class Book:
    """Bookings of stock prices: a row for each time a record is processed, and the latest price of each stock.

    Parameters
    ----------
    where
        A file for SQLite, made if it is not there; or the URL of a PostgreSQL database (``postgresql://user@host/name``).
    patience
        Seconds to wait for another process that holds the database locked.

    Raises
    ------
    DatabaseUnavailable
        By each method, when the database is locked for longer, or gone. A batch is then booked as a whole or not at all, and
        who reads on from `positions` need not know which.
    """

    def __init__(self, where: Path | str, *, patience: float = 5.0) -> None:
        self._database = Database(where, patience)
        with self._database.transaction():
            for table in _TABLES:
                self._database.run(table)

    def add(self, records: Sequence[Message]) -> None:
        """Book these records, all of them or none.

        Parameters
        ----------
        records
            Stock prices, those of a partition in its order.
        """
        with self._database.transaction():
            self._insert(records)
            self._before_commit()

    def add_with_positions(self, records: Sequence[Message], *, left_out: Sequence[Message] = ()) -> None:
        """Book these records and where to go on after them, all or nothing; what was booked before is left out.

        A consumer that reads on from `positions` books each record exactly once: the database can't hold one without the
        other. If another consumer has booked the same partition meanwhile, `positions` tells.

        Parameters
        ----------
        records
            Stock prices, those of a partition in its order.
        left_out
            Records of which nothing is booked. Reading goes on after them, too.
        """
        with self._database.transaction():
            done = self._positions()

            def is_new(record: Message) -> bool:
                topic, partition, offset = place(record)
                return offset >= done.get((topic, partition), 0)

            new = list(filter(is_new, records))
            self._insert(new)
            after = following([*new, *filter(is_new, left_out)])
            self._database.run(_POSITION, [(p.topic, p.partition, p.offset) for p in after])
            self._before_commit()

    def positions(self, partitions: Sequence[TopicPartition]) -> list[TopicPartition]:
        """Where to go on.

        Parameters
        ----------
        partitions
            Those that are asked for.

        Returns
        -------
        list of TopicPartition
            The same ones with their offsets: the beginning, where nothing is booked.
        """
        known = self._positions()
        return [TopicPartition(p.topic, p.partition, known.get((p.topic, p.partition), OFFSET_BEGINNING)) for p in partitions]

    def bookings(self) -> list[tuple[int, int]]:
        """Partition and offset of each booking, in this order."""
        return self._database.query("SELECT part, place FROM bookings ORDER BY part, place")

    def latest(self) -> dict[str, StockPrice]:
        """The price of each stock that was booked last, by symbol."""
        rows = self._database.query("SELECT name, cents FROM latest ORDER BY name")
        return {name: StockPrice(name, *divmod(cents, 100)) for name, cents in rows}

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    def _positions(self) -> dict[tuple[str, int], int]:
        rows = self._database.query("SELECT topic, part, next FROM positions")
        return {(topic, part): offset for topic, part, offset in rows}

    def _insert(self, records: Sequence[Message]) -> None:
        prices = [(record, deserialize(record.value())) for record in records]
        rows = [(*place(record), price.name, 100 * price.dollars + price.cents) for record, price in prices]
        self._database.run("INSERT INTO bookings VALUES (?, ?, ?, ?, ?)", rows)
        latest = {name: (name, *where, cents) for *where, name, cents in rows}  # a stock's last price replaces those before
        self._database.run(_LATEST, list(latest.values()))

    def _before_commit(self) -> None:
        """Called when all is written and nothing is final."""

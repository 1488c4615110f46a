"""Keep what was processed in a database: the effect that a consumer must have exactly once per record."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from confluent_kafka import OFFSET_BEGINNING, Message, TopicPartition

from kafkacourse.stocks.database import Database
from kafkacourse.stocks.prices import StockPrice, deserialize
from kafkacourse.stocks.records import place

__all__ = ["Book", "following"]

_TABLES = (
    "CREATE TABLE IF NOT EXISTS bookings (topic TEXT, part INTEGER, place BIGINT, name TEXT, cents BIGINT)",
    "CREATE TABLE IF NOT EXISTS latest (name TEXT PRIMARY KEY, topic TEXT, part INTEGER, place BIGINT, cents BIGINT)",
    "CREATE TABLE IF NOT EXISTS positions (topic TEXT, part INTEGER, next BIGINT, PRIMARY KEY (topic, part))",
)

# Both databases can replace a row by another one.
_LATEST = """INSERT INTO latest VALUES (?, ?, ?, ?, ?) ON CONFLICT (name) DO UPDATE
    SET topic = excluded.topic, part = excluded.part, place = excluded.place, cents = excluded.cents"""
_POSITION = "INSERT INTO positions VALUES (?, ?, ?) ON CONFLICT (topic, part) DO UPDATE SET next = excluded.next"


def following(records: Sequence[Message]) -> list[TopicPartition]:
    """Return the offsets to commit after these records.

    Parameters
    ----------
    records
        Records of one or more partitions, in any order.

    Returns
    -------
    list of TopicPartition
        For each partition, the offset after its last record. That is the offset to commit.
    """
    after: dict[tuple[str, int], int] = {}
    for record in records:
        topic, partition, offset = place(record)
        after[topic, partition] = max(after.get((topic, partition), 0), offset + 1)
    return [TopicPartition(topic, partition, offset) for (topic, partition), offset in after.items()]


class Book:
    """Book stock prices: a row for each time a record is processed, and the latest price of each stock.

    Parameters
    ----------
    where
        A file for SQLite, created if it's missing, or the URL of a PostgreSQL database
        (``postgresql://user@host/name``).
    patience
        Seconds to wait while another process locks the database.

    Raises
    ------
    DatabaseUnavailable
        From each method, if the database stays locked for longer, or is gone. A batch is then booked as a whole or not
        at all. A consumer that continues from `positions` doesn't need to know which.
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
            Stock prices, in partition order.
        """
        with self._database.transaction():
            self._insert(records)
            self._before_commit()

    def add_with_positions(self, records: Sequence[Message], *, left_out: Sequence[Message] = ()) -> None:
        """Book these records and the offsets after them, all or nothing. Records that are already booked are left out.

        A consumer that continues from `positions` books each record exactly once, because the database can't hold a
        record without its position. If another consumer has booked the same partition meanwhile, `positions` shows it.

        Parameters
        ----------
        records
            Stock prices, in partition order.
        left_out
            Records that aren't booked. The positions move past them, too.
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
        """Return the offsets to continue from.

        Parameters
        ----------
        partitions
            The partitions to look up.

        Returns
        -------
        list of TopicPartition
            The same partitions with their offsets. Where nothing is booked, that's the beginning.
        """
        known = self._positions()
        return [TopicPartition(p.topic, p.partition, known.get((p.topic, p.partition), OFFSET_BEGINNING)) for p in partitions]

    def bookings(self) -> list[tuple[int, int]]:
        """Return partition and offset of each booking, in this order."""
        return self._database.query("SELECT part, place FROM bookings ORDER BY part, place")

    def latest(self) -> dict[str, StockPrice]:
        """Return the last booked price of each stock, by symbol."""
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
        latest = {name: (name, *where, cents) for *where, name, cents in rows}  # a stock's last price replaces earlier ones
        self._database.run(_LATEST, list(latest.values()))

    def _before_commit(self) -> None:
        """Run when everything is written but not committed yet."""

"""The tables in PostgreSQL. Writing a batch again changes nothing, so a batch repeated after a crash counts once."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, TypeVar

import psycopg
import pyarrow as pa
from psycopg import sql
from pyarrow import csv

from truck_pipeline.layout import lay_out
from truck_pipeline.ledger import Answers
from truck_pipeline.outage import retry

__all__ = ["Batch", "Tables", "TablesTaken"]

T = TypeVar("T")

_TIMEOUT = 5  # seconds for a connection, and for another writer that is about to end

# Rows arrive here, of this connection alone, and go on from here to the tables.
_STAGING = """
CREATE TEMPORARY TABLE IF NOT EXISTS counts (starts TIMESTAMPTZ, driver INT, events BIGINT, dangerous BIGINT)
    ON COMMIT DELETE ROWS;
CREATE TEMPORARY TABLE IF NOT EXISTS alarms (
    correlation TEXT, happened TIMESTAMPTZ, kind TEXT, truck INT, driver INT, first_name TEXT, last_name TEXT,
    latitude FLOAT, longitude FLOAT, sent TIMESTAMPTZ) ON COMMIT DELETE ROWS
"""

# The batches first: `_STILL_SEEN` holds them.
_FORGET = "DELETE FROM {schema}.batches; DELETE FROM {schema}.driving"

# The gate: a batch passes it once. Batches come in the order of their numbers.
_GATE = """
INSERT INTO {schema}.batches (batch, events, dead, seen, half_sent, first_sent)
SELECT %(number)s, %(events)s, %(dead)s, %(seen)s, %(half_sent)s, %(first_sent)s
WHERE NOT EXISTS (SELECT FROM {schema}.batches WHERE batch >= %(number)s)
"""

_COUNTS = """
INSERT INTO {schema}.driving (starts, driver, events, dangerous) SELECT * FROM counts
ON CONFLICT (starts, driver) DO UPDATE SET
    events = driving.events + EXCLUDED.events, dangerous = driving.dangerous + EXCLUDED.dangerous
"""

# Holds a batch until the end of the transaction, so that no stream begins anew meanwhile.
_STILL_SEEN = "SELECT FROM {schema}.batches WHERE seen >= %s ORDER BY batch LIMIT 1 FOR KEY SHARE"

_LATE = """
INSERT INTO {schema}.driving (starts, driver, events, dangerous, late) SELECT starts, driver, 0, dangerous, events FROM counts
ON CONFLICT (starts, driver) DO UPDATE SET
    late = GREATEST(EXCLUDED.late - driving.events, 0), dangerous = GREATEST(EXCLUDED.dangerous, driving.dangerous)
"""

_OLD = ("DELETE FROM {schema}.driving WHERE starts < %s", "DELETE FROM {schema}.dangerous_driving WHERE happened < %s")

_ALARMS = "INSERT INTO {schema}.dangerous_driving SELECT * FROM alarms ON CONFLICT (correlation) DO NOTHING"

_OLD_BATCHES = "DELETE FROM {schema}.batches WHERE stored < now() - INTERVAL '1 day' AND batch < %s"


@dataclass(frozen=True)
class Batch:
    """What the table `batches` keeps of a batch.

    Attributes
    ----------
    number
        Its number. Batches come in the order of their numbers.
    events, dead
        How many new events it has, and how many dead letters.
    seen
        The latest time by which the watermark goes.
    half_sent, first_sent
        When half of its events, and all but the first percent, had been sent.
    """

    number: int
    events: int
    dead: int
    seen: datetime | None
    half_sent: datetime | None
    first_sent: datetime | None


class TablesTaken(Exception):
    """Raised if another pipeline writes to the same tables. Nothing has been changed."""


class Tables:
    """The tables of a pipeline: counts, alarms, and the batches that are in them.

    Writes go through one connection, which holds a lock on the tables as long as it's open. So two pipelines never count in the
    same tables, not even by mistake.

    Parameters
    ----------
    database
        URL of the server.
    schema
        The schema that holds the tables.
    wait
        Seconds that a write waits for a server that is away.

    Raises
    ------
    ConnectionError
        By writes, when the server doesn't come back in time. Nothing is half written.
    TablesTaken
        By writes, when another pipeline has the lock.
    """

    def __init__(self, database: str, schema: str, wait: float = 60) -> None:
        self._database, self._name, self._wait = database, schema, wait
        self._writer: psycopg.Connection | None = None
        self._writing = threading.Lock()

    def __getstate__(self) -> dict[str, object]:
        """Pickle no connection: each process has one of its own."""
        return {"_database": self._database, "_name": self._name, "_wait": self._wait}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["_database"], state["_name"], state["_wait"])  # type: ignore[misc]

    def create(self) -> None:
        """Create the tables that don't exist yet, and bring those of an older version up to date.

        Raises
        ------
        TablesDiffer
            When tables of these names have other columns.
        """

        def create(connection: psycopg.Connection) -> None:
            connection.execute("SELECT pg_advisory_xact_lock(11)")  # one creator at a time
            lay_out(connection, self._name)

        self._retry(lambda: self._once(create))

    def close(self) -> None:
        """Give up the lock on the tables. The next write takes it again."""
        with self._writing:
            self._disconnect()

    def drop(self) -> None:
        """Drop the schema with everything in it."""
        self.close()
        with self._connect() as connection:
            connection.execute(self._statement("DROP SCHEMA IF EXISTS {schema} CASCADE"))

    def empty(self) -> None:
        """Delete all counts, for a stream that begins anew. This takes the lock."""
        self._write(lambda connection: connection.execute(self._statement(_FORGET)))

    def claim(self) -> None:
        """Take the lock on the tables."""
        self._write(lambda connection: None)

    def put(self, batch: Batch | None, counts: pa.Table, alarms: pa.Table) -> None:
        """Store a batch's answers in one transaction.

        Parameters
        ----------
        batch
            A batch of a stream; a repeated one counts once. None stands for a batch of the whole topic, whose counts replace
            all others.
        counts
            `starts`, `driverId`, `events` and `dangerous`, to be added to the stored counts.
        alarms
            Columns of `dangerous_driving` but the last. Stored rows stay as they are.
        """

        def put(connection: psycopg.Connection) -> None:
            cursor = connection.cursor()
            if batch is None:
                cursor.execute(self._statement(_FORGET))
            else:
                cursor.execute(self._statement(_GATE), asdict(batch))
                if not cursor.rowcount:
                    return
                cursor.execute(self._statement(_OLD_BATCHES), [batch.number])
            self._copy(cursor, ("counts", counts, _COUNTS), ("alarms", alarms, _ALARMS))

        self._write(put)

    def add_late(self, seen: datetime, counts: pa.Table, alarms: pa.Table) -> None:
        """Store how many events of windows came too late for the stream, and their alarms, in one transaction.

        It needs no lock, so the stream may run. The windows must be final: then the stream neither changes their rows nor adds
        alarms of theirs, and the two never write to the same row. If the stream begins anew, its windows are no longer final.
        Then this stores nothing.

        Parameters
        ----------
        seen
            The latest time of a batch, by which the windows were found to be final.
        counts
            `starts`, `driverId`, `events` and `dangerous`: all events, the late ones among them. What the stream hasn't counted
            of them is late.
        alarms
            Columns of `dangerous_driving` but the last. Stored rows stay as they are.
        """

        def add(connection: psycopg.Connection) -> None:
            cursor = connection.cursor()
            cursor.execute(self._statement(_STILL_SEEN), [seen])
            if cursor.rowcount:
                cursor.execute(_STAGING)
                self._copy(cursor, ("counts", counts, _LATE), ("alarms", alarms, _ALARMS))

        self._retry(lambda: self._once(add))

    def forget(self, seen: datetime, before: datetime) -> int:
        """Delete windows that start before a time, and alarms of events from before it, in one transaction.

        As for `add_late`, the windows must be final, and nothing is deleted if the stream begins anew.

        Parameters
        ----------
        seen
            The latest time of a batch, by which the windows were found to be final.
        before
            The time.

        Returns
        -------
        int
            How many rows were deleted.
        """

        def forget(connection: psycopg.Connection) -> int:
            if not connection.execute(self._statement(_STILL_SEEN), [seen]).rowcount:
                return 0
            return sum(connection.execute(self._statement(old), [before]).rowcount for old in _OLD)

        return self._retry(lambda: self._once(forget))

    def answers(self) -> Answers:
        """Return the answers in the tables."""
        counts = self.ask("SELECT starts, driver, events + late, dangerous FROM {schema}.driving")
        alarms = self.ask("SELECT correlation, driver, first_name, last_name FROM {schema}.dangerous_driving")
        return Answers(
            {(_seconds(starts), driver): (events, dangerous) for starts, driver, events, dangerous in counts},
            {correlation: (driver, _full_name(first, last)) for correlation, driver, first, last in alarms},
        )

    def filled(self) -> bool:
        """Return whether the tables hold any counts."""
        return self.ask("SELECT EXISTS (SELECT FROM {schema}.driving)") == [(True,)]

    def streamed(self) -> bool:
        """Return whether a stream has counted in the tables, batch by batch."""
        return self.ask("SELECT EXISTS (SELECT FROM {schema}.batches)") == [(True,)]

    def ask(self, query: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query. ``{schema}`` in it stands for the schema."""
        with self._connect() as connection:
            return connection.execute(self._statement(query)).fetchall()

    def _write(self, work: Callable[[psycopg.Connection], object]) -> None:
        """Work in one transaction, with the lock. If the server goes away before the commit, work again."""

        def attempt() -> None:
            with self._writing:
                try:
                    with self._locked().transaction():
                        work(self._locked())
                except psycopg.OperationalError:
                    self._disconnect()
                    raise

        self._retry(attempt)

    def _retry(self, attempt: Callable[[], T]) -> T:
        return retry(attempt, "PostgreSQL", self._wait, (psycopg.OperationalError,))

    def _copy(self, cursor: psycopg.Cursor, *steps: tuple[str, pa.Table, str]) -> None:
        """Copy rows into tables for staging, and from each on by a statement."""
        for table, rows, insert in steps:
            if rows.num_rows:
                with cursor.copy(f"COPY {table} FROM STDIN (FORMAT csv)".encode()) as copy:
                    copy.write(_csv(rows))
                cursor.execute(self._statement(insert))

    def _once(self, work: Callable[[psycopg.Connection], T]) -> T:
        with self._connect() as connection:
            return work(connection)

    def _locked(self) -> psycopg.Connection:
        """Return the connection with the lock."""
        if self._writer is None:
            connection = self._connect()
            connection.autocommit = True
            try:
                # A lock outlives the process that held it for as long as the server takes to notice.
                connection.execute(f"SET lock_timeout = '{_TIMEOUT}s'".encode())
                connection.execute("SELECT pg_advisory_lock(11, hashtext(%s))", [self._name])
                connection.execute("RESET lock_timeout")
                connection.execute(_STAGING)
            except psycopg.errors.LockNotAvailable:
                connection.close()
                raise TablesTaken(_TAKEN.format(self._name)) from None
            self._writer = connection
        return self._writer

    def _disconnect(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _connect(self) -> psycopg.Connection:
        return psycopg.connect(self._database, connect_timeout=_TIMEOUT)

    def _statement(self, text: str) -> sql.Composed:
        return sql.SQL(text).format(schema=sql.Identifier(self._name))


_TAKEN = "another pipeline writes to the tables of {}. Nothing was changed; end that one, or give another schema for the tables"


def _csv(rows: pa.Table) -> memoryview:
    """Return rows as PostgreSQL reads them: nothing between two commas is a null, and an empty text has quotation marks."""
    text = io.BytesIO()
    csv.write_csv(rows, text, csv.WriteOptions(include_header=False))
    return text.getbuffer()


def _seconds(time: datetime) -> int:
    return int(time.timestamp())


def _full_name(first: str | None, last: str | None) -> str | None:
    return f"{first} {last}" if last else None

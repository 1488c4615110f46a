"""The tables in PostgreSQL. To write a row again changes nothing: a batch that is repeated after a crash counts once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any

import psycopg
from psycopg import sql

from pipeline.ledger import Answers
from pipeline.outage import patiently

__all__ = ["Rows", "Tables"]

Rows = Callable[[], Iterable[Sequence[Any]]]
"""Gives the rows to write. It's called again when PostgreSQL went away amid them."""

_TIMEOUT = 5  # seconds for a connection

_CREATE = """
CREATE SCHEMA IF NOT EXISTS {schema};
CREATE TABLE IF NOT EXISTS {schema}.driving (
    starts TIMESTAMPTZ, driver INT, events BIGINT, dangerous BIGINT, PRIMARY KEY (starts, driver));
CREATE TABLE IF NOT EXISTS {schema}.dangerous_driving (
    correlation TEXT PRIMARY KEY, happened TIMESTAMPTZ, kind TEXT, truck INT, driver INT, first_name TEXT, last_name TEXT,
    latitude FLOAT, longitude FLOAT, sent TIMESTAMPTZ, stored TIMESTAMPTZ DEFAULT clock_timestamp())
"""

_COUNTS = """
INSERT INTO {schema}.driving VALUES (%s, %s, %s, %s)
ON CONFLICT (starts, driver) DO UPDATE SET events = EXCLUDED.events, dangerous = EXCLUDED.dangerous
"""

_DANGEROUS = """
INSERT INTO {schema}.dangerous_driving VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
ON CONFLICT (correlation) DO NOTHING
"""


class Tables:
    """The two tables of a pipeline.

    Parameters
    ----------
    database
        URL of the server.
    schema
        The schema in which they are.
    wait
        For how many seconds whoever writes waits for a server that is away.

    Raises
    ------
    ConnectionError
        By what writes, when the server doesn't come back in time. Nothing is half written.
    """

    def __init__(self, database: str, schema: str, wait: float = 60) -> None:
        self._database, self._schema, self._wait = database, sql.Identifier(schema), wait

    def create(self) -> None:
        """Create them, unless they are there."""

        def create(connection: psycopg.Connection) -> None:
            connection.execute("SELECT pg_advisory_xact_lock(11)")  # one who does so at a time
            connection.execute(self._statement(_CREATE))

        self._patiently(create)

    def drop(self) -> None:
        """Drop the schema with all that is in it."""
        with self._connect() as connection:
            connection.execute(self._statement("DROP SCHEMA IF EXISTS {schema} CASCADE"))

    def put_counts(self, rows: Rows) -> None:
        """Set the counts of windows, in one transaction. Rows: start, driver, events, dangerous ones."""
        self._write(_COUNTS, rows)

    def put_dangerous(self, rows: Rows) -> None:
        """Add dangerous events, in one transaction; those that are there stay. Rows: all columns but the last."""
        self._write(_DANGEROUS, rows)

    def answers(self) -> Answers:
        """What they hold."""
        counts = self.ask("SELECT starts, driver, events, dangerous FROM {schema}.driving")
        alarms = self.ask("SELECT correlation, driver, first_name, last_name FROM {schema}.dangerous_driving")
        return Answers(
            {(_seconds(starts), driver): (events, dangerous) for starts, driver, events, dangerous in counts},
            {correlation: (driver, _name(first, last)) for correlation, driver, first, last in alarms},
        )

    def filled(self) -> bool:
        """Whether they hold anything."""
        return self.ask("SELECT EXISTS (SELECT FROM {schema}.driving)") == [(True,)]

    def ask(self, query: str) -> list[tuple[Any, ...]]:
        """Rows that a query gives; ``{schema}`` in it stands for the schema."""
        with self._connect() as connection:
            return connection.execute(self._statement(query)).fetchall()

    def _write(self, statement: str, rows: Rows) -> None:
        def write(connection: psycopg.Connection) -> None:
            with connection.cursor() as cursor:
                cursor.executemany(self._statement(statement), rows())

        self._patiently(write)

    def _patiently(self, work: Callable[[psycopg.Connection], None]) -> None:
        """Do something in one transaction, and again when the server went away amid it."""

        def attempt() -> None:
            with self._connect() as connection:
                work(connection)

        patiently(attempt, "PostgreSQL", self._wait, (psycopg.OperationalError,))

    def _connect(self) -> psycopg.Connection:
        return psycopg.connect(self._database, connect_timeout=_TIMEOUT)

    def _statement(self, text: str) -> sql.Composed:
        return sql.SQL(text).format(schema=self._schema)


def _seconds(time: datetime) -> int:
    return int(time.timestamp())


def _name(first: str | None, last: str | None) -> str | None:
    return f"{first} {last}" if last else None

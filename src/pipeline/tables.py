"""The tables in PostgreSQL. To write a row again changes nothing: a batch that is repeated after a crash counts once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import psycopg
from psycopg import sql

from pipeline.ledger import Answers

__all__ = ["Tables"]

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
    """

    def __init__(self, database: str, schema: str) -> None:
        self._database, self._schema = database, sql.Identifier(schema)

    def create(self) -> None:
        """Create them, unless they are there."""
        with psycopg.connect(self._database) as connection:
            connection.execute("SELECT pg_advisory_xact_lock(11)")  # one who does so at a time
            connection.execute(self._statement(_CREATE))

    def drop(self) -> None:
        """Drop the schema with all that is in it."""
        with psycopg.connect(self._database) as connection:
            connection.execute(self._statement("DROP SCHEMA IF EXISTS {schema} CASCADE"))

    def put_counts(self, rows: Iterable[Sequence[Any]]) -> None:
        """Set the counts of windows, in one transaction. Rows: start, driver, events, dangerous ones."""
        self._write(_COUNTS, rows)

    def put_dangerous(self, rows: Iterable[Sequence[Any]]) -> None:
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

    def ask(self, query: str) -> list[tuple[Any, ...]]:
        """Rows that a query gives; ``{schema}`` in it stands for the schema."""
        with psycopg.connect(self._database) as connection:
            return connection.execute(self._statement(query)).fetchall()

    def _write(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        with psycopg.connect(self._database) as connection, connection.cursor() as cursor:
            cursor.executemany(self._statement(statement), rows)

    def _statement(self, text: str) -> sql.Composed:
        return sql.SQL(text).format(schema=self._schema)


def _seconds(time: datetime) -> int:
    return int(time.timestamp())


def _name(first: str | None, last: str | None) -> str | None:
    return f"{first} {last}" if last else None

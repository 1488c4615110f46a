"""The tables in PostgreSQL. Writing a batch again changes nothing, so a batch repeated after a crash counts once."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import psycopg
from psycopg import sql

from truck_pipeline.ledger import Answers
from truck_pipeline.outage import retry

__all__ = ["Tables"]

_TIMEOUT = 5  # seconds for a connection

_CREATE = """
CREATE SCHEMA IF NOT EXISTS {schema};
CREATE TABLE IF NOT EXISTS {schema}.driving (
    starts TIMESTAMPTZ, driver INT, events BIGINT, dangerous BIGINT, PRIMARY KEY (starts, driver));
ALTER TABLE {schema}.driving ADD COLUMN IF NOT EXISTS batch BIGINT;
CREATE TABLE IF NOT EXISTS {schema}.dangerous_driving (
    correlation TEXT PRIMARY KEY, happened TIMESTAMPTZ, kind TEXT, truck INT, driver INT, first_name TEXT, last_name TEXT,
    latitude FLOAT, longitude FLOAT, sent TIMESTAMPTZ, stored TIMESTAMPTZ DEFAULT clock_timestamp())
"""

_FORGET = "DELETE FROM {schema}.driving"

# A row remembers the batch that it counted last.
_COUNTS = """
INSERT INTO {schema}.driving SELECT starts, "driverId", events, dangerous, %s FROM json_to_recordset(%s)
    AS new(starts TIMESTAMPTZ, "driverId" INT, events BIGINT, dangerous BIGINT)
ON CONFLICT (starts, driver) DO UPDATE SET
    events = driving.events + EXCLUDED.events, dangerous = driving.dangerous + EXCLUDED.dangerous, batch = EXCLUDED.batch
WHERE driving.batch < EXCLUDED.batch
"""

_DANGEROUS = """
INSERT INTO {schema}.dangerous_driving SELECT * FROM json_to_recordset(%s)
    AS new("correlationId" TEXT, time TIMESTAMPTZ, "eventType" TEXT, "truckId" INT, "driverId" INT, first_name TEXT,
           last_name TEXT, latitude FLOAT, longitude FLOAT, sent TIMESTAMPTZ)
ON CONFLICT (correlation) DO NOTHING
"""


class Tables:
    """The two tables of a pipeline.

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
    """

    def __init__(self, database: str, schema: str, wait: float = 60) -> None:
        self._database, self._schema, self._wait = database, sql.Identifier(schema), wait

    def create(self) -> None:
        """Create the tables that don't exist yet."""

        def create(connection: psycopg.Connection) -> None:
            connection.execute("SELECT pg_advisory_xact_lock(11)")  # one creator at a time
            connection.execute(self._statement(_CREATE))

        self._write(create)

    def drop(self) -> None:
        """Drop the schema with everything in it."""
        with self._connect() as connection:
            connection.execute(self._statement("DROP SCHEMA IF EXISTS {schema} CASCADE"))

    def empty(self) -> None:
        """Delete all counts, for a stream that begins anew."""
        self._write(lambda connection: connection.execute(self._statement(_FORGET)))

    def put(self, batch: int | None, counts: str, dangerous: str) -> None:
        """Store a batch's answers in one transaction.

        Parameters
        ----------
        batch
            Its number. Batches come in the order of their numbers, and a repeated batch counts once. None stands for a batch
            of the whole topic, whose counts replace all others.
        counts
            Rows of `transform.per_window` as an array in JSON, to be added to the stored counts.
        dangerous
            Rows of `transform.dangerous` as an array in JSON. Stored rows stay as they are.
        """

        def put(connection: psycopg.Connection) -> None:
            if batch is None:
                connection.execute(self._statement(_FORGET))
            connection.execute(self._statement(_COUNTS), [batch, counts])
            connection.execute(self._statement(_DANGEROUS), [dangerous])

        self._write(put)

    def answers(self) -> Answers:
        """Return the answers in the tables."""
        counts = self.ask("SELECT starts, driver, events, dangerous FROM {schema}.driving")
        alarms = self.ask("SELECT correlation, driver, first_name, last_name FROM {schema}.dangerous_driving")
        return Answers(
            {(_seconds(starts), driver): (events, dangerous) for starts, driver, events, dangerous in counts},
            {correlation: (driver, _name(first, last)) for correlation, driver, first, last in alarms},
        )

    def filled(self) -> bool:
        """Return whether the tables hold any counts."""
        return self.ask("SELECT EXISTS (SELECT FROM {schema}.driving)") == [(True,)]

    def streamed(self) -> bool:
        """Return whether a stream has counted in the tables, batch by batch."""
        return self.ask("SELECT EXISTS (SELECT FROM {schema}.driving WHERE batch IS NOT NULL)") == [(True,)]

    def ask(self, query: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query. ``{schema}`` in it stands for the schema."""
        with self._connect() as connection:
            return connection.execute(self._statement(query)).fetchall()

    def _write(self, work: Callable[[psycopg.Connection], object]) -> None:
        """Work in one transaction. If the server goes away before the commit, work again."""

        def attempt() -> None:
            with self._connect() as connection:
                work(connection)

        retry(attempt, "PostgreSQL", self._wait, (psycopg.OperationalError,))

    def _connect(self) -> psycopg.Connection:
        return psycopg.connect(self._database, connect_timeout=_TIMEOUT)

    def _statement(self, text: str) -> sql.Composed:
        return sql.SQL(text).format(schema=self._schema)


def _seconds(time: datetime) -> int:
    return int(time.timestamp())


def _name(first: str | None, last: str | None) -> str | None:
    return f"{first} {last}" if last else None

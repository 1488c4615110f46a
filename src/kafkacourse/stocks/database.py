"""The database behind a book: SQLite in a file, or PostgreSQL at a URL. Both run the same SQL."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

__all__ = ["Database", "DatabaseUnavailable"]

_ONE_WRITER = 4_848_200  # the number of an advisory lock in PostgreSQL


class DatabaseUnavailable(ConnectionError):
    """The database can't be opened, stays locked for too long, or is gone."""


class Database:
    """A database that you open by a file's path (SQLite) or by a URL (``postgresql://user@host/name``).

    The two differ in three things: the placeholder for a value in SQL, how a transaction keeps other writers out, and
    the exception that says the database doesn't answer. This class hides the differences.

    Parameters
    ----------
    where
        The file, created if it's missing, or the URL. PostgreSQL needs the package ``psycopg``.
    patience
        Seconds to wait while another process writes.

    Raises
    ------
    DatabaseUnavailable
        From each method, if the database stays locked for longer, or is gone.
    """

    def __init__(self, where: Path | str, patience: float) -> None:
        opened = _postgresql if str(where).startswith(("postgresql://", "postgres://")) else _sqlite
        self._connection, self._mark, self._begin, self._unavailable = opened(str(where), patience)

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """Run a query.

        Parameters
        ----------
        sql
            A SELECT.

        Returns
        -------
        list of tuple
            All rows of the result.
        """
        with self._told():
            return [tuple(row) for row in self._execute(sql).fetchall()]

    def run(self, sql: str, rows: Sequence[Sequence[object]] | None = None) -> None:
        """Run a statement.

        Parameters
        ----------
        sql
            The statement.
        rows
            Run it once for each of these rows. Their values replace the ``?`` in the statement.
        """
        with self._told():
            if rows is None:
                self._execute(sql)
            else:
                self._connection.cursor().executemany(sql.replace("?", self._mark), rows)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run everything inside or nothing. No other process writes meanwhile, so what you read inside stays true.

        Yields
        ------
        None
        """
        try:
            with self._told():
                for statement in self._begin:
                    self._execute(statement)
            yield
            with self._told():
                self._execute("COMMIT")
        except BaseException:
            with suppress(self._unavailable):  # no transaction was open, or the database is gone and has rolled back by itself
                self._execute("ROLLBACK")
            raise

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _execute(self, sql: str) -> Any:
        cursor = self._connection.cursor()
        cursor.execute(sql)
        return cursor

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except self._unavailable as error:
            raise DatabaseUnavailable(f"the database rejects it: {error}") from error


def _sqlite(path: str, patience: float) -> tuple[Any, str, tuple[str, ...], type[Exception]]:
    try:
        connection = sqlite3.connect(path, timeout=patience, isolation_level=None)
    except sqlite3.OperationalError as error:
        raise DatabaseUnavailable(f"{path}: {error}") from error
    return connection, "?", ("BEGIN IMMEDIATE",), sqlite3.OperationalError  # IMMEDIATE: locks for writing at once


def _postgresql(url: str, patience: float) -> tuple[Any, str, tuple[str, ...], type[Exception]]:
    try:
        import psycopg
    except ImportError as error:
        raise DatabaseUnavailable("PostgreSQL needs the package psycopg: pip install 'psycopg[binary]'") from error
    try:
        connection = psycopg.connect(url, autocommit=True, connect_timeout=10)
        connection.execute(f"SET lock_timeout = {round(1000 * patience)}")
    except psycopg.OperationalError as error:
        raise DatabaseUnavailable(f"the database cannot be opened: {error}") from error
    # Without the lock, PostgreSQL lets two writers begin, and one of them writes after reading outdated rows.
    return connection, "%s", ("BEGIN", f"SELECT pg_advisory_xact_lock({_ONE_WRITER})"), psycopg.OperationalError

"""Stop a function that stores batches after each of its transactions, and call a fresh copy of it again."""

from __future__ import annotations

import io
import pickle
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import psycopg
from psycopg import sql
from pyspark import cloudpickle

from kafkalab.checks.context import Unmet
from kafkalab.services import PostgreSQL

__all__ = ["Stopped", "stopped_and_repeated"]

Store = Callable[[Any, int], object]

_COPY = "drill"  # the name of the database that the function works on
_MOST = 8  # transactions after which a function is stopped; one with more writes row by row, and the first ones tell


class Stopped(BaseException):
    """Raised in a function that is stopped. Nothing that it does afterwards reaches the database."""


def stopped_and_repeated(store: Store, server: PostgreSQL, rows: Any, batch: int, ask: sql.SQL) -> Iterator[tuple[int, Any]]:
    """Yield what a question says when a batch was stopped after its first transaction, after its second one, and so on.

    Each time, a copy of the database is made. A copy of the function stores the batch there until it's stopped. Then another
    copy stores it again, up to the end. Copies have the values that the function's variables have now, so none knows what
    another one remembers: that's how a new process starts. The last time, no transaction is left, and it isn't stopped.

    Yields
    ------
    tuple
        How many transactions had ended when the function was stopped, and the rows that answer the question.

    Raises
    ------
    Unmet
        When the function can't be copied, or fails, or the database can't be copied.
    """
    kept = _packed(store)
    for transactions in range(1, _MOST + 1):
        with _copied(server):
            was_stopped = _call(kept, rows, batch, transactions)
            if was_stopped:
                _call(kept, rows, batch, sys.maxsize)
            with psycopg.connect(server.url, dbname=_COPY) as connection:
                yield transactions, connection.execute(ask).fetchall()
        if not was_stopped:
            return


def _call(kept: _Packed, rows: Any, batch: int, transactions: int) -> bool:
    """Return whether a copy of the function was stopped after so many transactions."""
    connect = _watched(transactions).connect
    with patch.object(psycopg, "connect", connect), patch.object(psycopg.Connection, "connect", connect):
        try:
            kept.unpacked()(rows, batch)
        except Stopped:
            return True
        except Exception as error:
            reason = str(error).partition("\n")[0]
            raise Unmet(f"A fresh copy of store stopped with {type(error).__name__}: {reason}") from None
    return False


def _watched(transactions: int) -> type[psycopg.Connection[Any]]:
    """Return a class of connections to the copied database that raise `Stopped` when so many transactions have ended."""
    plain = psycopg.Connection.connect.__func__  # type: ignore[attr-defined]
    ended = 0

    class Watched(psycopg.Connection[Any]):
        @classmethod
        def connect(cls, *args: Any, **options: Any) -> Any:
            return plain(Watched, *args, **{**options, "dbname": _COPY})

        def wait(self, *args: Any, **options: Any) -> Any:
            nonlocal ended
            if ended >= transactions:
                raise Stopped
            result = super().wait(*args, **options)
            ended += self.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
            if ended >= transactions:
                raise Stopped
            return result

    return Watched


@contextmanager
def _copied(server: PostgreSQL) -> Iterator[None]:
    drop = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(_COPY))
    with psycopg.connect(server.url, autocommit=True) as connection:
        own = sql.Identifier(connection.info.dbname)
        connection.execute(drop)
        try:
            connection.execute(sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(_COPY), own))
        except psycopg.errors.ObjectInUse:
            raise Unmet("A connection to PostgreSQL is open, so the check can't copy the database. Close it.") from None
        try:
            yield
        finally:
            connection.execute(drop)


class _Packed:
    """A function as bytes, and the objects among its variables that stay the same in each copy, such as sessions."""

    def __init__(self, data: bytes, shared: list[object]) -> None:
        self._data, self._shared = data, shared

    def unpacked(self) -> Store:
        unpickler = pickle.Unpickler(io.BytesIO(self._data))
        unpickler.persistent_load = self._shared.__getitem__  # type: ignore[method-assign]
        store: Store = unpickler.load()
        return store


def _packed(store: Store) -> _Packed:
    shared: list[object] = []

    class Pickler(cloudpickle.Pickler):
        def persistent_id(self, value: object) -> int | None:
            if isinstance(value, psycopg.Connection):
                raise Unmet("store uses a connection from outside. A new process hasn't got it: open one inside store.")
            # Modules and classes are found by their names. Objects of the packages are no memory of the learner's function.
            own = isinstance(value, type | types.ModuleType | types.FunctionType | types.BuiltinFunctionType)
            if own or not type(value).__module__.startswith(("kafkalab", "pyspark.sql", "confluent_kafka")):
                return None
            shared.append(value)
            return len(shared) - 1

    module = sys.modules.get(store.__module__)
    by_value = module is not None and module.__name__ != "__main__"
    data = io.BytesIO()
    try:
        if by_value:
            cloudpickle.register_pickle_by_value(module)
        Pickler(data).dump(store)  # type: ignore[no-untyped-call]
    except (TypeError, pickle.PicklingError) as error:
        raise Unmet(f"store can't be copied for a new process: {error}") from None
    finally:
        if by_value:
            cloudpickle.unregister_pickle_by_value(module)
    return _Packed(data.getvalue(), shared)

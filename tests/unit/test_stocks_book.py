"""The book of the stock-price application, in SQLite and in PostgreSQL, where each test works in a schema of its own."""

from __future__ import annotations

import sqlite3
import sys
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from confluent_kafka import OFFSET_BEGINNING, TopicPartition

from kafkacourse.stocks.book import Book
from kafkacourse.stocks.database import Database, DatabaseUnavailable
from kafkacourse.stocks.prices import MalformedStockPrice
from stock_support import Record, records
from support import MALFORMED_PRICES, PATIENCE


@pytest.fixture
def postgresql(postgresql_server: str) -> Iterator[str]:
    """The URL of a schema without tables."""
    server, schema = Database(postgresql_server, 5), f"book_{uuid.uuid4().hex[:8]}"
    server.run(f"CREATE SCHEMA {schema}")
    yield f"{postgresql_server}?options=-csearch_path%3D{schema}"
    server.run(f"DROP SCHEMA {schema} CASCADE")
    server.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database without tables."""
    return str(tmp_path / "book.db") if request.param == "sqlite" else request.getfixturevalue("postgresql")


def position(book: object, part: int = 0) -> int:
    [found] = book.positions([TopicPartition("stock-prices", part)])  # type: ignore[attr-defined]
    return found.offset


# -- both databases -------------------------------------------------------------------------------------------------


def test_a_book_books_what_it_is_given(where: str) -> None:
    book = Book(where)
    book.add(records(0, 2))
    book.add(records(0, 2))
    assert book.bookings() == [(0, 0), (0, 0), (0, 1), (0, 1), (0, 2), (0, 2)]
    assert position(book) == OFFSET_BEGINNING
    book.close()


def test_with_positions_it_books_what_is_new_and_a_second_start_knows_where_to_go_on(where: str) -> None:
    book = Book(where)
    for batch in (records(0, 2), records(1, 4), records(0, 2), [], [*records(2**40, 2**40, part=1)]):
        book.add_with_positions(batch)
    book.close()
    again = Book(where)
    assert again.bookings() == [*((0, place) for place in range(5)), (1, 2**40)]
    assert (position(again), position(again, 1), position(again, 2)) == (5, 2**40 + 1, OFFSET_BEGINNING)
    again.close()


def test_the_latest_price_of_each_stock_is_the_one_booked_last(where: str) -> None:
    def price(place: int, name: str, dollars: int) -> Record:
        return Record(place, text=b'{"name": "%s", "dollars": %d, "cents": 9}' % (name.encode(), dollars))

    book = Book(where)
    assert book.latest() == {}
    book.add_with_positions([price(0, "IBM", 90), price(1, "SUN", 5), price(2, "IBM", 91)])
    assert {name: str(found) for name, found in book.latest().items()} == {"IBM": "IBM 91.09", "SUN": "SUN 5.09"}
    book.add_with_positions([price(2, "IBM", 91), price(3, "SUN", 6)])
    book.add_with_positions([price(0, "IBM", 90), price(1, "SUN", 5)])  # somebody who woke up late
    book.close()
    again = Book(where)
    assert {name: str(found) for name, found in again.latest().items()} == {"IBM": "IBM 91.09", "SUN": "SUN 6.09"}

    class Dying(Book):
        def _before_commit(self) -> None:
            raise KeyboardInterrupt

    dying = Dying(where)
    with pytest.raises(KeyboardInterrupt):
        dying.add_with_positions([price(4, "IBM", 92)])
    assert str(again.latest()["IBM"]) == "IBM 91.09"  # it is of the same transaction
    dying.close()
    again.close()


def test_what_is_left_out_is_passed_but_not_booked(where: str) -> None:
    book = Book(where)
    malformed = [Record(3, text=b"{}"), Record(0, part=1, text=None)]
    book.add_with_positions(records(0, 2), left_out=malformed)
    assert book.bookings() == [(0, 0), (0, 1), (0, 2)]
    assert (position(book), position(book, 1)) == (4, 1)
    book.add_with_positions([], left_out=[Record(1, text=b"{}")])  # somebody else has long been farther
    assert position(book) == 4
    book.close()


@pytest.mark.parametrize("text", MALFORMED_PRICES)
def test_a_malformed_price_leaves_nothing_of_its_batch_behind(where: str, text: bytes | None) -> None:
    book = Book(where)
    for write in (book.add, book.add_with_positions):
        with pytest.raises(MalformedStockPrice):
            write([*records(0, 2), Record(3, text=text)])
    assert book.bookings() == []
    assert position(book) == OFFSET_BEGINNING
    book.add_with_positions(records(0, 2))
    assert len(book.bookings()) == 3
    book.close()


def test_what_ends_before_the_commit_leaves_nothing_behind(where: str) -> None:
    class Dying(Book):
        def _before_commit(self) -> None:
            raise KeyboardInterrupt

    book, other = Dying(where), Book(where)
    for write in (book.add, book.add_with_positions):
        with pytest.raises(KeyboardInterrupt):
            write(records(0, 2))
    assert other.bookings() == []
    assert position(other) == OFFSET_BEGINNING
    other.add_with_positions(records(0, 2))  # nothing is locked
    assert position(book) == 3
    book.close()
    other.close()


def test_a_locked_database_is_told_and_the_batch_can_be_booked_later(where: str) -> None:
    book, thief = Book(where, patience=0.2), Database(where, 5)
    with thief.transaction():
        with pytest.raises(DatabaseUnavailable, match="lock"):
            book.add_with_positions(records(0, 2))
        with pytest.raises(DatabaseUnavailable, match="lock"):
            Book(where, patience=0.2)
    book.add_with_positions(records(0, 2))
    assert len(book.bookings()) == 3
    book.close()
    thief.close()


def test_a_batch_waits_for_another_writer_and_sees_what_it_wrote(where: str) -> None:
    """Two consumers that have read the same records: one of them woke up late."""
    writing, go_on = threading.Event(), threading.Event()

    class Slow(Book):
        def _before_commit(self) -> None:
            writing.set()
            assert go_on.wait(PATIENCE)

    def write() -> None:
        slow = Slow(where)
        slow.add_with_positions(records(0, 9))
        slow.close()

    book = Book(where)
    one = threading.Thread(target=write)
    one.start()
    assert writing.wait(PATIENCE)
    other = threading.Thread(target=lambda: late(where))
    other.start()
    go_on.set()
    one.join(PATIENCE)
    other.join(PATIENCE)
    assert book.bookings() == [(0, place) for place in range(15)]
    book.close()


def late(where: str) -> None:
    book = Book(where)
    book.add_with_positions(records(5, 14))
    book.close()


def test_many_books_are_opened_at_once(where: str) -> None:
    failed: list[BaseException] = []

    def open_one() -> None:
        try:
            Book(where).close()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=open_one) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert not failed


# -- SQLite ---------------------------------------------------------------------------------------------------------


def test_a_file_that_is_gone_is_told(tmp_path: Path) -> None:
    book = Book(tmp_path / "book.db")
    book.add_with_positions(records(0, 2))
    (tmp_path / "book.db").unlink()
    with pytest.raises(DatabaseUnavailable):
        book.add_with_positions(records(3, 5))


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(DatabaseUnavailable, match="unable to open"):
        Book(tmp_path / "nowhere" / "book.db")


# -- PostgreSQL -----------------------------------------------------------------------------------------------------


def test_without_its_client_the_error_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(DatabaseUnavailable, match=r"pip install 'psycopg\[binary\]'"):
        Book("postgresql://nobody@nowhere/none")


def test_a_server_that_is_not_there_is_told(postgresql: str) -> None:
    with pytest.raises(DatabaseUnavailable, match="cannot be opened"):
        Book("postgresql://nobody@127.0.0.1:1/none")


def test_a_connection_that_was_cut_is_told_and_nothing_of_the_batch_is_booked(postgresql: str) -> None:
    server = Database(postgresql, 5)

    class Cut(Book):
        def _before_commit(self) -> None:
            [(number,)] = self._database.query("SELECT pg_backend_pid()")
            server.query(f"SELECT pg_terminate_backend({number})")

    with pytest.raises(DatabaseUnavailable):
        Cut(postgresql).add_with_positions(records(0, 2))
    again = Book(postgresql)
    assert again.bookings() == [] and position(again) == OFFSET_BEGINNING
    again.add_with_positions(records(0, 2))
    assert len(again.bookings()) == 3
    again.close()
    server.close()


def test_a_url_is_given_to_the_client_in_its_own_dialect(monkeypatch: pytest.MonkeyPatch) -> None:
    """The seam alone: a client that writes down what it is asked, and has SQLite answer."""
    told: list[str] = []
    inner = sqlite3.connect(":memory:", isolation_level=None)

    class Cursor:
        def execute(self, sql: str) -> None:
            told.append(sql)
            harmless = sql.startswith(("SET", "SELECT pg_"))
            self.found = [] if harmless else inner.execute(sql).fetchall()

        def executemany(self, sql: str, rows: list[tuple]) -> None:
            told.append(sql)
            inner.executemany(sql.replace("%s", "?"), rows)

        def fetchall(self) -> list[tuple]:
            return self.found

    def connect(url: str, **settings: object) -> SimpleNamespace:
        told.append(url)
        assert settings["autocommit"] is True
        return SimpleNamespace(cursor=Cursor, execute=lambda sql: Cursor().execute(sql), close=inner.close)

    monkeypatch.setitem(sys.modules, "psycopg", SimpleNamespace(connect=connect, OperationalError=sqlite3.OperationalError))
    book = Book("postgresql://me@there/prices", patience=2)
    told_at_start = list(told)
    told.clear()
    book.add_with_positions(records(0, 2))
    assert told_at_start[:3] == ["postgresql://me@there/prices", "SET lock_timeout = 2000", "BEGIN"]
    assert told[0] == "BEGIN" and told[1].startswith("SELECT pg_advisory_xact_lock(") and told[-1] == "COMMIT"
    assert "INSERT INTO bookings VALUES (%s, %s, %s, %s, %s)" in told
    assert position(book) == 3
    book.close()

"""Counts in PostgreSQL: each wrong answer gets its sentence, and right ones pass, whichever way they know a repeat."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest

from database_support import tell
from kafkacourse.ch11_spark_pipeline import upsert
from kafkalab import Cluster, PostgreSQL
from support import Verdict, create, put

pytestmark = pytest.mark.cluster

LAB = "11_upsert"
BATCHES = ((10, 11, 10), (11, 11, 12), (12, 10, 10))  # drivers of the events in each
RAN = (0, 1, 1, 2)


@pytest.fixture(scope="module")
def server() -> Iterator[PostgreSQL]:
    with PostgreSQL() as server:
        yield server


@pytest.fixture
def database(server: PostgreSQL, clean: Cluster) -> Iterator[PostgreSQL]:
    """A server on which batches ran, one of them twice; the topic has their events."""
    create(clean, "truck_events", 2, 1)
    put(clean, "truck_events", [(str(driver), "event", -1) for batch in BATCHES for driver in batch])
    tell(server, "CREATE TABLE runs (stream TEXT, batch BIGINT)")
    ran(server, *RAN)
    yield server
    tell(server, "DROP SCHEMA public CASCADE", "CREATE SCHEMA public")


def ran(server: PostgreSQL, *batches: int) -> None:
    tell(server, *(f"INSERT INTO runs VALUES ('driving', {batch})" for batch in batches))


def store(server: PostgreSQL, *rows: tuple[int, int]) -> None:
    tell(server, "DROP TABLE IF EXISTS driving", "CREATE TABLE driving (driver INT, events BIGINT)")
    tell(server, *(f"INSERT INTO driving VALUES {row}" for row in rows))


def test_nothing_was_done(clean: Cluster, server: PostgreSQL, verdict: Verdict) -> None:
    create(clean, "truck_events", 2, 1)
    _, said = verdict(LAB, clean, database=server)
    assert "The table runs can't be read" in said and "driving can't be read" in said and "0 of 5" in said


def test_no_crash(clean: Cluster, database: PostgreSQL, verdict: Verdict) -> None:
    store(database, (10, 4), (11, 3), (12, 2))
    tell(database, "DELETE FROM runs")
    verdict.says("No batch has run under the name driving", LAB, clean, database=database)
    ran(database, 0, 1, 2)
    verdict.says("No batch ran twice under the name driving. Let the stream run with crashing", LAB, clean, database=database)


def test_the_stream_did_not_get_to_the_end(clean: Cluster, database: PostgreSQL, verdict: Verdict) -> None:
    store(database, (10, 2), (11, 3))
    verdict.says("driving has no row for driver 12. Did the stream get to the end?", LAB, clean, database=database)


def test_another_driver(clean: Cluster, database: PostgreSQL, verdict: Verdict) -> None:
    store(database, (10, 4), (11, 3), (12, 2), (99, 1))
    verdict.says("driving has a row for driver 99, of whom truck_events has no event", LAB, clean, database=database)


def test_other_columns(clean: Cluster, database: PostgreSQL, verdict: Verdict) -> None:
    tell(database, "CREATE TABLE driving (id INT, events BIGINT)")
    verdict.says("Columns driver and events of driving can't be read", LAB, clean, database=database)


def test_a_row_for_each_batch(clean: Cluster, database: PostgreSQL, verdict: Verdict) -> None:
    store(database, (10, 2), (11, 1), (11, 2), (12, 1), (12, 1), (10, 2))
    verdict.says("driving has 2 rows for driver 10. It should have one", LAB, clean, database=database)


def test_added_without_a_number(clean: Cluster, database: PostgreSQL, verdict: Verdict) -> None:
    store(database, (10, 4), (11, 5), (12, 3))
    verdict.says(
        "driving has 5 events of driver 11, and truck_events 3. How does the table know", LAB, clean, database=database
    )


def test_counts_of_the_last_batch(clean: Cluster, database: PostgreSQL, verdict: Verdict) -> None:
    store(database, (10, 2), (11, 2), (12, 1))
    verdict.says(
        "driving has 2 events of driver 10, and truck_events 4. Does your function skip", LAB, clean, database=database
    )


def test_a_server_that_is_stopped(clean: Cluster, database: PostgreSQL, verdict: Verdict) -> None:
    database.stop()
    try:
        verdict.says("PostgreSQL doesn't run. Start it with start()", LAB, clean, database=database)
    finally:
        database.start()


class Rows:
    """Stand in for a DataFrame."""

    def __init__(self, drivers: tuple[int, ...], place: int) -> None:
        self._rows = [SimpleNamespace(driver=driver, offset=place + number) for number, driver in enumerate(drivers)]

    def collect(self) -> list[Any]:
        return self._rows


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch, clean: Cluster, database: PostgreSQL) -> Callable[..., dict[str, object]]:
    """Run the batches through a function, and return what `check` is given."""
    monkeypatch.setattr(upsert, "_more_rows", lambda _: Rows((10, 11, 10, 99), 1000))
    monkeypatch.setitem(SERVER, "url", database.url)

    def run(store: Store, *statements: str) -> dict[str, object]:
        tell(database, *statements)
        for batch in (0, 1, 2):
            store(Rows(BATCHES[batch], batch * 3), batch)
        return {"database": database, "store": store}

    return run


Store = Callable[[Any, int], None]
SERVER = {"url": ""}
SEEN: set[int] = set()
PLAIN = "CREATE TABLE driving (driver INT PRIMARY KEY, events BIGINT)"
NUMBERED = "CREATE TABLE driving (driver INT PRIMARY KEY, events BIGINT, batch BIGINT)"
DONE = "CREATE TABLE done (batch BIGINT PRIMARY KEY)"
ADD = (
    "INSERT INTO driving SELECT * FROM unnest(%s::int[], %s::bigint[]) "
    "ON CONFLICT (driver) DO UPDATE SET events = driving.events + EXCLUDED.events"
)


def counted(rows: Rows) -> list[list[int]]:
    counts = Counter(row.driver for row in rows.collect())
    return [list(counts), list(counts.values())]


def numbered(rows: Rows, batch: int) -> None:
    with psycopg.connect(SERVER["url"]) as connection:
        connection.execute(
            "INSERT INTO driving SELECT *, %s FROM unnest(%s::int[], %s::bigint[]) ON CONFLICT (driver) DO UPDATE "
            "SET events = driving.events + EXCLUDED.events, batch = EXCLUDED.batch WHERE driving.batch < EXCLUDED.batch",
            [batch, *counted(rows)],
        )


def in_one_transaction(rows: Rows, batch: int) -> None:
    with psycopg.connect(SERVER["url"]) as connection:
        if connection.execute("INSERT INTO done VALUES (%s) ON CONFLICT DO NOTHING", [batch]).rowcount:
            connection.execute(ADD, counted(rows))


def in_blocks(rows: Rows, batch: int) -> None:
    with psycopg.connect(SERVER["url"], autocommit=True) as connection:
        known = connection.execute("SELECT 1 FROM done WHERE batch = %s", [batch]).fetchall()
        with connection.transaction():
            if not known:
                connection.execute(ADD, counted(rows))
                connection.execute("INSERT INTO done VALUES (%s)", [batch])


def by_place(rows: Rows, _: int) -> None:
    with psycopg.connect(SERVER["url"], autocommit=True) as connection:
        for row in rows.collect():
            connection.execute("INSERT INTO events VALUES (%s, %s) ON CONFLICT DO NOTHING", [row.offset, row.driver])


def in_a_set(rows: Rows, batch: int) -> None:
    if batch not in SEEN:
        with psycopg.connect(SERVER["url"]) as connection:
            connection.execute(ADD, counted(rows))
        SEEN.add(batch)


def number_afterwards(rows: Rows, batch: int) -> None:
    with psycopg.connect(SERVER["url"]) as connection:
        known = connection.execute("SELECT 1 FROM done WHERE batch = %s", [batch]).fetchall()
    if not known:
        with psycopg.connect(SERVER["url"]) as connection:
            connection.execute(ADD, counted(rows))
        with psycopg.connect(SERVER["url"]) as connection:
            connection.execute("INSERT INTO done VALUES (%s)", [batch])


def number_before(rows: Rows, batch: int) -> None:
    with psycopg.connect(SERVER["url"]) as connection:
        new = connection.execute("INSERT INTO done VALUES (%s) ON CONFLICT DO NOTHING", [batch]).rowcount
    if new:
        with psycopg.connect(SERVER["url"]) as connection:
            connection.execute(ADD, counted(rows))


def row_by_row(rows: Rows, batch: int) -> None:
    with psycopg.connect(SERVER["url"], autocommit=True) as connection:
        if connection.execute("INSERT INTO done VALUES (%s) ON CONFLICT DO NOTHING", [batch]).rowcount:
            for row in rows.collect():
                connection.execute(ADD, [[row.driver], [1]])


@pytest.mark.parametrize(
    ("store", "tables"),
    [
        (numbered, (NUMBERED,)),
        (in_one_transaction, (PLAIN, DONE)),
        (in_blocks, (PLAIN, DONE)),
        (
            by_place,
            (
                "CREATE TABLE events (place INT PRIMARY KEY, driver INT)",
                "CREATE VIEW driving AS SELECT driver, count(*) AS events FROM events GROUP BY driver",
            ),
        ),
    ],
)
def test_right_functions(
    store: Store, tables: tuple[str, ...], clean: Cluster, given: Callable[..., Any], verdict: Verdict
) -> None:
    answers = given(store, *tables)
    verdict.passes(LAB, clean, **answers)
    verdict.passes(LAB, clean, **answers)


@pytest.mark.parametrize(
    ("store", "said"),
    [
        (
            in_a_set,
            "after 1 transaction, and gave the same batch to a fresh copy of store. Then driving had 8 events of driver 10",
        ),
        (
            number_afterwards,
            "stopped it after 2 transactions, and gave the same batch to a fresh copy of store. Then driving had 8",
        ),
        (number_before, "Then driving had 4 events of driver 10, not 6. Does your function note the batch before"),
        (row_by_row, "Then driving had 4 events of driver 10, not 6"),
    ],
)
def test_functions_that_a_stop_breaks(
    store: Store, said: str, clean: Cluster, given: Callable[..., Any], verdict: Verdict
) -> None:
    verdict.says(said, LAB, clean, **given(store, PLAIN, DONE))


def test_functions_that_cannot_be_copied(clean: Cluster, given: Callable[..., Any], verdict: Verdict) -> None:
    answers = given(numbered, NUMBERED)
    with psycopg.connect(SERVER["url"]) as connection:

        def outside(rows: Rows, batch: int) -> None:
            connection.execute("SELECT 1")

        verdict.says("store uses a connection from outside", LAB, clean, **answers | {"store": outside})
        verdict.says("A connection to PostgreSQL is open", LAB, clean, **answers)

    def broken(rows: Rows, batch: int) -> None:
        raise KeyError("events")

    verdict.says("A fresh copy of store stopped with KeyError: 'events'", LAB, clean, **answers | {"store": broken})
    verdict.says("Give check() your answer as store=", LAB, clean, database=answers["database"])


def test_numbers_as_text_and_more_crashes(clean: Cluster, database: PostgreSQL, verdict: Verdict) -> None:
    ran(database, 2, 2)
    tell(database, "CREATE TABLE driving (driver TEXT, events NUMERIC)")
    tell(database, "INSERT INTO driving VALUES ('10', 4), ('11', 3), ('12', 2)")
    _, said = verdict(LAB, clean, database=database)
    assert "4 of 5" in said

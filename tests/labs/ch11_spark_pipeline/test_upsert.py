"""Counts in PostgreSQL: each wrong answer gets its sentence, and right ones pass, whichever way they know a repeat."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from database_support import tell
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
    assert "The table runs can't be read" in said and "driving can't be read" in said and "0 of 4" in said


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


def test_the_number_of_the_batch_in_each_row(clean: Cluster, database: PostgreSQL, verdict: Verdict) -> None:
    tell(database, "CREATE TABLE driving (driver INT PRIMARY KEY, events BIGINT, batch BIGINT)")
    for batch in RAN:
        for driver in set(BATCHES[batch]):
            new = (driver, BATCHES[batch].count(driver), batch)
            change = "events = driving.events + EXCLUDED.events, batch = EXCLUDED.batch WHERE driving.batch < EXCLUDED.batch"
            tell(database, f"INSERT INTO driving VALUES {new} ON CONFLICT (driver) DO UPDATE SET {change}")
    verdict.passes(LAB, clean, database=database)


def test_a_table_of_events_and_a_view(clean: Cluster, database: PostgreSQL, verdict: Verdict) -> None:
    tell(database, "CREATE TABLE events (place INT PRIMARY KEY, driver INT)")
    for batch in RAN:
        for number, driver in enumerate(BATCHES[batch]):
            tell(database, f"INSERT INTO events VALUES ({batch * 3 + number}, {driver}) ON CONFLICT DO NOTHING")
    tell(database, "CREATE VIEW driving AS SELECT driver, count(*) AS events FROM events GROUP BY driver")
    verdict.passes(LAB, clean, database=database)


def test_numbers_as_text_and_more_crashes(clean: Cluster, database: PostgreSQL, verdict: Verdict) -> None:
    ran(database, 2, 2)
    tell(database, "CREATE TABLE driving (driver TEXT, events NUMERIC)")
    tell(database, "INSERT INTO driving VALUES ('10', 4), ('11', 3), ('12', 2)")
    verdict.passes(LAB, clean, database=database)

"""The pipeline's tables in PostgreSQL: those of other programs and of older versions, and a disk that is full."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import psycopg
import pyarrow as pa
import pytest

from kafkalab import wait_until
from support import PATIENCE
from truck_pipeline.layout import TablesDiffer
from truck_pipeline.retention import forget
from truck_pipeline.settings import Settings
from truck_pipeline.tables import Batch, Tables

pytestmark = pytest.mark.cluster

NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)
COUNTS = pa.table({"starts": [NOON], "driverId": [11], "events": [5], "dangerous": [1]})
ALARMS = pa.table({
    **{"correlation": ["a-1"], "happened": [NOON], "kind": ["Overspeed"], "truck": [1], "driver": [11]},
    **{"first": ["Ada"], "last": [None], "latitude": [40.0], "longitude": [-90.0], "sent": [NOON]},
})  # fmt: skip

# As PostgreSQL says it when a file can't grow.
FULL = """
CREATE FUNCTION {0}.no_room() RETURNS trigger AS $$ BEGIN
    RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100';
END $$ LANGUAGE plpgsql;
CREATE TRIGGER no_room BEFORE INSERT ON {0}.dangerous_driving EXECUTE FUNCTION {0}.no_room()
"""


@pytest.fixture
def tables(postgresql_server: str) -> Iterator[Tables]:
    """Tables of a test's own, which aren't created yet."""
    tables = Tables(postgresql_server, f"tables_{uuid.uuid4().hex[:8]}", wait=0)
    tell(tables, "CREATE SCHEMA {schema}")
    yield tables
    tables.drop()


def tell(tables: Tables, statements: str) -> None:
    with psycopg.connect(tables._database, autocommit=True) as connection:
        connection.execute(statements.replace("{schema}", tables._name).encode())


def columns(tables: Tables) -> dict[str, list[str]]:
    found = f"""SELECT table_name::text, array_agg(column_name::text ORDER BY ordinal_position)
        FROM information_schema.columns WHERE table_schema = '{tables._name}' GROUP BY table_name"""
    return dict(tables.ask(found))


DRIVING = "CREATE TABLE {schema}.driving (starts TIMESTAMPTZ, driver INT, events BIGINT"
KEY = "PRIMARY KEY (starts, driver))"


@pytest.mark.parametrize(
    ("before", "said"),
    [
        ("CREATE TABLE {schema}.driving (id INT, miles INT)", "driving lacks .*driver.*; driving has id, miles besides"),
        (f"{DRIVING}, {KEY}", "driving lacks dangerous"),
        (f"{DRIVING}, dangerous BIGINT, speed INT, {KEY}", "driving has speed besides"),
        (f"{DRIVING}, dangerous TEXT, {KEY}", "driving.dangerous is text, not bigint"),
        (
            "CREATE TABLE {schema}.batches (stored TIMESTAMPTZ, batch BIGINT PRIMARY KEY, events BIGINT, dead BIGINT, "
            "seen TIMESTAMPTZ, half_sent TIMESTAMPTZ, first_sent TIMESTAMPTZ)",
            "batches has its columns in another order: stored, batch, events, dead, seen",
        ),
    ],
)
def test_tables_of_somebody_else_are_refused(tables: Tables, before: str, said: str) -> None:
    tell(tables, before)
    found = columns(tables)
    with pytest.raises(
        TablesDiffer, match=f"the tables of {tables._name} aren't this pipeline's: {said}.* Nothing was changed"
    ):
        tables.create()
    assert columns(tables) == found


@pytest.mark.parametrize("version", ["dangerous BIGINT", "dangerous BIGINT, batch BIGINT"])
def test_tables_of_older_versions_are_brought_up_to_date(tables: Tables, version: str) -> None:
    tell(tables, f"{DRIVING}, {version}, {KEY}; INSERT INTO {{schema}}.driving VALUES ('{NOON}', 11, 7, 2)")
    tables.create()
    tables.create()  # by now they're today's
    assert columns(tables)["driving"] == ["starts", "driver", "events", "dangerous", "late"]
    assert tables.answers().counts == {(int(NOON.timestamp()), 11): (7, 2)}


def test_old_rows_are_forgotten_when_they_are_final(tables: Tables) -> None:
    tables.create()
    settings = Settings({}, "", tables._database, "", tables._name, keep="1 day")
    now = datetime.now(UTC)
    old, young = now - timedelta(3), now - timedelta(hours=2)
    for time in (old, young):
        tell(tables, f"INSERT INTO {{schema}}.driving VALUES ('{time}', 11, 7, 1)")
        tell(tables, f"INSERT INTO {{schema}}.dangerous_driving (correlation, happened) VALUES ('{time}', '{time}')")
    assert forget(settings, tables) == 0  # no stream has counted them
    seen = f"UPDATE {{schema}}.batches SET seen = '{old}'"
    tell(tables, f"INSERT INTO {{schema}}.batches (batch, seen) VALUES (0, NULL); {seen}")
    assert forget(settings, tables) == 0  # the stream works off a backlog, and may still count there
    tell(tables, seen.replace(str(old), str(now)))
    assert tables.forget(now + timedelta(1), now) == 0  # the batch is gone: the stream has begun anew
    assert forget(replace(settings, keep=None), tables) == 0
    assert forget(settings, tables) == 2
    assert tables.ask("SELECT starts FROM {schema}.driving") == [(young,)]
    assert tables.ask("SELECT happened FROM {schema}.dangerous_driving") == [(young,)]
    assert forget(settings, tables) == 0


def batch(number: int) -> Batch:
    return Batch(number, 5, 0, NOON, NOON, NOON)


def test_a_full_disk_stores_no_half_of_a_batch(tables: Tables) -> None:
    tables.create()
    tell(tables, FULL.format("{schema}"))
    with pytest.raises(ConnectionError, match="PostgreSQL hasn't answered for 0 s: .*No space left on device"):
        tables.put(batch(0), COUNTS, ALARMS)
    assert not tables.filled() and not tables.streamed()


def test_a_batch_waits_for_a_full_disk_to_have_room(
    postgresql_server: str, tables: Tables, caplog: pytest.LogCaptureFixture
) -> None:
    tables.create()
    tell(tables, FULL.format("{schema}"))
    patient = Tables(postgresql_server, tables._name, wait=PATIENCE)
    putting = threading.Thread(target=patient.put, args=(batch(0), COUNTS, ALARMS))
    putting.start()
    wait_until(lambda: "No space left on device" in caplog.text, PATIENCE, "the batch to meet the full disk")
    tell(tables, "DROP TRIGGER no_room ON {schema}.dangerous_driving")
    putting.join(PATIENCE)
    patient.put(batch(0), COUNTS, ALARMS)  # as after a crash: it counts once
    patient.close()
    found = tables.answers()
    assert found.counts == {(int(NOON.timestamp()), 11): (5, 1)} and list(found.dangerous) == ["a-1"]

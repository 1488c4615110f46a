"""A table's changes in a topic: each wrong answer gets its sentence, and right ones pass."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from connect_support import SMT, put
from database_support import tell
from kafkalab import Cluster, ConnectCluster, PostgreSQL, wait_until
from kafkalab.checks import CheckContext
from support import PATIENCE, Verdict, create
from support import put as send

pytestmark = pytest.mark.cluster

LAB, TOPIC = "09_cdc", "trucking_driver"
ROW = {"transforms.row.type": "io.debezium.transforms.ExtractNewRecordState"}
HOW = "transforms.row.delete.tombstone.handling.mode"
KEY = {"transforms.key.type": f"{SMT}.ExtractField$Key", "transforms.key.field": "id"}
ROUTE = {
    "transforms.route.type": f"{SMT}.RegexRouter",
    "transforms.route.regex": ".*",
    "transforms.route.replacement": TOPIC,
}


@pytest.fixture
def database(server: PostgreSQL) -> Iterator[PostgreSQL]:
    """A server with a table of two drivers. Ask for it before `connect`: Debezium ends at once while its server runs."""
    tell(server, "CREATE TABLE driver (id INT PRIMARY KEY, name TEXT, available BOOLEAN)")
    tell(server, "INSERT INTO driver VALUES (10, 'Diana', true), (11, 'Micky', true)")
    yield server
    tell(server, "DROP TABLE driver")
    wait_until(lambda: forgotten(server), PATIENCE, "Debezium to let go of its slot", ignore=(psycopg.errors.ObjectInUse,))


def forgotten(server: PostgreSQL) -> bool:
    """Drop what Debezium noted in the database: how far it has read. Another connector begins with a snapshot then."""
    tell(server, "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots")
    return True


def capture(connect: ConnectCluster, server: PostgreSQL, order: str, *more: dict[str, object]) -> None:
    config = {
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "plugin.name": "pgoutput",
        "database.hostname": server.host,
        "database.port": server.port,
        "database.user": server.user,
        "database.password": server.password,
        "database.dbname": server.database,
        "topic.prefix": "trucking",
        **{f"{part}.converter": "org.apache.kafka.connect.json.JsonConverter" for part in ("key", "value")},
        **{f"{part}.converter.schemas.enable": False for part in ("key", "value")},
        "transforms": order,
        **ROUTE,
    }
    for each in more:
        config |= each
    put(connect, "driver-changes", config)
    connect.wait_until_running("driver-changes")


def wait_for(cluster: Cluster, *parts: bytes) -> None:
    """Wait until the topic has a record for each of these, in its key or value."""

    def there() -> bool:
        if TOPIC not in cluster.describe(groups=False).topics:
            return False
        records = [(record.key() or b"") + (record.value() or b"") for record in CheckContext(cluster).records(TOPIC)]
        return all(any(part in record for record in records) for part in parts)

    wait_until(there, PATIENCE, f"{parts} in {TOPIC}")


def poll(cluster: Cluster, *drivers: int) -> None:
    create(cluster, "polled_driver", 1, 1)
    send(cluster, "polled_driver", [(str(driver), "{}", 0) for driver in drivers])


def shift(server: PostgreSQL) -> None:
    tell(server, "UPDATE driver SET available = false WHERE id = 10")
    tell(server, "DELETE FROM driver WHERE id = 11")
    tell(server, "INSERT INTO driver VALUES (12, 'Lila', true)")


@pytest.mark.parametrize(
    ("order", "mode"), [("row,key,route", "delete-to-tombstone"), ("route,key,row", "rewrite-with-tombstone")]
)
def test_a_topic_that_equals_the_table(
    single: Cluster, database: PostgreSQL, connect: ConnectCluster, verdict: Verdict, order: str, mode: str
) -> None:
    verdict.says("There is no connector 'driver-changes' yet", LAB, single, connect=connect, database=database)
    capture(connect, database, order, ROW, KEY, {HOW: mode})
    wait_for(single, b"Micky")
    poll(single, 10, 11, 10, 12)
    answers = {"connect": connect, "database": database, "ghosts": {11}}
    verdict.says("No driver of trucking_driver was deleted from the table", LAB, single, **answers)
    shift(database)
    wait_for(single, b"Lila")
    verdict.passes(LAB, single, **answers)
    verdict.passes(LAB, single, **(answers | {"ghosts": [11]}))
    verdict.says("`ghosts` is [10, 11]. Compare the keys", LAB, single, **(answers | {"ghosts": {10, 11}}))
    database.kill()
    verdict.says("PostgreSQL doesn't run", LAB, single, **answers)
    database.start()


@pytest.mark.parametrize(
    ("order", "more", "sentence"),
    [
        ("row,route", {}, 'has the key {"id":10}. It should be the id alone'),
        ("key,route", {}, "Which part of it is the row"),
        ("row,key,route", {}, "has a value: the four letters null. Compaction keeps that"),
        ("row,key,route", {HOW: "drop"}, "Driver 11 isn't in the table any more"),
        ("row,key,route", {HOW: "rewrite"}, "Driver 11 isn't in the table any more"),
        ("row,key,route", {"snapshot.mode": "no_data", HOW: "delete-to-tombstone"}, "The table has a driver 9"),
    ],
)
def test_a_topic_that_differs(
    single: Cluster, database: PostgreSQL, connect: ConnectCluster, verdict: Verdict, order: str, more: dict, sentence: str
) -> None:
    tell(database, "INSERT INTO driver VALUES (9, 'Quentin', true)")
    capture(connect, database, order, ROW, KEY, more)
    tell(database, "INSERT INTO driver VALUES (8, 'First', true)")
    wait_for(single, b"First")
    poll(single, 10)
    shift(database)
    wait_for(single, b"Lila")
    verdict.says(sentence, LAB, single, connect=connect, database=database, ghosts={11})

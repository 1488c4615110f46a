"""Two copies of a table: each wrong answer gets its sentence, and right ones pass."""

from __future__ import annotations

import json
from collections.abc import Iterator

import psycopg
import pytest
from confluent_kafka import Producer

from connect_support import SMT, put
from database_support import tell
from kafkalab import Cluster, ConnectCluster, PostgreSQL, wait_until
from kafkalab.checks import CheckContext
from support import PATIENCE, Verdict, create

pytestmark = pytest.mark.cluster

LAB, POLLED, CAPTURED = "09_jdbc", "polled_driver", "captured_driver"
JSON, TEXT = "org.apache.kafka.connect.json.JsonConverter", "org.apache.kafka.connect.storage.StringConverter"
UPSERT = {"insert.mode": "upsert", "delete.enabled": True}


@pytest.fixture
def database(server: PostgreSQL) -> Iterator[PostgreSQL]:
    """A server with two drivers and two empty copies."""
    columns = "(id INT PRIMARY KEY, name TEXT, available BOOLEAN, last_update TIMESTAMPTZ DEFAULT clock_timestamp())"
    tell(server, f"CREATE TABLE driver {columns}", *(f"CREATE TABLE {copy} {columns}" for copy in (POLLED, CAPTURED)))
    tell(server, "INSERT INTO driver VALUES (10, 'Diana', true), (11, 'Micky', true)")
    yield server
    tell(server, f"DROP TABLE driver, {POLLED}, {CAPTURED}")


def connector(connect: ConnectCluster, server: PostgreSQL, name: str, kind: str, **more: object) -> None:
    config = {
        "connector.class": f"Jdbc{kind}Connector",
        "connection.url": f"jdbc:postgresql://{server.host}:{server.port}/{server.database}",
        "connection.user": server.user,
        "connection.password": server.password,
        **{f"{part}.converter": JSON for part in ("key", "value")},
        **{f"{part}.converter.schemas.enable": False for part in ("key", "value")},
    }
    put(connect, name, config | {key.replace("_", "."): value for key, value in more.items()})


def poll(cluster: Cluster, connect: ConnectCluster, server: PostgreSQL, links: str = "make,take", key: str = JSON) -> None:
    connector(
        connect, server, "driver-poll", "Source", table="driver", topic_prefix="polled_", poll_interval_ms=200,
        timestamp_column_name="last_update", incrementing_column_name="id", transforms=links, key_converter=key,
        transforms_make_type=f"{SMT}.ValueToKey", transforms_make_fields="id",
        transforms_take_type=f"{SMT}.ExtractField$Key", transforms_take_field="id",
    )  # fmt: skip
    connect.wait_until_running("driver-poll")

    def there() -> bool:
        return POLLED in cluster.describe(groups=False).topics and len(CheckContext(cluster).records(POLLED)) >= 2

    wait_until(there, PATIENCE, "both drivers")  # and so the topic, which a sink's regex must find


def capture(cluster: Cluster, *drivers: tuple[int, str | None]) -> None:
    """Send what Debezium would: drivers who are available, and tombstones."""
    with Producer(cluster.client_config()) as producer:
        for number, name in drivers:
            value = json.dumps({"id": number, "name": name, "available": True}) if name else None
            producer.produce(CAPTURED, value, str(number))


def ids(server: PostgreSQL, table: str) -> set[int]:
    with psycopg.connect(server.url) as connection:
        return {number for (number,) in connection.execute(f"SELECT id FROM {table}")}


def wait_for(server: PostgreSQL, table: str, *drivers: int) -> None:
    wait_until(
        lambda: set(drivers) <= ids(server, table), PATIENCE, f"{drivers} in {table}", last_seen=lambda: ids(server, table)
    )


@pytest.mark.parametrize(("key", "sinks"), [(JSON, {"topics": f"{POLLED},{CAPTURED}"}), (TEXT, {"topics.regex": ".*_driver"})])
def test_copies_that_are_right(
    single: Cluster, database: PostgreSQL, connect: ConnectCluster, verdict: Verdict, key: str, sinks: dict[str, str]
) -> None:
    create(single, CAPTURED, 1, 1)
    answers = {"connect": connect, "database": database, "ghosts": {11}}
    verdict.says("There is no connector 'driver-poll' yet", LAB, single, **answers)
    poll(single, connect, database, key=key)
    verdict.says("There is no connector 'driver-copies' yet", LAB, single, **answers)
    capture(single, (10, "Diana"), (11, "Micky"))
    connector(connect, database, "driver-copies", "Sink", **sinks, **UPSERT, key_converter=key)
    connect.wait_until_running("driver-copies")
    wait_for(database, POLLED, 10, 11)
    wait_for(database, CAPTURED, 10, 11)
    verdict.says("Nobody was deleted from driver since driver-poll began", LAB, single, **answers)
    tell(database, "DELETE FROM driver WHERE id = 11", "INSERT INTO driver VALUES (12, 'Lila', true)")
    wait_for(database, POLLED, 12)
    verdict.says("Driver 12 isn't in the table captured_driver. Does", LAB, single, **answers)
    capture(single, (12, "Laila"))
    wait_for(database, CAPTURED, 12)
    verdict.says("Driver 12 is ('Laila', True) in the table captured_driver, and ('Lila', True)", LAB, single, **answers)
    capture(single, (11, None), (12, "Lila"), (12, "Lila"), (13, "Poppy"))
    tell(database, "INSERT INTO driver VALUES (13, 'Poppy', true)")
    wait_for(database, POLLED, 13)
    wait_for(database, CAPTURED, 13)
    verdict.says("The topic polled_driver has no row twice. Was the worker killed", LAB, single, **answers)
    again(single)
    verdict.passes(LAB, single, **answers)
    verdict.says("`ghosts` is [11, 13]. Compare the ids", LAB, single, **(answers | {"ghosts": [11, 13]}))


def again(cluster: Cluster) -> None:
    """Send a row twice, as a source whose worker died."""
    with Producer(cluster.client_config()) as producer:
        for _ in range(2):
            producer.produce(POLLED, json.dumps({"id": 10, "name": "Diana", "available": True}), "10")


@pytest.mark.parametrize(("links", "sentence"), [("", "polled_driver has no key. Which"), ("make", 'has the key {"id":10}')])
def test_rows_without_a_key_that_is_an_id(
    single: Cluster, database: PostgreSQL, connect: ConnectCluster, verdict: Verdict, links: str, sentence: str
) -> None:
    poll(single, connect, database, links)
    verdict.says(sentence, LAB, single, connect=connect, database=database, ghosts={11})


def test_copies_that_are_wrong(single: Cluster, database: PostgreSQL, connect: ConnectCluster, verdict: Verdict) -> None:
    create(single, CAPTURED, 1, 1)
    answers = {"connect": connect, "database": database, "ghosts": {11}}
    poll(single, connect, database)
    topics = f"{POLLED},{CAPTURED}"
    capture(single, (10, "Diana"), (11, "Micky"))
    connector(connect, database, "driver-copies", "Sink", topics=topics)
    wait_for(database, POLLED, 10, 11)
    wait_for(database, CAPTURED, 10, 11)
    capture(single, (10, "Diana"))
    wait_until(lambda: "FAILED" in connect.states().values(), PATIENCE, "the task to fail", ignore=(OSError,))
    verdict.says("has failed: the table has a row of that key already", LAB, single, **answers)
    connector(connect, database, "driver-copies", "Sink", topics=topics, insert_mode="upsert")
    tell(database, "DELETE FROM driver WHERE id = 11", "INSERT INTO driver VALUES (12, 'Lila', true)")
    capture(single, (11, None), (12, "Lila"))
    wait_for(database, POLLED, 12)
    wait_for(database, CAPTURED, 12)
    connect.wait_until_running("driver-copies")
    verdict.says("still has driver 11, who was deleted. Debezium told", LAB, single, **answers)

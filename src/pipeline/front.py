"""Connectors that bring data into its topics: what trucks publish by MQTT, and the office's table of drivers."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Mapping

from psycopg.conninfo import conninfo_to_dict

from kafkalab.services.answers import direct
from kafkalab.waiting import wait_until
from pipeline.settings import Settings

__all__ = ["connect_drivers", "connect_trucks"]

_BUSY = 409  # workers share out their work
_DATABASE = {"hostname": "host", "port": "port", "user": "user", "password": "password", "dbname": "dbname"}  # Debezium: libpq


def connect_trucks(connect: str, mqtt: str, settings: Settings) -> str:
    """Create the connector for trucks, or change it. Values stay as the trucks sent them. The MQTT topic becomes the key.

    It reads with QoS 1. After a failure a report is delivered again, so it may come twice.

    Parameters
    ----------
    connect
        URL of a Connect worker that has the plug-in ``mqtt-source``.
    mqtt
        Where the MQTT broker listens, as ``tcp://host:port``.
    settings
        The topic is taken from these.

    Returns
    -------
    str
        The connector's name.

    Raises
    ------
    ValueError
        When Connect refuses it; with Connect's reason.
    WaitTimeout
        When no worker takes it; with what Connect said last.
    """
    configuration = {
        "connector.class": "MqttSourceConnector",
        "mqtt.url": mqtt,
        "mqtt.topics": "driver/+/position",
        "mqtt.qos": "1",
        "mqtt.timeout.ms": "600000",  # after which its task fails, and somebody must start it again
        "mqtt.client.id": f"{settings.positions}-connector",
        "topic": settings.positions,
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
        "value.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
    }
    return _created(connect, "trucks", configuration)


def connect_drivers(connect: str, settings: Settings, table: str = "public.driver", *, password: str | None = None) -> str:
    """Create the connector for drivers, or change it. It captures each change of a table (CDC).

    A record's key is the id, and its value the row as JSON; a row that is deleted leaves a tombstone. So the last records of
    all keys are the table. It begins with the rows that are there. After a failure, changes may come twice, in the same order.

    Parameters
    ----------
    connect
        URL of a Connect worker that has the plug-in ``debezium-postgres``.
    settings
        Their database has the table; its ``wal_level`` must be ``logical``. Their topic of drivers gets the records.
    table
        Its name, with its schema. The column ``id`` must be its primary key.
    password
        What Connect gets as the database's password: a config provider's reference, such as ``${file:…:password}``. Without
        it, Connect gets the password itself, and everybody who may read its topics or ask a worker sees it.

    Returns
    -------
    str
        The connector's name.

    Raises
    ------
    ValueError
        When Connect refuses it, as it does when the database refuses the user; with Connect's reason.
    WaitTimeout
        When no worker takes it; with what Connect said last.
    """
    server = conninfo_to_dict(settings.database)
    configuration = {
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "plugin.name": "pgoutput",
        "slot.name": "drivers",
        "publication.name": "drivers",
        "publication.autocreate.mode": "filtered",  # it tells of this table alone
        **{f"database.{name}": str(server[theirs]) for name, theirs in _DATABASE.items() if theirs in server},
        **({"database.password": password} if password else {}),
        "table.include.list": table,
        "topic.prefix": "office",
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "false",
        "transforms": "row,key,topic",
        "transforms.row.type": "io.debezium.transforms.ExtractNewRecordState",
        "transforms.row.delete.tombstone.handling.mode": "delete-to-tombstone",
        "transforms.key.type": "org.apache.kafka.connect.transforms.ExtractField$Key",
        "transforms.key.field": "id",
        "transforms.topic.type": "org.apache.kafka.connect.transforms.RegexRouter",
        "transforms.topic.regex": ".*",
        "transforms.topic.replacement": settings.drivers,
    }
    return _created(connect, "drivers", configuration)


def _created(connect: str, name: str, configuration: Mapping[str, str]) -> str:
    """Create a connector, or change it, and return its name."""
    request = urllib.request.Request(
        f"{connect}/connectors/{name}/config", json.dumps(configuration).encode(),
        {"Content-Type": "application/json"}, method="PUT",
    )  # fmt: skip
    said = ""

    def taken() -> bool:
        nonlocal said
        try:
            with direct.open(request, timeout=30):
                return True
        except urllib.error.HTTPError as error:
            said = error.read().decode(errors="replace")
            if error.code != _BUSY and "rebalance is expected" not in said:
                raise ValueError(f"Connect doesn't take the connector: {said}") from error
            return False

    wait_until(taken, 60, "Connect to take the connector", last_seen=lambda: said, ignore=(urllib.error.URLError,))
    return name

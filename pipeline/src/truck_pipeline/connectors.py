"""Connectors: one copies trucks' reports from MQTT to a topic, the other captures the table of drivers in a topic."""

from __future__ import annotations

from collections.abc import Mapping

import httpx2
from psycopg.conninfo import conninfo_to_dict
from tenacity import retry, retry_if_exception_type, stop_after_delay, wait_fixed

from truck_pipeline.settings import Settings

__all__ = ["connect_drivers", "connect_trucks"]

_BUSY = 409  # during a rebalance
_DATABASE = {"hostname": "host", "port": "port", "user": "user", "password": "password", "dbname": "dbname"}  # Debezium: libpq


def connect_trucks(connect: str, mqtt: str, settings: Settings) -> str:
    """Create the connector for trucks, or change it. Values stay as the trucks sent them. The MQTT topic becomes the key.

    It subscribes with QoS 1: after a failure, reports may come twice.

    Parameters
    ----------
    connect
        URL of a Connect worker that has the plug-in ``mqtt-source``.
    mqtt
        Address of the MQTT broker, as ``tcp://host:port``.
    settings
        Settings with the topic of positions.

    Returns
    -------
    str
        The connector's name.

    Raises
    ------
    ValueError
        When Connect refuses it; with Connect's reason.
    ConnectionError
        When no worker takes it within a minute; with Connect's last answer.
    """
    configuration = {
        "connector.class": "MqttSourceConnector",
        "mqtt.url": mqtt,
        "mqtt.topics": "driver/+/position",
        "mqtt.qos": "1",
        "mqtt.timeout.ms": "600000",  # then its task fails, until somebody starts it again
        "mqtt.client.id": f"{settings.positions}-connector",
        "topic": settings.positions,
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
        "value.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
    }
    return _create(connect, "trucks", configuration)


def connect_drivers(connect: str, settings: Settings, table: str = "public.driver", *, password: str | None = None) -> str:
    """Create the connector for drivers, or change it. It captures the rows of a table, and then each change (CDC).

    A record's key is the id, and its value the row as JSON. A deleted row leaves a tombstone. So the last records of all keys
    are the table. After a failure, changes may come twice, in the same order.

    Parameters
    ----------
    connect
        URL of a Connect worker that has the plug-in ``debezium-postgres``.
    settings
        Settings with the database and the topic of drivers. The database's ``wal_level`` must be ``logical``.
    table
        The table with its schema. Its primary key must be the column ``id``.
    password
        The database's password as a config provider's reference, such as ``${file:…:password}``. Without it, Connect gets the
        password itself, and everybody who may read its topics or ask a worker sees it.

    Returns
    -------
    str
        The connector's name.

    Raises
    ------
    ValueError
        When Connect refuses it, for example because the database refuses the user; with Connect's reason.
    ConnectionError
        When no worker takes it within a minute; with Connect's last answer.
    """
    server = conninfo_to_dict(settings.database)
    configuration = {
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "plugin.name": "pgoutput",
        "slot.name": "drivers",
        "publication.name": "drivers",
        "publication.autocreate.mode": "filtered",  # this table alone
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
    return _create(connect, "drivers", configuration)


class _NotReady(ConnectionError):
    """Connect doesn't answer, or its workers are sharing out their work."""


@retry(retry=retry_if_exception_type(_NotReady), stop=stop_after_delay(60), wait=wait_fixed(0.1), reraise=True)
def _create(connect: str, name: str, configuration: Mapping[str, str]) -> str:
    """Create a connector, or change it, and return its name. No proxy stands between this process and Connect."""
    try:
        with httpx2.Client(trust_env=False, timeout=30) as client:
            answer = client.put(f"{connect}/connectors/{name}/config", json=configuration)
    except httpx2.TransportError as error:
        raise _NotReady(f"Connect at {connect} doesn't answer: {error}") from error
    if answer.is_success:
        return name
    if answer.status_code == _BUSY or "rebalance is expected" in answer.text:
        raise _NotReady(f"Connect at {connect} hasn't taken the connector: {answer.text}")
    raise ValueError(f"Connect doesn't take the connector: {answer.text}")

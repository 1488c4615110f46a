"""The way in: a connector that brings what trucks publish by MQTT into the topic."""

from __future__ import annotations

import json
import urllib.error
import urllib.request

from kafkalab.services.answers import direct
from kafkalab.waiting import wait_until
from pipeline.settings import Settings

__all__ = ["connect_trucks"]

_CONNECTOR = "trucks"
_BUSY = 409  # workers share out their work


def connect_trucks(connect: str, mqtt: str, settings: Settings) -> str:
    """Create the connector, or change it. Values stay as the trucks sent them; the MQTT topic becomes the key.

    It reads with QoS 1: a report that meets a failure comes again, so it may come twice.

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
    request = urllib.request.Request(
        f"{connect}/connectors/{_CONNECTOR}/config", json.dumps(configuration).encode(),
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
            if error.code != _BUSY:
                raise ValueError(f"Connect doesn't take the connector: {said}") from error
            return False

    wait_until(taken, 60, "Connect to take the connector", last_seen=lambda: said, ignore=(urllib.error.URLError,))
    return _CONNECTOR

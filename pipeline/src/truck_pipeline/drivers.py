"""Drivers: a table in a compacted topic, as change data capture writes it. The key is the id, and the value the row as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from confluent_kafka import Producer

__all__ = ["DRIVERS", "Driver", "send_drivers"]


class Driver(NamedTuple):
    """A row of the table."""

    id: int
    first_name: str
    last_name: str
    available: bool


DRIVERS = (
    Driver(10, "George", "Vetticaden", True),
    Driver(11, "Micky", "Isaacson", True),
    Driver(12, "Laurence", "Lindsey", True),
    Driver(21, "Lila", "Page", True),
    Driver(35, "Rosa", "Novak", True),
    Driver(36, "Tariq", "Haddad", True),
    Driver(37, "Vera", "Okafor", True),
    Driver(38, "Sven", "Mensah", False),
    Driver(39, "Ines", "Costa", True),
    Driver(40, "Kofi", "Abe", True),
    Driver(41, "Hana", "Young", True),
)
"""All drivers except driver 28, who has left, but whose truck still reports."""


def send_drivers(client: Mapping[str, object], topic: str = "driver", drivers: Iterable[Driver] = DRIVERS) -> None:
    """Send rows to the topic with a producer of these settings, and wait until they are acknowledged.

    For when no database has the table.

    Raises
    ------
    TimeoutError
        When some aren't acknowledged after a minute.
    """
    producer = Producer({**client, "enable.idempotence": True})
    for driver in drivers:
        producer.produce(topic, json.dumps(driver._asdict()), key=str(driver.id))
    if left := producer.flush(60):
        raise TimeoutError(f"{left} drivers were not acknowledged within a minute")

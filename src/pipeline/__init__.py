"""The truck pipeline: from what trucks report to answers, on Kafka, Spark and PostgreSQL.

Trucks (`Trucks`) report in Avro: to a topic, or to an MQTT broker, from which a connector (`connect_trucks`) takes it there.
Drivers are a table in a database, and another connector (`connect_drivers`) brings its changes into a topic.
`Pipeline` reads the topic with Spark Structured Streaming: what is malformed goes to a topic of dead letters, repeats are
dropped, drivers are joined, dangerous events go to a topic and a table, and counts by window to a table. `Lake` keeps all of
it in Delta tables. `Settings` says where everything is. ``python -m pipeline`` and ``spark-submit`` run it without a notebook.
"""

from __future__ import annotations

from pipeline.app import Pipeline
from pipeline.drivers import DRIVERS, Driver, send_drivers
from pipeline.front import connect_drivers, connect_trucks
from pipeline.lake import Lake
from pipeline.ledger import Answers, answers
from pipeline.sender import MqttTruckSender, TruckSender
from pipeline.settings import Settings
from pipeline.trucks import Event, Report, Trucks

__all__ = [
    "DRIVERS",
    "Answers",
    "Driver",
    "Event",
    "Lake",
    "MqttTruckSender",
    "Pipeline",
    "Report",
    "Settings",
    "TruckSender",
    "Trucks",
    "answers",
    "connect_drivers",
    "connect_trucks",
    "send_drivers",
]

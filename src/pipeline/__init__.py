"""The truck pipeline: it turns trucks' reports into answers, with Kafka, Spark and PostgreSQL.

Trucks (`Trucks`) report in Avro, to a topic or to an MQTT broker. A connector (`connect_trucks`) copies from MQTT to the topic.
Drivers are a table in a database, and another connector (`connect_drivers`) brings its changes into a topic.
`Pipeline` reads the topic with Spark Structured Streaming. It sends malformed records to a topic of dead letters, drops repeats
and joins the drivers. It writes dangerous events to a topic and a table, and counts by window to another table.
`Lake` keeps every report in Delta tables. `Settings` says where everything is.
``python -m pipeline`` and ``spark-submit`` run it without a notebook.
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

"""The truck pipeline: it turns trucks' reports into answers, with Kafka, Spark and PostgreSQL.

Trucks (`Trucks`) report in Avro, to a topic or to an MQTT broker. A connector (`connect_trucks`) copies from MQTT to the topic.
Another one (`connect_drivers`) captures a database's table of drivers in a topic.
`Pipeline` reads the topic with Spark Structured Streaming. It sends malformed records to a topic of dead letters, drops repeats
and joins the drivers. It writes dangerous events to a topic and a table, and counts by window to another table.
`Lake` keeps every report in Delta tables. `Settings` has the addresses of all of them.
``python -m truck_pipeline`` and ``spark-submit`` run it.
"""

from __future__ import annotations

from truck_pipeline.app import Pipeline
from truck_pipeline.connectors import connect_drivers, connect_trucks
from truck_pipeline.drivers import DRIVERS, Driver, send_drivers
from truck_pipeline.lake import Lake
from truck_pipeline.ledger import Answers, answers
from truck_pipeline.sender import MqttTruckSender, TruckSender
from truck_pipeline.settings import Settings
from truck_pipeline.trucks import Event, Report, Trucks

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

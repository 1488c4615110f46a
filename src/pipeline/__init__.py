"""The truck pipeline: from what trucks report to answers, on Kafka, Spark and PostgreSQL.

Trucks (`Trucks`) report to a topic, in Avro. `Pipeline` reads it with Spark Structured Streaming: what is malformed goes to a
topic of dead letters, repeats are dropped, drivers are joined, dangerous events go to a topic and a table, and counts by window
to a table. `Settings` says where all of that is. ``python -m pipeline`` and ``spark-submit`` run it without a notebook.
"""

from __future__ import annotations

from pipeline.app import Pipeline
from pipeline.drivers import DRIVERS, Driver, send_drivers
from pipeline.ledger import Answers, answers
from pipeline.sender import TruckSender
from pipeline.settings import Settings
from pipeline.trucks import Event, Report, Trucks

__all__ = [
    "DRIVERS",
    "Answers",
    "Driver",
    "Event",
    "Pipeline",
    "Report",
    "Settings",
    "TruckSender",
    "Trucks",
    "answers",
    "send_drivers",
]

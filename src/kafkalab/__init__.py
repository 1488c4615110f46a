"""A hands-on Kafka course: real clusters from a notebook cell, broken on purpose, checked with PySpark."""

from __future__ import annotations

from kafkalab.lazy import on_first_use

_EXPORTS = {
    "Cluster": "kafkalab.cluster",
    "ClusterMap": "kafkalab.widgets",
    "ConnectCluster": "kafkalab.services",
    "ConnectStatus": "kafkalab.widgets",
    "ConsoleConsumer": "kafkalab.workers",
    "ConsoleProducer": "kafkalab.workers",
    "ConsoleShareConsumer": "kafkalab.workers",
    "LabCard": "kafkalab.widgets",
    "LedgerProducer": "kafkalab.workers",
    "LogMicroscope": "kafkalab.widgets",
    "MirrorMaker": "kafkalab.services",
    "MqttBroker": "kafkalab.services",
    "PostgreSQL": "kafkalab.services",
    "Predict": "kafkalab.widgets",
    "Progress": "kafkalab.widgets",
    "Quiz": "kafkalab.widgets",
    "SchemaRegistry": "kafkalab.services",
    "SpaceTime": "kafkalab.widgets",
    "SparkCluster": "kafkalab.spark",
    "SparkMap": "kafkalab.widgets",
    "StreamsApp": "kafkalab.streams",
    "Terminals": "kafkalab.widgets",
    "Timeline": "kafkalab.widgets",
    "TopologyMap": "kafkalab.widgets",
    "check": "kafkalab.checks",
    "hint": "kafkalab.checks",
    "judge": "kafkalab.history",
    "spark_session": "kafkalab.spark",
    "wait_until": "kafkalab.waiting",
}

__all__ = sorted(_EXPORTS)
__getattr__, __dir__ = on_first_use(__name__, _EXPORTS)

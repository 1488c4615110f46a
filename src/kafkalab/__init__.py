"""A hands-on Kafka course: real clusters from a notebook cell, broken on purpose, checked with PySpark."""

from __future__ import annotations

import importlib
from typing import Any

# Name → module. Loaded on first use: the processes that kafkalab starts import this package too and must be quick.
_EXPORTS = {
    "Cluster": "kafkalab.cluster",
    "ClusterMap": "kafkalab.widgets",
    "ConsoleConsumer": "kafkalab.workers",
    "ConsoleProducer": "kafkalab.workers",
    "LedgerProducer": "kafkalab.workers",
    "Progress": "kafkalab.widgets",
    "Quiz": "kafkalab.widgets",
    "Terminals": "kafkalab.widgets",
    "Timeline": "kafkalab.widgets",
    "check": "kafkalab.checks",
    "hint": "kafkalab.checks",
    "spark_session": "kafkalab.spark",
    "wait_until": "kafkalab.waiting",
}

__all__ = sorted(_EXPORTS)


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_EXPORTS[name]), name)


def __dir__() -> list[str]:
    return __all__

"""Producers and consumers that run as processes of their own, so that they can be killed.

Each worker has two sides, in modules of their own. The parent's side (`producer`, `consumer`, `share_consumer`,
`ledger`, all on `worker`) is what a notebook uses. The child's side (``producer_process``, ``consumer_process`` …, all on
``channel``) is run with ``python -m``. They talk in lines of JSON: commands go down the child's standard
input, events come up its standard output, and the end of either pipe is the end of the child.
"""

from __future__ import annotations

import importlib
from typing import Any

# Loaded on first use: a child imports this package too, and must start quickly.
_EXPORTS = {
    "Acknowledgement": "kafkalab.workers.ledger",
    "ConsoleConsumer": "kafkalab.workers.consumer",
    "ConsoleProducer": "kafkalab.workers.producer",
    "ConsoleShareConsumer": "kafkalab.workers.share_consumer",
    "Delivery": "kafkalab.workers.share_consumer",
    "LedgerProducer": "kafkalab.workers.ledger",
    "Record": "kafkalab.workers.consumer",
    "Worker": "kafkalab.workers.worker",
    "wait_until_shared": "kafkalab.workers.consumer",
}

__all__ = sorted(_EXPORTS)


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_EXPORTS[name]), name)


def __dir__() -> list[str]:
    return __all__

"""Run producers and consumers as processes of their own, so that you can kill them.

Each worker has two sides, in separate modules. A notebook uses the parent's side (`producer`, `consumer`,
`share_consumer`, `ledger`, all based on `worker`). The child's side (``producer_process``, ``consumer_process`` …, all
based on ``channel``) runs with ``python -m``. They exchange lines of JSON: commands on the child's standard input,
events on its standard output. When either pipe closes, the child ends.
"""

from __future__ import annotations

from kafkalab.lazy import on_first_use

# Loaded on first use, because a child imports this package, too, and must start quickly.
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

__getattr__, __dir__ = on_first_use(__name__, _EXPORTS)

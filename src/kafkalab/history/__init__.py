"""Records sent, in the log and polled, and a verdict on them in the terms of Maelstrom's Kafka workload."""

from __future__ import annotations

from kafkalab.lazy import on_first_use

_EXPORTS = {
    "TERMS": "kafkalab.history.verdict",
    "Anomaly": "kafkalab.history.verdict",
    "History": "kafkalab.history.records",
    "Verdict": "kafkalab.history.verdict",
    "judge": "kafkalab.history.judgement",
}

__all__ = sorted(_EXPORTS)
__getattr__, __dir__ = on_first_use(__name__, _EXPORTS)

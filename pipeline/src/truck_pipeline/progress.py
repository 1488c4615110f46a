"""What Spark reports about a batch of the stream."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as f

__all__ = ["OBSERVED", "Progress", "observed"]

OBSERVED = "batch"
"""The name under which the stream counts what is in a batch."""


def observed() -> list[Column]:
    """Return what the stream counts in a batch while it's processed: new events, and dead letters."""
    return [f.count_if(f.col("dead").isNull()).alias("events"), f.count_if(f.col("dead").isNotNull()).alias("dead")]


@dataclass(frozen=True)
class Progress:
    """A batch, once it's stored and committed.

    Attributes
    ----------
    batch
        Its number.
    rows
        How many records it read.
    events, dead, late
        How many new events were among them, how many dead letters, and how many events that came too late to count. The rest
        are repeats.
    seconds
        How long it took.
    lag
        How many records were in the topic when it began, and will be read after it.
    state_rows, state_bytes
        How many ids the stream remembers, and the memory for them.
    watermark
        Earlier events are late. None before the first event.
    """

    batch: int
    rows: int
    events: int
    dead: int
    late: int
    seconds: float
    lag: int
    state_rows: int
    state_bytes: int
    watermark: datetime | None

    @classmethod
    def of(cls, report: Mapping[str, Any]) -> Progress:
        """Read a `StreamingQueryProgress` in JSON."""
        counts = report["observedMetrics"].get(OBSERVED, {})
        states = report["stateOperators"]
        return cls(
            batch=report["batchId"],
            rows=report["numInputRows"],
            events=counts.get("events", 0),
            dead=counts.get("dead", 0),
            late=sum(state["numRowsDroppedByWatermark"] for state in states),
            seconds=report["durationMs"]["triggerExecution"] / 1000,
            lag=sum(_left(source) for source in report["sources"]),
            state_rows=sum(state["numRowsTotal"] for state in states),
            state_bytes=sum(state["memoryUsedBytes"] for state in states),
            watermark=_time(report.get("eventTime", {}).get("watermark")),
        )


def _left(source: Mapping[str, Any]) -> int:
    """Count the records between the end of a batch and the end of the topic, as it was when the batch began."""
    read = source["endOffset"] or {}
    return sum(
        end - read.get(topic, {}).get(partition, 0)
        for topic, partitions in (source["latestOffset"] or {}).items()
        for partition, end in partitions.items()
    )


def _time(text: str | None) -> datetime | None:
    time = datetime.fromisoformat(text) if text else None
    return time if time and time > datetime.fromtimestamp(0, UTC) else None

"""The stream in numbers, for Prometheus. README.md says what to alarm on."""

from __future__ import annotations

import time

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from truck_pipeline.progress import Progress

__all__ = ["Metrics"]

_SECONDS = (0.25, 0.5, 1, 2, 4, 8, 16, 32, 64)  # limits of the histogram's buckets


class Metrics:
    """Counts from the start of this process. Gauges have what the last batch reported."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        prefix = "truck_pipeline_"
        self._rows = Counter(f"{prefix}records", "Records read from the topic of positions.", registry=registry)
        self._events = Counter(f"{prefix}events", "New events counted in the tables.", registry=registry)
        self._dead = Counter(f"{prefix}dead_letters", "Records that hold no event.", registry=registry)
        self._late = Counter(f"{prefix}late_events", "Events that came too late to count.", registry=registry)
        self._batch = Gauge(f"{prefix}batch", "Number of the last batch.", registry=registry)
        self._seconds = Histogram(
            f"{prefix}batch_seconds", "How long a batch took, with its commit.", buckets=_SECONDS, registry=registry
        )
        self._lag = Gauge(f"{prefix}lag_records", "Records in the topic that the last batch left.", registry=registry)
        self._state_rows = Gauge(f"{prefix}state_rows", "Ids of events that the stream remembers.", registry=registry)
        self._state_bytes = Gauge(f"{prefix}state_bytes", "Memory of the remembered ids.", registry=registry)
        self._age = Gauge(
            f"{prefix}watermark_age_seconds", "How old an event may be without being late; NaN before any.", registry=registry
        )
        self._age.set(float("nan"))

    def add(self, progress: Progress) -> None:
        """Take a batch."""
        self._rows.inc(progress.rows)
        self._events.inc(progress.events)
        self._dead.inc(progress.dead)
        self._late.inc(progress.late)
        self._batch.set(progress.batch)
        self._seconds.observe(progress.seconds)
        self._lag.set(progress.lag)
        self._state_rows.set(progress.state_rows)
        self._state_bytes.set(progress.state_bytes)
        if progress.watermark is not None:
            watermark = progress.watermark.timestamp()
            self._age.set_function(lambda: time.time() - watermark)  # it grows when nothing comes

    def text(self) -> bytes:
        """Return all of them as Prometheus reads them."""
        return generate_latest(self.registry)

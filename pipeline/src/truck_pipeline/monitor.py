"""Watch the stream from Spark's reports: each batch becomes a line of the log, numbers and a sign of life."""

from __future__ import annotations

import json
from dataclasses import asdict
from threading import Condition

from pyspark.sql.streaming import StreamingQueryListener
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
)

from truck_pipeline.health import Health
from truck_pipeline.logs import log
from truck_pipeline.metrics import Metrics
from truck_pipeline.progress import Progress

__all__ = ["Monitor"]


class Monitor(StreamingQueryListener):
    """Listens to a session that has one stream.

    Parameters
    ----------
    metrics, health
        What to keep up to date.
    """

    def __init__(self, metrics: Metrics, health: Health) -> None:
        self._metrics, self._health = metrics, health
        self._running: set[str] = set()
        self._ended = Condition()

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Note that the stream is about to read."""
        self._health.sign(ready=False)
        with self._ended:
            self._running.add(str(event.runId))

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """Take a batch."""
        progress = Progress.of(json.loads(event.progress.json))
        self._metrics.add(progress)
        self._health.sign()
        log("stored a batch", **asdict(progress) | {"watermark": progress.watermark and progress.watermark.isoformat()})

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        """Note that there was nothing to read. Spark says so every 10 s."""
        self._health.sign()

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """Note the end. Without signs of life, the stream soon counts as dead, unless it starts again."""
        with self._ended:
            self._running.discard(str(event.runId))
            self._ended.notify_all()

    def wait_for_last(self, seconds: float = 10) -> None:
        """Wait until the stream's end is reported, and so its last batch: Spark's reports come some time later."""
        with self._ended:
            self._ended.wait_for(lambda: not self._running, seconds)

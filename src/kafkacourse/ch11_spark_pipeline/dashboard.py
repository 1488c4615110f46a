"""The dashboard: the pipeline's answers and figures, live."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import ipywidgets

from kafkacourse.ch11_spark_pipeline.dashboard_drawing import draw_dashboard, in_words
from kafkacourse.ch11_spark_pipeline.reading import Reader
from kafkalab.widgets.live import Live, wide_html
from kafkalab.widgets.palette import THEMED
from kafkalab.widgets.picture import Picture, flow
from truck_pipeline.app import Pipeline

__all__ = ["Dashboard"]

_INTERVAL = 0.5


class Dashboard(Live):
    """A map of dangerous events, the drivers with most of them, and figures of the pipeline: rates, latency, state and lag.

    It's drawn twice a second until you close it. Then a still picture takes its place in the notebook.

    Parameters
    ----------
    pipeline
        What to follow.
    client
        Settings of a Kafka client, for the lag.
    """

    def __init__(self, pipeline: Pipeline, client: Mapping[str, Any]) -> None:
        self._pipeline = pipeline
        self._reader = Reader(client)
        self._reading = self._reader.read(pipeline)
        self._looking = threading.Lock()
        self._closed = threading.Event()
        self._html = wide_html()
        super().__init__(ipywidgets.VBox([self._html], layout=ipywidgets.Layout(width="100%", max_width="1100px")))
        self._draw()
        threading.Thread(target=self._run, name="pipeline-dashboard", daemon=True).start()

    def follow(self, pipeline: Pipeline) -> None:
        """Follow another pipeline from now on, such as one that was started after a crash."""
        self._pipeline = pipeline

    def snapshot(self) -> Picture:
        """Return a still picture of this moment."""
        self._look()
        return self._picture()

    def close(self) -> None:
        """Look once more, leave a still picture in the notebook and follow no more. Safe to call again."""
        if not self._closed.is_set():
            self._closed.set()
            self._look()
        self._finish()

    def _run(self) -> None:
        while not self._closed.wait(_INTERVAL):
            self._look()
            self._draw()

    def _look(self) -> None:
        with self._looking:
            self._reading = self._reader.read(self._pipeline)

    def _draw(self) -> None:
        with self._display_lock:
            if not self._finished:
                self._html.value = flow(draw_dashboard(self._reading, THEMED), in_words(self._reading), THEMED)

    def _picture(self) -> Picture:
        words = in_words(self._reading)
        return Picture(flow(draw_dashboard(self._reading), words), words)

    def _still(self) -> dict[str, str]:
        return self._picture().bundle()

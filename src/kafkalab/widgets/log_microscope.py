"""The log microscope: the files of one partition on a broker's disk, live."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

import ipywidgets

from kafkalab.cluster.log_reader import LogView
from kafkalab.widgets.clock import Clock
from kafkalab.widgets.live import Live, wide_html
from kafkalab.widgets.log_drawing import log_picture, overview_html, segments_html
from kafkalab.widgets.log_records import IN_FULL
from kafkalab.widgets.log_style import CARD
from kafkalab.widgets.palette import THEMED
from kafkalab.widgets.picture import Picture

__all__ = ["LogMicroscope"]

# With the time for one look, this stays below half a second, in which a new record must show.
_INTERVAL = 0.2
_MAX_WIDTH = "1160px"


class Reader(Protocol):
    """Reads a log."""

    def read(self) -> LogView: ...
    def close(self) -> None: ...


class ReadableDisk(Protocol):
    """The parts of a cluster's disks that the microscope uses."""

    def log_reader(self, topic: str, partition: int = 0, broker: int | None = None) -> Reader: ...


class ReadableNodes(Protocol):
    """The parts of a cluster's nodes that the microscope uses."""

    def on_stop(self, callback: Callable[[], None]) -> None: ...


class Readable(Protocol):
    """The parts of a cluster that the microscope uses."""

    @property
    def disk(self) -> ReadableDisk: ...
    @property
    def nodes(self) -> ReadableNodes: ...


class LogMicroscope(Live):
    """A partition's log on a broker's disk, live.

    It shows each segment with its base offset, size and state: active, closed, deleted, in the remote tier, or being
    written by the cleaner. A segment contains its batches, its records and the entries of its indexes. It also shows
    the gaps that compaction left, and where each leader epoch began. An axis of offsets shows the clean and the dirty
    part, what is in the remote tier, log start offset, last stable offset, high watermark, and the log end offset of
    every replica.

    It reads the broker's files and never changes them. A new record shows within half a second. If the partition has
    many records, the newest 40 are shown in full, or the 40 up to the slider's offset. The next 10,000 are a square
    each. Older ones are only counted.

    The broker may be down: you still see its files. For an attached cluster, the microscope shows the offsets that
    brokers report, and says that it can't see the files. When the cluster stops, a still picture of the last state
    replaces it in the notebook.

    Parameters
    ----------
    cluster
        A running cluster.
    topic, partition
        Which log. Internal topics have one, too.
    broker
        The broker whose disk to show. By default the partition's current leader.
    clock
        The clock for pauses between looks. By default the machine's.

    Raises
    ------
    UnknownTopic, UnknownPartition, UnknownBroker
        If the cluster has none of that name or number.
    NoReplica
        If that broker has no replica of the partition.

    Examples
    --------
    >>> LogMicroscope(cluster, "customers")  # doctest: +SKIP
    """

    def __init__(
        self, cluster: Readable, topic: str, partition: int = 0, broker: int | None = None, *, clock: Clock | None = None
    ) -> None:
        self._clock = clock or Clock()
        self._reader = cluster.disk.log_reader(topic, partition, broker)
        self._view = self._reader.read()
        self._looking = threading.RLock()
        self._closed = threading.Event()
        self._overview, self._segments = (wide_html() for _ in "12")
        self._slider = ipywidgets.IntSlider(
            description="Written out up to offset",
            continuous_update=False,
            style={"description_width": "initial"},
            layout=ipywidgets.Layout(width="100%", max_width=f"{CARD}px", display="none"),
        )
        self._slider.observe(self._moved, "value")
        self._at_end = True  # in this position the slider follows the log
        super().__init__(
            ipywidgets.VBox(
                [self._overview, self._slider, self._segments], layout=ipywidgets.Layout(width="100%", max_width=_MAX_WIDTH)
            )
        )
        self._draw()
        cluster.nodes.on_stop(self.close)
        threading.Thread(target=self._follow, name="kafkalab-microscope", daemon=True).start()

    @property
    def view(self) -> LogView:
        """The last look's result: files, segments, batches and records as objects, and offsets."""
        return self._view

    def snapshot(self) -> Picture:
        """Return a still picture of the log's current state, or its last state after the cluster stopped."""
        self._look()
        return self._picture()

    def close(self) -> None:
        """Look once more, leave a still picture in the notebook and stop following. Safe to call again."""
        if not self._closed.is_set():
            self._look()
            self._closed.set()
            self._reader.close()
        self._finish()

    def _follow(self) -> None:
        pause = _INTERVAL
        while not self._clock.wait(self._closed, pause):
            began = self._clock.now()
            self._look()
            pause = max(_INTERVAL, self._clock.now() - began)  # leaves the brokers processor time

    def _look(self) -> None:
        with self._looking:
            if self._closed.is_set():
                return
            try:
                seen = self._reader.read()
            except Exception:  # whatever a failing cluster raises, the next look may see it again
                return
            before = self._view
            if seen.files is None and before.files is not None and seen.broker == before.broker:
                # Keep showing the last files, of a deleted topic for example.
                seen = replace(seen, files=before.files, unseen=seen.unseen)
            if seen != before:
                self._view = seen
                self._draw()

    def _draw(self) -> None:
        with self._display_lock:
            if self._finished:
                return
            self._set_slider()
            self._overview.value = overview_html(self._view, THEMED)
            self._segments.value = segments_html(self._view, self._until(), THEMED)

    def _set_slider(self) -> None:
        segments = self._view.only_remote + self._view.segments
        if sum(segment.count for segment in segments) <= IN_FULL:
            return
        first, last = segments[0].base_offset, segments[-1].next_offset - 1
        slider = self._slider
        slider.layout.display = ""
        with slider.hold_trait_notifications():
            at_end = self._at_end
            slider.max = max(last, slider.max)  # in this order, because the maximum can't be below the minimum
            slider.min, slider.max = first, last
            if at_end:
                slider.value = last
        self._at_end = at_end

    def _moved(self, change: dict[str, Any]) -> None:
        at_end = change["new"] == self._slider.max
        if at_end and self._at_end:
            return  # the slider follows the log
        self._at_end = at_end
        self._draw()

    def _until(self) -> int | None:
        return None if self._at_end else int(self._slider.value)

    def _picture(self) -> Picture:
        return log_picture(self._view, self._until())

    def _still(self) -> dict[str, str]:
        return self._picture().bundle()

"""The log microscope: the files of one partition on a broker's disk, live."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from html import escape
from typing import Any, Protocol

import ipywidgets

from kafkalab.cluster.log_reader import LogView
from kafkalab.widgets.live import Live
from kafkalab.widgets.log_axis import axis_card, key_card
from kafkalab.widgets.log_drawing import log_picture, log_status, log_summary
from kafkalab.widgets.log_records import IN_FULL
from kafkalab.widgets.log_segments import segment_cards
from kafkalab.widgets.log_style import CARD
from kafkalab.widgets.palette import THEMED
from kafkalab.widgets.svg import Drawing, Picture, document

__all__ = ["LogMicroscope", "overview_html", "segments_html"]

# Together with one look this stays below the half second within which a record must be seen.
_INTERVAL = 0.2
_CARD_MAX_WIDTH = "560px"
_MAX_WIDTH = "1160px"


class Reader(Protocol):
    """Looks at a log."""

    def read(self) -> LogView: ...
    def close(self) -> None: ...


class Readable(Protocol):
    """What the microscope uses of a cluster."""

    def log_reader(self, topic: str, partition: int = 0, broker: int | None = None) -> Reader: ...
    def on_stop(self, callback: Callable[[], None]) -> None: ...


class LogMicroscope(Live):
    """A partition's log as a broker keeps it on its disk, live.

    It shows each segment (base offset, size, whether it is active, closed, deleted, in the remote tier, or made by the cleaner
    just now) with its batches, its records and the entries of its indexes; gaps that compaction left; where each leader epoch
    began. Along one axis of offsets it shows what is clean and what is dirty, what is in the remote tier, log start offset,
    last stable offset, high watermark, and the log end offset of every replica.

    It reads the files that the broker wrote, and never touches them. A record is seen within half a second. Of a partition
    with many records the newest 40 are written out, or those up to the offset that the slider is at. Every other record is a
    square, up to 10,000 of them. Still older ones are counted.

    The broker may be down: its files are shown all the same. Where the cluster was attached to, the microscope shows what
    brokers tell of offsets, and says that it can't see the files. When the cluster stops, a still picture of the last look
    takes its place in the notebook.

    Parameters
    ----------
    cluster
        A running cluster.
    topic, partition
        Which log. Internal topics have one, too.
    broker
        On whose disk; by default on that of whoever leads the partition.

    Raises
    ------
    UnknownTopic, UnknownPartition, UnknownBroker
        When the cluster has none of that name or number.
    NoReplica
        When that broker has no replica of the partition.

    Examples
    --------
    >>> LogMicroscope(cluster, "customers")  # doctest: +SKIP
    """

    def __init__(self, cluster: Readable, topic: str, partition: int = 0, broker: int | None = None) -> None:
        self._reader = cluster.log_reader(topic, partition, broker)
        self._view = self._reader.read()
        self._looking = threading.RLock()
        self._closed = threading.Event()
        self._overview, self._segments = (ipywidgets.HTML(layout=ipywidgets.Layout(width="100%", margin="2px 0")) for _ in "12")
        self._slider = ipywidgets.IntSlider(
            description="Written out up to offset",
            continuous_update=False,
            style={"description_width": "initial"},
            layout=ipywidgets.Layout(width="100%", max_width=f"{CARD}px", display="none"),
        )
        self._slider.observe(self._moved, "value")
        self._at_end = True  # then the slider follows the log
        super().__init__(
            ipywidgets.VBox(
                [self._overview, self._slider, self._segments], layout=ipywidgets.Layout(width="100%", max_width=_MAX_WIDTH)
            )
        )
        self._draw()
        cluster.on_stop(self.close)
        threading.Thread(target=self._follow, name="kafkalab-microscope", daemon=True).start()

    @property
    def view(self) -> LogView:
        """What the last look saw: files, segments, batches and records as objects, and offsets."""
        return self._view

    def snapshot(self) -> Picture:
        """A still picture of the log as it is now (after the cluster stopped: as it was last)."""
        self._look()
        return self._picture()

    def close(self) -> None:
        """Look once more, leave a still picture in the notebook and follow no more. Safe to call again."""
        if not self._closed.is_set():
            self._look()
            self._closed.set()
            self._reader.close()
        self._finish()

    def _follow(self) -> None:
        pause = _INTERVAL
        while not self._closed.wait(pause):
            began = time.monotonic()
            self._look()
            pause = max(_INTERVAL, time.monotonic() - began)  # the brokers need the processor, too

    def _look(self) -> None:
        with self._looking:
            if self._closed.is_set():
                return
            try:
                seen = self._reader.read()
            except Exception:  # whatever a cluster that is falling over raises, the next look may see it again
                return
            before = self._view
            if seen.files is None and before.files is not None and seen.broker == before.broker:
                # A topic that was deleted, say, is worth seeing as it was.
                seen = replace(seen, files=before.files, unseen=seen.unseen)
            if seen != before:
                self._view = seen
                self._draw()

    def _draw(self) -> None:
        with self._display_lock:
            if self._finished:
                return
            self._set_slider()
            self._overview.value = overview_html(self._view)
            self._segments.value = segments_html(self._view, self._until())

    def _set_slider(self) -> None:
        segments = self._view.only_remote + self._view.segments
        if sum(segment.count for segment in segments) <= IN_FULL:
            return
        first, last = segments[0].base_offset, segments[-1].next_offset - 1
        slider = self._slider
        slider.layout.display = ""
        with slider.hold_trait_notifications():
            at_end = self._at_end
            slider.max = max(last, slider.max)  # in this order: an end may not be before the beginning
            slider.min, slider.max = first, last
            if at_end:
                slider.value = last
        self._at_end = at_end

    def _moved(self, change: dict[str, Any]) -> None:
        at_end = change["new"] == self._slider.max
        if at_end and self._at_end:
            return  # it follows the log
        self._at_end = at_end
        self._draw()

    def _until(self) -> int | None:
        return None if self._at_end else int(self._slider.value)

    def _picture(self) -> Picture:
        return log_picture(self._view, self._until())

    def _still(self) -> dict[str, str]:
        return self._picture().bundle()


def overview_html(view: LogView) -> str:
    """What is looked at, the axis of offsets, and what colours mean."""
    spans = " · ".join(f'<span style="color:{colour}">{escape(words)}</span>' for words, colour in log_status(view, THEMED))
    status = f'<div style="font-size:13px;line-height:1.5;font-weight:600;color:{THEMED.muted}">{spans}</div>'
    return status + _flow([(axis_card(view, THEMED), log_summary(view)), (key_card(view, THEMED), "what the colours mean")])


def segments_html(view: LogView, until: int | None = None) -> str:
    """The segments, side by side where there is room, else one below the other."""
    return _flow([(card, "a segment of the log") for card in segment_cards(view, until, THEMED)])


def _flow(cards: Iterable[tuple[Drawing, str]]) -> str:
    pieces = "".join(
        f'<div style="flex:1 1 {CARD}px;max-width:{_CARD_MAX_WIDTH}">{document(card, title, palette=THEMED, live=True)}</div>'
        for card, title in cards
    )
    return f'<div style="display:flex;flex-wrap:wrap;gap:8px;padding:4px 0;align-items:flex-start">{pieces}</div>'

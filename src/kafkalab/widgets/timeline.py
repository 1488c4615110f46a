"""The timeline: a producer's acknowledgements second by second, with the cluster's faults."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Protocol

import ipywidgets

from kafkalab.cluster.view import ClusterView, Fault
from kafkalab.widgets.clock import Clock, repeat
from kafkalab.widgets.events import Event, last_fault
from kafkalab.widgets.live import Live, wide_html
from kafkalab.widgets.palette import LIGHT, THEMED, Palette
from kafkalab.widgets.picture import Picture, flow, phrases
from kafkalab.widgets.timeline_drawing import Ack, Mark, describe_gaps, draw_timeline, longest_gap, partition_gaps
from kafkalab.widgets.watcher import Watchable, Watcher

__all__ = ["Timeline"]

_REDRAW = 0.4


class Ledgered(Protocol):
    """A producer that writes every acknowledged message to a file."""

    topic: str

    @property
    def ledger(self) -> Path: ...
    @property
    def alive(self) -> bool: ...


class Timeline(Live):
    """Messages acknowledged per second, with marks for faults and leader changes.

    Below the curve each partition has its own lane: when a broker dies, only the partitions it led stop. When the
    producer ends, or the cluster stops, a still picture replaces the timeline in the notebook.

    Parameters
    ----------
    cluster
        The running cluster.
    producer
        A `LedgerProducer`, or the path of its ledger.
    """

    def __init__(self, cluster: Watchable, producer: Ledgered | str | PathLike[str]) -> None:
        self._cluster = cluster
        self._producer = None if isinstance(producer, str | PathLike) else producer
        self._reader = _LedgerReader(Path(producer) if isinstance(producer, str | PathLike) else producer.ledger)
        self._leader_changes: dict[float, None] = {}  # when they were seen, in order
        self._reading = threading.Lock()
        self._closed = threading.Event()
        self._html = wide_html()
        super().__init__(ipywidgets.VBox([self._html], layout=ipywidgets.Layout(width="100%", max_width="1100px")))
        self._draw()
        Watcher.of(cluster).observe(self, groups=False)
        repeat(self._follow, _REDRAW, self._closed, "kafkalab-timeline", Clock())

    @property
    def gap(self) -> float:
        """Longest time without any acknowledgement, in seconds. It's 0 with fewer than two acknowledgements."""
        gap = longest_gap(ack.at for ack in self._acks())
        return gap.seconds if gap else 0.0

    @property
    def gaps(self) -> dict[int, float]:
        """Longest time without an acknowledgement for each partition, in seconds."""
        return {partition: gap.seconds for partition, gap in partition_gaps(self._acks()).items()}

    def snapshot(self) -> Picture:
        """Return a still picture of the current state."""
        acks, until = self._acks(), self._until()
        words = f"{len(acks)} messages: {describe_gaps(acks, until)}"
        return Picture(_html(acks, self._marks(), until, words, LIGHT), words)

    def close(self) -> None:
        """Leave a still picture in the notebook and stop following. Safe to call again."""
        self._closed.set()
        self._finish()

    def seen(self, view: ClusterView, events: Sequence[Event], fresh: bool) -> None:
        """Mark leader changes. Part of the protocol with the watcher."""
        for event in events:
            if event.kind == "leader" and (self._producer is None or event.topic == self._producer.topic):
                self._leader_changes[event.at] = None

    def ended(self) -> None:
        """End, because the cluster stops. Part of the protocol with the watcher."""
        self.close()

    def _follow(self) -> None:
        alive = self._alive()  # checked before reading, so that the last lines before its end aren't missed
        self._draw()
        if not alive:
            self.close()

    def _draw(self) -> None:
        with self._display_lock:
            if not self._finished:
                acks, until = self._acks(), self._until()
                self._html.value = _html(acks, self._marks(), until, describe_gaps(acks, until), THEMED)

    def _acks(self) -> list[Ack]:
        with self._reading:
            return list(self._reader.read())

    def _marks(self) -> list[Mark]:
        faults = list(self._cluster.nodes.faults)
        return [
            *[Mark(fault.at, "fault", f"{fault.verb} {fault.broker}") for fault in faults],
            *[_leader_mark(at, faults) for at in list(self._leader_changes)],
        ]

    def _alive(self) -> bool:
        return self._producer is not None and self._producer.alive

    def _until(self) -> float | None:
        return time.time() if self._alive() else None

    def _still(self) -> dict[str, str]:
        return self.snapshot().bundle()


def _html(acks: Sequence[Ack], marks: Sequence[Mark], until: float | None, words: str, palette: Palette) -> str:
    title = [(f"{len(acks)} messages: {describe_gaps(acks, until)}", THEMED.text)] if acks else []
    return f"<div>{phrases(title)}{flow([draw_timeline(acks, marks, palette, until)], words, palette)}</div>"


def _leader_mark(at: float, faults: Sequence[Fault]) -> Mark:
    began = last_fault(at, faults)
    return Mark(at, "leader", "new leaders" if began is None else f"new leaders after {at - began:.1f} s")


class _LedgerReader:
    """Read a ledger while it's being written, each line once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._position = 0
        self._acks: list[Ack] = []

    def read(self) -> list[Ack]:
        """Return all acknowledgements so far."""
        try:
            with open(self._path, "rb") as file:
                file.seek(self._position)
                new = file.read()
        except FileNotFoundError:  # not started yet, or removed with its cluster: keep what was read
            return self._acks
        whole = new[: new.rfind(b"\n") + 1]  # the last line may be incomplete
        self._position += len(whole)
        for record in map(json.loads, whole.splitlines()):
            self._acks.append(Ack(record["at"], record["partition"]))
        return self._acks

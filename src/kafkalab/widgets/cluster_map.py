"""The cluster map: brokers, partitions, groups and events, live."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from html import escape

import ipywidgets

from kafkalab.cluster.view import BrokerState, BrokerView, ClusterView
from kafkalab.widgets.events import Event
from kafkalab.widgets.live import Live, wide_html
from kafkalab.widgets.map_drawing import (
    CARD_WIDTH,
    broker_rows,
    draw_group,
    draw_row,
    legend,
    map_picture,
    status,
)
from kafkalab.widgets.palette import STATE_COLOURS, THEMED
from kafkalab.widgets.svg import Drawing, Picture, document
from kafkalab.widgets.watcher import Watchable, Watcher

__all__ = ["ClusterMap"]

_NOT_YET = "The cluster has not been seen yet."
_MAX_WIDTH = "1320px"
_CARD_MAX_WIDTH = "420px"
_GAP = "8px"
_GONE: tuple[BrokerState, ...] = ("dead", "stopped")


class ClusterMap(Live):
    """A live map of a cluster, with buttons that break and repair it.

    It shows the brokers (up, starting, paused, isolated, stopped or dead) and which of them is the active controller.
    For each partition it shows the replicas, the leader and the ISR. Below are the consumer groups, with partition
    assignment and lag, and a list of events. The map follows a change within half a second. If it's narrow, brokers
    stack.

    If the cluster panel is open beside the notebook, the map appears there. When the cluster stops, a still picture of
    the last state replaces the map in the notebook.

    Parameters
    ----------
    cluster
        A running cluster.
    topics
        Topics to show, in this order. By default all but the internal ones.
    groups
        Whether to show consumer groups.

    Examples
    --------
    >>> cluster_map = ClusterMap(cluster)  # doctest: +SKIP
    >>> cluster_map  # the last line of a cell shows it  # doctest: +SKIP
    """

    def __init__(self, cluster: Watchable, *, topics: str | Sequence[str] | None = None, groups: bool = True) -> None:
        self._cluster = cluster
        self._topics = (topics,) if isinstance(topics, str) else topics
        self._with_groups = groups
        self._view: ClusterView | None = None
        self._events: list[Event] = []
        self._nodes: dict[int, _Node] = {}
        self._rows: list[tuple[int, ...]] = []
        self._lock = threading.RLock()
        self._status, self._groups, self._log = (wide_html() for _ in range(3))
        self._body = ipywidgets.VBox(layout=ipywidgets.Layout(width="100%"))
        root = ipywidgets.VBox(
            [self._status, self._body, wide_html(_legend()), self._groups, self._log],
            layout=ipywidgets.Layout(width="100%", max_width=_MAX_WIDTH),
        )
        super().__init__(root)
        self._write_log()
        self._watcher = Watcher.of(cluster)
        self._watcher.observe(self, groups=groups)
        if self._view is None:
            self._watcher.look()  # so that the first display has something to show

    @property
    def cluster(self) -> Watchable:
        """The cluster that the map shows."""
        return self._cluster

    @property
    def events(self) -> list[str]:
        """Events since this map was made, one line each."""
        return [event.text for event in self._events]

    def snapshot(self) -> Picture:
        """Return a still picture of the cluster's current state, or its last state after it stopped."""
        self._watcher.look(groups=self._with_groups)
        return self._picture()

    def seen(self, view: ClusterView, events: Sequence[Event], fresh: bool) -> None:
        """Draw what the watcher saw. Part of the protocol with it."""
        with self._lock:
            if self._finished:
                return
            self._view = view
            topics = self._topics
            self._events += [e for e in events if e.topic is None or topics is None or e.topic in topics]
            self._events.sort(key=lambda event: event.at)  # a fault is noted only after its verb has finished
            self._status.value = _status_line(status(view, topics, THEMED, "" if fresh else "no broker answers: as known last"))
            rows = broker_rows(view)
            if rows != self._rows:
                self._nodes = {
                    id_: _Node(id_, self._act, self._cluster.nodes.backend != "attached") for row in rows for id_ in row
                }
                self._body.children = [_side_by_side([self._nodes[id_].widget for id_ in row]) for row in rows]
                self._rows = rows
            for node in self._nodes.values():
                node.show(view, topics)
            if self._with_groups:
                cards = (_themed(draw_group(view.groups[id_], THEMED), f"group {id_}") for id_ in sorted(view.groups))
                self._groups.value = _flow(
                    f'<div style="flex:1 1 {CARD_WIDTH}px;max-width:{_CARD_MAX_WIDTH}">{card}</div>' for card in cards
                )
            if events:
                self._write_log()

    def close(self) -> None:
        """Stop following the cluster and leave a still picture. Safe to call again."""
        self.ended()

    def ended(self) -> None:
        """Leave a still picture. Part of the protocol with the watcher."""
        with self._lock:
            self._finish()

    def _act(self, verb: str, broker: int, done: Callable[[], None]) -> None:
        # In a separate thread: a verb takes seconds, and the click may arrive on the thread that runs cells.
        def act() -> None:
            try:
                getattr(self._cluster, verb)(broker)
            except Exception as error:  # shown in the map, because no cell can raise it
                reason = str(error).strip().splitlines()[:1] or [type(error).__name__]
                with self._lock:
                    self._events.append(Event(time.time(), "error", f"{verb} broker {broker} failed: {reason[0]}"))
                    self._write_log()
            finally:
                done()

        threading.Thread(target=act, name=f"kafkalab-{verb}-{broker}", daemon=True).start()

    def _write_log(self) -> None:
        lines = "".join(_log_line(event) for event in self._events[-200:])
        # A reversed column keeps its end visible without any script.
        style = (
            "display:flex;flex-direction:column-reverse;height:128px;overflow-y:auto;padding:4px 8px;border-radius:6px;"
            "font:12px/16px var(--jp-code-font-family,monospace);color:var(--jp-ui-font-color1,#1f2328);"
            "border:1px solid var(--jp-border-color1,#c9d1d9)"
        )
        self._log.value = (
            f'<div style="{style}"><div style="margin-bottom:auto">{lines or "Nothing has happened yet."}</div></div>'
        )

    def _picture(self) -> Picture:
        if self._view is None:
            return Picture(document(Drawing("", 20), _NOT_YET), _NOT_YET)
        return map_picture(self._view, topics=self._topics, groups=self._with_groups, events=self._events)

    def _still(self) -> dict[str, str]:
        return self._picture().bundle()

    def _in_cell(self) -> ipywidgets.Widget:
        return self._show_beside("The live map")


def _log_line(event: Event) -> str:
    colour = STATE_COLOURS["dead"] if event.kind in ("fault", "error") else "inherit"
    return f'<div style="color:{colour}">{escape(event.text)}</div>'


class _Node:
    """One broker or controller, with its buttons below."""

    def __init__(self, id_: int, act: Callable[[str, int, Callable[[], None]], None], with_buttons: bool) -> None:
        self._id = id_
        self._picture = wide_html()
        self._controls = _Controls(id_, act) if with_buttons else None
        self.widget = ipywidgets.VBox(
            [self._picture, *([self._controls.widget] if self._controls else [])],
            layout=ipywidgets.Layout(flex=f"1 1 {CARD_WIDTH}px", min_width=f"{CARD_WIDTH}px", max_width=_CARD_MAX_WIDTH),
        )

    def show(self, view: ClusterView, topics: Sequence[str] | None) -> None:
        self._picture.value = _themed(
            draw_row(view, (self._id,), topics, THEMED, CARD_WIDTH), f"node {self._id} and its replicas"
        )
        if self._controls:
            self._controls.show(view.brokers[self._id])


class _Controls:
    """The buttons of one broker."""

    def __init__(self, broker: int, act: Callable[[str, int, Callable[[], None]], None]) -> None:
        self.broker = broker
        self._act = act
        self._busy = False
        self._state: BrokerState = "up"
        self._kill = self._button("Kill", "SIGKILL: the process ends at once, without a clean shutdown", style="danger")
        self._pause = self._button("Pause", "SIGSTOP: it hangs, but its connections stay open")
        self._restart = self._button("Restart", "Start it again with the same id, port and data")
        self._kill.on_click(lambda _: self._do("kill"))
        self._pause.on_click(lambda _: self._do("resume" if self._paused() else "pause"))
        self._restart.on_click(lambda _: self._do("restart"))
        self.widget = ipywidgets.HBox(
            [self._kill, self._pause, self._restart],
            layout=ipywidgets.Layout(width="100%", overflow="hidden"),
        )

    def _button(self, name: str, tooltip: str, style: str = "") -> ipywidgets.Button:
        return ipywidgets.Button(
            description=f"{name} {self.broker}",  # names the broker, also for screen readers
            tooltip=tooltip,
            button_style=style,
            layout=ipywidgets.Layout(flex="1 1 0", width="auto", min_width="0", padding="0", margin="2px 1px", height="26px"),
            style=ipywidgets.ButtonStyle(font_size="12px"),
        )

    def show(self, broker: BrokerView) -> None:
        self._state = broker.state
        self._refresh()

    def _refresh(self) -> None:
        gone = self._state in _GONE
        self._pause.description = f"{'Resume' if self._paused() else 'Pause'} {self.broker}"
        self._kill.disabled = self._pause.disabled = gone or self._busy
        self._restart.disabled = self._busy

    def _paused(self) -> bool:
        return self._state == "paused"

    def _do(self, verb: str) -> None:
        if self._busy:
            return
        self._busy = True
        self._refresh()
        self._act(verb, self.broker, self._done)

    def _done(self) -> None:
        self._busy = False
        self._refresh()


def _side_by_side(widgets: Sequence[ipywidgets.Widget]) -> ipywidgets.Box:
    """Put widgets side by side, and wrap those that don't fit."""
    return ipywidgets.Box(widgets, layout=ipywidgets.Layout(width="100%", flex_flow="row wrap", grid_gap=_GAP))


def _flow(pieces: Iterable[str]) -> str:
    """Put pieces of HTML side by side, and wrap those that don't fit."""
    return f'<div style="display:flex;flex-wrap:wrap;gap:{_GAP}">{"".join(pieces)}</div>'


def _status_line(phrases: Sequence[tuple[str, str]]) -> str:
    spans = " · ".join(f'<span style="color:{colour}">{escape(words)}</span>' for words, colour in phrases)
    return f'<div style="font-size:13px;line-height:1.4;font-weight:600;color:{THEMED.muted}">{spans}</div>'


def _legend() -> str:
    entries = (
        f'<span style="display:inline-flex;align-items:center;gap:6px;margin-right:8px">'
        f'<span style="width:{square.width}px">{_themed(square, words)}</span>{escape(words)}</span>'
        for square, words in legend(THEMED)
    )
    return f'<div style="font-size:12px;line-height:1.6;color:{THEMED.muted}">{_flow(entries)}</div>'


def _themed(drawing: Drawing, title: str) -> str:
    return document(drawing, title, palette=THEMED, live=True)

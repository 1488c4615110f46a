"""The cluster map: brokers, partitions, groups and what happens to them, live."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from html import escape

import ipywidgets

from kafkalab.cluster.view import BrokerState, BrokerView, ClusterView
from kafkalab.widgets.events import Event
from kafkalab.widgets.live import Live
from kafkalab.widgets.map_drawing import broker_rows, draw_groups, draw_legend, draw_row, draw_status, map_picture
from kafkalab.widgets.palette import STATE_COLOURS, THEMED
from kafkalab.widgets.svg import WIDTH, Drawing, Picture, document
from kafkalab.widgets.watcher import Watchable, Watcher

__all__ = ["ClusterMap"]

_NOT_YET = "The cluster has not been seen yet."
_MAX_WIDTH = "1100px"
_GONE: tuple[BrokerState, ...] = ("dead", "stopped")


class ClusterMap(Live):
    """A picture of a cluster that moves by itself, with buttons that break and mend it.

    It shows brokers (up, starting, paused, isolated, stopped or dead; which is the active controller), where each
    replica of each partition is, who leads, who is in the ISR, consumer groups with who owns what and their lag, and
    a list of what happened. It follows a change within half a second. When the cluster stops, a still picture of the
    last state takes its place in the notebook.

    Parameters
    ----------
    cluster
        A running cluster.
    topics
        Topics to show, in that order; all but the internal ones if None.
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
        self._rows: list[_Row] = []
        self._lock = threading.RLock()
        self._status, self._legend, self._groups, self._log = (_html() for _ in range(4))
        self._body = ipywidgets.VBox(layout=ipywidgets.Layout(width="100%"))
        root = ipywidgets.VBox(
            [self._status, self._body, self._legend, self._groups, self._log],
            layout=ipywidgets.Layout(width="100%", max_width=_MAX_WIDTH),
        )
        super().__init__(root)
        self._legend.value = _live(draw_legend(THEMED), "what the squares mean")
        self._write_log()
        self._watcher = Watcher.of(cluster)
        self._watcher.observe(self, groups=groups)
        if self._view is None:
            self._watcher.look()  # so that the first display has something to show

    @property
    def events(self) -> list[str]:
        """What happened since this map was made, one line each."""
        return [event.text for event in self._events]

    def snapshot(self) -> Picture:
        """A still picture of the cluster as it is now (after it stopped: as it was last)."""
        self._watcher.look(groups=self._with_groups)
        return self._picture()

    def seen(self, view: ClusterView, events: Sequence[Event], fresh: bool) -> None:
        """Draw what the watcher saw; part of the protocol with it."""
        with self._lock:
            if self._finished:
                return
            self._view = view
            topics = self._topics
            self._events += [e for e in events if e.topic is None or topics is None or e.topic in topics]
            self._events.sort(key=lambda event: event.at)  # a fault is noted when its verb has done its work
            self._status.value = _live(
                draw_status(view, topics, THEMED, "" if fresh else "no broker answers: as known last"), "state of the cluster"
            )
            ids = broker_rows(view)
            if ids != [row.ids for row in self._rows]:
                self._rows = [_Row(ids_, self._act, self._cluster.backend != "attached") for ids_ in ids]
                self._body.children = [row.widget for row in self._rows]
            for row in self._rows:
                row.show(view, topics)
            if self._with_groups:
                drawing = draw_groups(view, THEMED)
                self._groups.value = _live(drawing, "consumer groups") if drawing.height else ""
            if events:
                self._write_log()

    def ended(self) -> None:
        """Leave the still picture; part of the protocol with the watcher."""
        with self._lock:
            self._finish()

    def _act(self, verb: str, broker: int, done: Callable[[], None]) -> None:
        # In a thread of its own: a verb takes seconds, and the click may have come in on the thread that runs cells.
        def act() -> None:
            try:
                getattr(self._cluster, verb)(broker)
            except Exception as error:  # noqa: BLE001 - shown where the learner looks, since no cell is there to raise in
                reason = str(error).strip().splitlines()[:1] or [type(error).__name__]
                with self._lock:
                    self._events.append(Event(time.time(), "error", f"{verb} broker {broker} failed: {reason[0]}"))
                    self._write_log()
            finally:
                done()

        threading.Thread(target=act, name=f"kafkalab-{verb}-{broker}", daemon=True).start()

    def _write_log(self) -> None:
        lines = "".join(_log_line(event) for event in self._events[-200:])
        # A reversed column keeps its end in sight without any script.
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


def _log_line(event: Event) -> str:
    colour = STATE_COLOURS["dead"] if event.kind in ("fault", "error") else "inherit"
    return f'<div style="color:{colour}">{escape(event.text)}</div>'


class _Row:
    """Brokers side by side, with buttons under each."""

    def __init__(self, ids: tuple[int, ...], act: Callable[[str, int, Callable[[], None]], None], with_buttons: bool) -> None:
        self.ids = ids
        self._picture = _html()
        self._controls = [_Controls(id_, act) for id_ in ids] if with_buttons else []
        buttons = ipywidgets.HBox(
            [controls.widget for controls in self._controls],
            layout=ipywidgets.Layout(width="100%", grid_gap=f"{1000 / WIDTH:.2f}%"),
        )
        self.widget = ipywidgets.VBox([self._picture, buttons], layout=ipywidgets.Layout(width="100%"))

    def show(self, view: ClusterView, topics: Sequence[str] | None) -> None:
        self._picture.value = _live(draw_row(view, self.ids, topics, THEMED), "brokers and their replicas")
        for controls in self._controls:
            controls.show(view.brokers[controls.broker])


class _Controls:
    """The buttons of one broker."""

    def __init__(self, broker: int, act: Callable[[str, int, Callable[[], None]], None]) -> None:
        self.broker = broker
        self._act = act
        self._busy = False
        self._state: BrokerState = "up"
        self._kill = self._button("Kill", "SIGKILL: as if its machine had lost power")
        self._pause = self._button("Pause", "SIGSTOP: it hangs, but its connections stay open")
        self._restart = self._button("Restart", "Start it again with the same id, port and data")
        self._kill.on_click(lambda _: self._do("kill"))
        self._pause.on_click(lambda _: self._do("resume" if self._state == "paused" else "pause"))
        self._restart.on_click(lambda _: self._do("restart"))
        self.widget = ipywidgets.HBox(
            [self._kill, self._pause, self._restart],
            layout=ipywidgets.Layout(flex="1 1 0", min_width="0", overflow="hidden"),
        )

    def _button(self, name: str, tooltip: str) -> ipywidgets.Button:
        return ipywidgets.Button(
            description=name,
            tooltip=f"{tooltip} (node {self.broker})",
            layout=ipywidgets.Layout(flex="1 1 0", width="auto", min_width="0", padding="0", margin="2px 1px", height="26px"),
            style=ipywidgets.ButtonStyle(font_size="12px"),
        )

    def show(self, broker: BrokerView) -> None:
        self._state = broker.state
        self._refresh()

    def _refresh(self) -> None:
        gone = self._state in _GONE
        self._pause.description = "Resume" if self._state == "paused" else "Pause"
        self._kill.disabled = self._pause.disabled = gone or self._busy
        self._restart.disabled = self._busy

    def _do(self, verb: str) -> None:
        if self._busy:
            return
        self._busy = True
        self._refresh()
        self._act(verb, self.broker, self._done)

    def _done(self) -> None:
        self._busy = False
        self._refresh()


def _html() -> ipywidgets.HTML:
    return ipywidgets.HTML(layout=ipywidgets.Layout(width="100%", margin="2px 0"))


def _live(drawing: Drawing, title: str) -> str:
    return document(drawing, title, palette=THEMED, live=True)

"""The cluster map: brokers, partitions, groups and events, live."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from html import escape

import ipywidgets

from kafkalab.cluster.view import ClusterView
from kafkalab.widgets.broker_header import Act, BrokerHeader
from kafkalab.widgets.event_log import log_html
from kafkalab.widgets.events import Event
from kafkalab.widgets.fold import Fold
from kafkalab.widgets.group_rows import group_row, idle_row, is_idle
from kafkalab.widgets.live import Live, wide_html
from kafkalab.widgets.map_drawing import map_picture, status
from kafkalab.widgets.map_style import GAP, STYLE, columns
from kafkalab.widgets.motion import Motion
from kafkalab.widgets.picture import Picture
from kafkalab.widgets.prose import counted
from kafkalab.widgets.rates import Rates, where_led
from kafkalab.widgets.topic_order import TopicOrder, arrange
from kafkalab.widgets.topic_rows import LEGEND, topic_chips, topic_row
from kafkalab.widgets.watcher import Watchable, Watcher

__all__ = ["ClusterMap"]

_NOT_YET = "The cluster has not been seen yet."
_NARROW = 5  # from so many columns on, a number alone names a broker


class ClusterMap(Live):
    """A live map of a cluster, with buttons that break and repair it.

    Each broker is a column. Its head says whether it's up, starting, paused, isolated, stopped or dead, and which broker
    is the active controller. Below, each topic has a row that shows the replicas of each partition, the leader and the
    ISR. Topics of one partition share a line. Topics that are new or that changed lately come first, and what doesn't fit
    is folded. Then come the consumer groups, with partition assignment and lag, and a log of events. The map follows a
    change within half a second. Dots run where records do: from the producers to the leaders, and from there to the members
    that commit them. "Records move" turns that off.

    If the cluster panel is open beside the notebook, the map appears there. When the cluster stops, a still picture of
    the last state replaces the map in the notebook.

    Parameters
    ----------
    cluster
        A running cluster.
    topics
        Topics to show first, in this order. The live map shows all others but the internal ones below them; a still picture
        shows only these.
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
        self._order = TopicOrder(self._topics or ())
        self._nodes = _Nodes(None if cluster.nodes.backend == "attached" else self._act)
        self._status, self._rows, self._more_rows, self._groups, self._idle_groups, self._log = (wide_html() for _ in range(6))
        self._motion = Motion(self._complain)
        self._more = Fold("More topics", self._more_rows)
        self._idle = Fold("Idle groups", self._idle_groups)
        self._lock = threading.RLock()
        self._log.add_class("kafkalab-events")
        self._log.tabbable = True  # not the log in it, which the browser replaces with each event: it would lose the focus
        root = ipywidgets.VBox(
            [
                wide_html(STYLE),
                self._motion.widget,
                self._status,
                self._nodes.widget,
                self._rows,
                self._more.widget,
                _side_by_side(ipywidgets.HTML(LEGEND), self._motion.choice),
                self._groups,
                self._idle.widget,
                self._log,
            ],
            layout=ipywidgets.Layout(width="100%"),
        )
        root.add_class("kafkalab-map")
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
            self._order.note(events)
            self._events += [e for e in events if e.topic is None or topics is None or e.topic in topics]
            self._events.sort(key=lambda event: event.at)  # a fault is noted only after its verb has finished
            self._status.value = _status_html(status(view, topics), "" if fresh else "no broker answers: as known last")
            self._nodes.show(view)
            rates = where_led(view, self._watcher.rates)
            self._motion.show(rates)
            self._show_topics(view, rates)
            if self._with_groups:
                self._show_groups(view, rates)
            if events:
                self._write_log()

    def _show_topics(self, view: ClusterView, rates: Rates) -> None:
        named = [topic for topic in self._topics or () if topic in view.topics]
        brokers = _serving(view)
        where = arrange(view, self._order.of(view.topics), named, len(brokers))
        rows = "".join(topic_row(view, topic, brokers, rates) for topic in where.rows)
        self._rows.value = rows + topic_chips(view, where.chips, rates) or '<div class="muted">No topics yet.</div>'
        several = [topic for topic in where.folded if len(view.topics[topic]) > 1]
        singles = [topic for topic in where.folded if len(view.topics[topic]) == 1]
        more = "".join(topic_row(view, topic, brokers, rates) for topic in several)
        self._more_rows.value = more + topic_chips(view, singles, rates)
        self._more.show(counted(len(where.folded), "more topic") if where.folded else "")

    def _show_groups(self, view: ClusterView, rates: Rates) -> None:
        groups = [view.groups[id_] for id_ in sorted(view.groups)]
        idle = [group for group in groups if is_idle(group)]
        self._groups.value = "".join(group_row(group, rates) for group in groups if not is_idle(group))
        self._idle_groups.value = "".join(idle_row(group) for group in idle)
        kind = "idle group" if any(group.members for group in idle) else "empty group"
        self._idle.show(counted(len(idle), kind) if idle else "")

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
                self._complain(f"{verb} broker {broker} failed: {reason[0]}")
            finally:
                done()

        threading.Thread(target=act, name=f"kafkalab-{verb}-{broker}", daemon=True).start()

    def _complain(self, words: str) -> None:
        with self._lock:
            self._events.append(Event(time.time(), "error", words))
            self._write_log()

    def _write_log(self) -> None:
        topics = self._view.topics if self._view is not None else ()
        self._log.value = log_html(self._events, name_topics=len(topics) > 1)

    def _picture(self) -> Picture:
        if self._view is None:
            return Picture(f"<p>{_NOT_YET}</p>", _NOT_YET)
        return map_picture(self._view, topics=self._topics, groups=self._with_groups, events=self._events)

    def _still(self) -> dict[str, str]:
        return self._picture().bundle()

    def _in_cell(self) -> ipywidgets.Widget:
        return self._show_beside("The live map")


class _Nodes:
    """The heads of the columns: a row of dedicated controllers, if there are any, and a row of brokers."""

    def __init__(self, act: Act | None) -> None:
        self._act = act
        self._headers: dict[int, BrokerHeader] = {}
        self._ids: list[list[int]] = []
        self.widget = ipywidgets.VBox(layout=ipywidgets.Layout(width="100%"))

    def show(self, view: ClusterView) -> None:
        serving = _serving(view)
        rows = [ids for ids in (sorted(view.brokers.keys() - set(serving)), serving) if ids]
        if rows != self._ids:
            self._ids = rows
            self._headers = {id_: BrokerHeader(view.brokers[id_], self._act) for ids in rows for id_ in ids}
            self.widget.children = [_columns([self._headers[id_].widget for id_ in ids]) for ids in rows]
        for ids in rows:
            for id_ in ids:
                self._headers[id_].show(view.brokers[id_], narrow=len(ids) >= _NARROW)


def _serving(view: ClusterView) -> list[int]:
    """Return the brokers, without dedicated controllers."""
    return sorted(id_ for id_, broker in view.brokers.items() if broker.address)


def _columns(widgets: Sequence[ipywidgets.Widget]) -> ipywidgets.Box:
    layout = ipywidgets.Layout(display="grid", width="100%", grid_template_columns=columns(len(widgets)), grid_gap=f"{GAP}px")
    return ipywidgets.Box(widgets, layout=layout)


def _side_by_side(*widgets: ipywidgets.Widget) -> ipywidgets.Box:
    layout = ipywidgets.Layout(display="flex", flex_flow="row wrap", align_items="flex-end", justify_content="space-between")
    return ipywidgets.Box(widgets, layout=layout)


def _status_html(phrases: Sequence[tuple[str, bool]], note: str) -> str:
    spans = [f"<span>{words}</span>" if good else f'<span class="bad">{words}</span>' for words, good in phrases]
    spans += [f'<span class="note">{escape(note)}</span>'] if note else []
    return f"<b>{' · '.join(spans)}</b>"

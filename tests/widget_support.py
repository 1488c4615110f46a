"""What a browser gets from a display, what a learner does there, and a cluster to show without a broker."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import ipywidgets

from kafkalab.cluster.view import BrokerState, BrokerView, ClusterView, Fault, GroupView, MemberView, PartitionView
from kafkalab.widgets.clock import Clock
from kafkalab.widgets.live import Live
from kafkalab.widgets.panel import ClusterPanel

__all__ = [
    "TOPIC",
    "WIDGET_VIEW",
    "FakeCluster",
    "Shown",
    "after_kill",
    "broker",
    "button",
    "find",
    "find_all",
    "group",
    "healthy",
    "html",
    "html_values",
    "labels",
    "maps_in",
    "partition",
    "press",
    "show",
]

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
"""Media type of a live widget: a browser with a kernel prefers it to the still form."""

TOPIC = "my-failsafe-topic"

Shown = dict[str, list[dict[str, Any]]]
"""What cells show, by display id: the newest form last."""

W = TypeVar("W", bound=ipywidgets.Widget)


def show(display: Live) -> None:
    """Show a display as the last line of a cell does."""
    display._ipython_display_()


def _widgets(widget: ipywidgets.Widget) -> Iterator[ipywidgets.Widget]:
    yield widget
    for child in getattr(widget, "children", ()):
        yield from _widgets(child)


def find_all(display: Live | ipywidgets.Widget, kind: type[W]) -> list[W]:
    """Return the widgets of a kind, in order."""
    root = display.widget if isinstance(display, Live) else display
    return [widget for widget in _widgets(root) if isinstance(widget, kind)]


def html_values(display: Live | ipywidgets.Widget) -> list[str]:
    """Return the pieces of HTML that a browser shows, in order."""
    return [piece.value for piece in find_all(display, ipywidgets.HTML)]


def html(display: Live | ipywidgets.Widget) -> str:
    """Return all HTML that a browser shows."""
    return "".join(html_values(display))


def find(display: Live, kind: type[W]) -> W:
    """Return the only widget of a kind."""
    (widget,) = find_all(display, kind)
    return widget


def labels(display: Live) -> list[str]:
    """Return the labels of the buttons."""
    return [button.description for button in find_all(display, ipywidgets.Button)]


def button(display: Live, label: str) -> ipywidgets.Button:
    """Return the button with this label."""
    (named,) = [button for button in find_all(display, ipywidgets.Button) if button.description == label]
    return named


def press(display: Live, label: str) -> None:
    """Press the button with this label."""
    pressed = button(display, label)
    assert not pressed.disabled, f"{label} is disabled"
    pressed.click()


def maps_in(panel: ClusterPanel) -> Sequence[ipywidgets.Widget]:
    """Return what the panel's first tab shows, below the lab's card."""
    _, tabs = panel.widget.children
    _, maps, *_ = tabs.children
    return tuple(maps.children)


def broker(
    id_: int, state: BrokerState = "up", rack: str | None = None, controller: bool = False, address: str | None = None
) -> BrokerView:
    """A broker, or with an empty address a controller."""
    return BrokerView(id_, f"127.0.0.1:{40000 + id_}" if address is None else address, rack, state, controller, True)


def partition(
    number: int,
    replicas: tuple[int, ...] = (0, 1, 2),
    *,
    leaderless: bool = False,
    leader: int | None = None,
    isr: tuple[int, ...] | None = None,
    topic: str = TOPIC,
) -> PartitionView:
    """A partition, by default led by its preferred leader and with all replicas in sync."""
    led_by = None if leaderless else replicas[0] if leader is None else leader
    return PartitionView(topic, number, led_by, 0, replicas, replicas if isr is None else isr)


def healthy(partitions: int = 13, brokers: int = 3) -> ClusterView:
    """A cluster with one topic and nothing amiss."""
    parts = tuple(partition(p, tuple((p + i) % brokers for i in range(min(3, brokers)))) for p in range(partitions))
    nodes = {i: broker(i, controller=i == 0) for i in range(brokers)}
    return ClusterView("id", 0, 5, nodes, {TOPIC: parts})


def after_kill(view: ClusterView, dead: int = 0) -> ClusterView:
    """The cluster when another broker has taken over from a dead one."""
    controller = 0 if dead else 1
    brokers = {
        i: replace(node, state="dead" if i == dead else node.state, controller=i == controller)
        for i, node in view.brokers.items()
    }
    moved = []
    for p in view.topics[TOPIC]:
        isr = tuple(i for i in p.isr if i != dead)
        moved.append(replace(p, isr=isr, leader=isr[0] if p.leader == dead else p.leader))
    return replace(view, brokers=brokers, controller=controller, controller_epoch=6, topics={TOPIC: tuple(moved)})


def group(
    *members: tuple[str, Collection[tuple[str, int]]],
    state: str = "Stable",
    lag: Mapping[tuple[str, int], int] | None = None,
    id_: str = "mygroup",
) -> GroupView:
    """A consumer group of members by name, with the partitions of each."""
    return GroupView(id_, state, tuple(MemberView(f"{name}-x", name, tuple(parts)) for name, parts in members), lag or {})


class FakeCluster:
    """Follows the interface of `Cluster` as far as widgets use it.

    A description takes `takes` seconds of `clock`, and then tells what was so when it began.
    """

    backend = "local"

    def __init__(self, name: str = "cluster") -> None:
        self.name = name
        self.nodes = self
        self.faults: list[Fault] = []
        self.view = healthy()
        self.callbacks: list[Callable[[], None]] = []
        self.answers = True
        self.takes = 0.0
        self.clock = Clock()
        self.stopped = threading.Event()
        self.killing = threading.Event()
        self.kill_error: Exception | None = None

    def describe(self, groups: bool = True, internal: bool = False) -> ClusterView:
        if not self.answers:
            raise RuntimeError("no answer from any broker")
        view = self.view if groups else replace(self.view, groups={})
        if self.takes:
            self.clock.wait(self.stopped, self.takes)
        return view

    def states(self) -> dict[int, BrokerState]:
        return {id_: node.state for id_, node in self.view.brokers.items()}

    def change_state(self, id_: int, state: BrokerState) -> None:
        """Change the state of a broker."""
        self.view = replace(self.view, brokers={**self.view.brokers, id_: replace(self.view.brokers[id_], state=state)})

    def on_stop(self, callback: Callable[[], None]) -> None:
        self.callbacks.append(callback)

    def stop(self) -> None:
        self.stopped.set()
        callbacks, self.callbacks = self.callbacks, []
        for callback in callbacks:
            callback()

    def kill(self, broker: int) -> None:
        self.killing.set()
        if self.kill_error:
            raise self.kill_error
        self.faults.append(Fault(time.time(), "kill", broker))
        self.view = after_kill(self.view, broker)

    pause = resume = restart = kill

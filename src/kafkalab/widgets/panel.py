"""The cluster panel beside the notebook: the lab's card, the maps of its clusters, and tabs for what runs beside them.

The course's JupyterLab extension (``cli/jupyter/labextensions``) imports this module in the notebook's kernel and shows
the widget with the model id it returns. Nothing else imports the module.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from html import escape
from typing import Any, Protocol, TypeVar

import ipywidgets
from IPython.core.getipython import get_ipython

from kafkalab import running, underway
from kafkalab.running import OnStop
from kafkalab.widgets.class_strip import ClassStrip
from kafkalab.widgets.clock import Clock
from kafkalab.widgets.cluster_map import ClusterMap
from kafkalab.widgets.connect_tab import connect_page
from kafkalab.widgets.folded_errors import fold_errors
from kafkalab.widgets.groups_tab import GroupsOf, groups_page
from kafkalab.widgets.live import Live
from kafkalab.widgets.mirror_tab import mirror_page
from kafkalab.widgets.registry_tab import registry_page
from kafkalab.widgets.spark_map import SparkMap
from kafkalab.widgets.spark_tab import spark_page
from kafkalab.widgets.streams_tab import streams_page
from kafkalab.widgets.tabs import Page, Tabs
from kafkalab.widgets.underway_lines import UnderwayLines
from kafkalab.widgets.visibility import Visibility
from kafkalab.widgets.watcher import Watcher

__all__ = ["ClusterPanel", "model_id"]

_WIDE = ipywidgets.Layout(width="100%")
_STOPPED = "The cluster has stopped."


class Followed(Protocol):
    """The parts of a cluster that the panel needs itself."""

    name: str


F = TypeVar("F", bound=Followed)


class ClusterPanel:
    """The lab's card, and below it tabs: one map for each running cluster, and pages for what runs beside them.

    Attributes
    ----------
    widget
        The widget that JupyterLab shows.
    tabs
        The tabs in it.
    """

    def __init__(self) -> None:
        self._card = ipywidgets.VBox(layout=_WIDE)
        self._body = ipywidgets.VBox(layout=_WIDE)
        self._body.add_class("kafkalab-maps")  # the extension checks whether it's empty
        self.tabs = Tabs(self._body)
        self.widget = ipywidgets.VBox([self._card, self.tabs.widget], layout=_WIDE)
        self._clusters: list[Followed] = []
        self._maps: dict[int, ClusterMap | SparkMap] = {}  # by identity of the cluster
        self._ours: dict[int, ClusterMap | SparkMap] = {}  # the maps that no cell made

    def follow(self, cluster: F, on_stop: OnStop, map_of: Callable[[F], ClusterMap | SparkMap]) -> None:
        """Show a cluster, by a map of it, until it stops."""
        self._clusters.append(cluster)
        # Register before the map does: its widgets are closed at the end, and must be removed from here first.
        on_stop(lambda: self._forget(cluster))
        own = map_of(cluster)
        self.show(own)
        self._ours[id(cluster)] = own

    def show(self, display: Live) -> None:
        """Show a map in place of the same cluster's previous one, or the card of the notebook's lab."""
        if isinstance(display, ClusterMap | SparkMap):
            self._show_map(display)
        else:
            self._card.children = [display.widget]

    def _show_map(self, cluster_map: ClusterMap | SparkMap) -> None:
        key = id(cluster_map.cluster)
        self._maps[key] = cluster_map
        self._draw()
        if key in self._ours:
            self._ours.pop(key).close()

    def _forget(self, cluster: Followed) -> None:
        self._clusters.remove(cluster)
        self._maps.pop(id(cluster))
        self._ours.pop(id(cluster), None)
        self._draw()

    def _draw(self) -> None:
        children: list[ipywidgets.Widget] = []
        for cluster in self._clusters:
            if len(self._clusters) > 1:
                children.append(ipywidgets.HTML(f"<b>{escape(cluster.name)}</b>"))
            children.append(self._maps[id(cluster)].widget)
        self._body.children = children or [ipywidgets.HTML(f'<div class="kafkalab-not-yet">{_STOPPED}</div>')]


def add_pages(tabs: Tabs) -> None:
    """Give everything that runs beside the clusters its page, from now on."""
    groups = Page("Groups", groups_page, every=0.5)
    running.clusters.for_each(lambda cluster, _: _watch_groups(cluster, tabs, groups))
    for register, page in (
        (running.connect_clusters, Page("Connect", connect_page)),
        (running.registries, Page("Registry", registry_page, every=3.0)),
        (running.mirrors, Page("Mirror", mirror_page, every=3.0)),
        (running.streams_apps, Page("Streams", streams_page)),
        (running.spark_sessions, Page("Spark", spark_page)),
    ):
        register.for_each(functools.partial(tabs.follow, page))


def _watch_groups(cluster: Any, tabs: Tabs, page: Page) -> None:
    Watcher.of(cluster).observe(GroupsOf(cluster, tabs, page), groups=True)


@functools.cache
def _panel() -> ClusterPanel:
    panel = ClusterPanel()
    Live.beside = panel
    strip = ClassStrip(get_ipython())
    panel.widget.children = (strip.widget, UnderwayLines(underway.now, Clock()).widget, *panel.widget.children)
    running.clusters.for_each(lambda cluster, on_stop: panel.follow(cluster, on_stop, ClusterMap))
    running.spark_clusters.for_each(lambda cluster, on_stop: panel.follow(cluster, on_stop, SparkMap))
    add_pages(panel.tabs)
    Visibility(panel.tabs.seen)
    if (shell := get_ipython()) is not None:
        fold_errors(shell)
    return panel


def model_id() -> str:
    """Return the model id of the widget to show. It's the same as long as the kernel runs."""
    return str(_panel().widget.model_id)

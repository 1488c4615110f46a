"""The tabs of the panel: the maps, and a page for each kind of thing that runs beside the clusters.

The pages stand one below the other. The course's JupyterLab extension makes a tab of each, shows the one in front, and says
which one that is.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from html import escape
from typing import Any

import ipywidgets

from kafkalab.running import OnStop
from kafkalab.widgets.clock import Clock, repeat
from kafkalab.widgets.live import wide_html
from kafkalab.widgets.tab_drawing import STYLE, muted, trouble

__all__ = ["Page", "Tabs"]

_LIST = '<div role="tablist" aria-label="What runs"></div>'


class Page:
    """What one tab shows: all running things of one kind. While somebody sees it, they are asked in a thread of its own.

    Parameters
    ----------
    title
        The tab's.
    draw
        Asks one of them, and returns what to show of it in HTML. It may take its time, and raise anything.
    every
        Seconds between two looks.
    clock
        The clock for them.

    Attributes
    ----------
    things
        What it shows.
    widget
        The widget to show.
    """

    def __init__(self, title: str, draw: Callable[[Any], str], every: float = 1.0, clock: Clock | None = None) -> None:
        self.title = title
        self.things: list[Any] = []
        self._draw = draw
        self._every = every
        self._clock = clock or Clock()
        self._unseen = threading.Event()
        self._unseen.set()
        self._lock = threading.RLock()
        self.widget = wide_html()
        self.widget.add_class("kafkalab-tab")
        self._show(muted("Asking …"))

    def seen(self, is_seen: bool) -> None:
        """Ask from now on, or no more."""
        with self._lock:
            if is_seen == self._unseen.is_set():
                self._unseen.set()
                if is_seen:
                    self._unseen = unseen = threading.Event()
                    repeat(lambda: self._look(unseen), self._every, unseen, f"kafkalab-{self.title}", self._clock)

    def _look(self, unseen: threading.Event) -> None:
        html = "".join(map(self._look_at, list(self.things)))
        with self._lock:
            if not unseen.is_set():
                self._show(html)

    def _look_at(self, thing: object) -> str:
        try:
            return self._draw(thing)
        except Exception as error:  # whatever something that is falling over raises
            return trouble(str(error).strip() or type(error).__name__)

    def _show(self, html: str) -> None:
        self.widget.value = f'<span class="kafkalab-title" hidden>{escape(self.title)}</span>{html}'


class Tabs:
    """The maps, and each page while it has something to show, in the order in which they came.

    Parameters
    ----------
    maps
        What the first tab shows. It's always there, and nobody asks it.

    Attributes
    ----------
    widget
        The widget to show.
    """

    def __init__(self, maps: ipywidgets.Widget) -> None:
        self._pages: list[Page] = []
        self._front: Collection[str] = ()
        self._lock = threading.RLock()
        self._always = (wide_html(STYLE + _LIST), maps)
        self.widget = ipywidgets.VBox(self._always, layout=ipywidgets.Layout(width="100%"))
        self.widget.add_class("kafkalab-tabs")

    @property
    def titles(self) -> list[str]:
        """The titles of the pages."""
        return [page.title for page in self._pages]

    def follow(self, page: Page, thing: object, on_stop: OnStop) -> None:
        """Show something on its page until it stops."""
        on_stop(lambda: self.remove(page, thing))
        self.add(page, thing)

    def add(self, page: Page, thing: object) -> None:
        """Show something on its page."""
        with self._lock:
            page.things.append(thing)
            if page not in self._pages:
                self._arrange([*self._pages, page])

    def remove(self, page: Page, thing: object) -> None:
        """Show it no more. A page with nothing to show goes."""
        with self._lock:
            page.things.remove(thing)
            if not page.things:
                self._arrange([other for other in self._pages if other is not page])
                page.seen(False)

    def seen(self, front: Collection[str]) -> None:
        """Note the titles of the pages that somebody sees now."""
        with self._lock:
            self._front = front
            for page in self._pages:
                page.seen(page.title in front)

    def _arrange(self, pages: list[Page]) -> None:
        self._pages = pages
        self.widget.children = [*self._always, *(page.widget for page in pages)]
        self.seen(self._front)

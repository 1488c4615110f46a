"""Displays that move while something runs, and leave a still one in the notebook when it ends."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator

import ipywidgets
from IPython.core.getipython import get_ipython
from IPython.display import display, update_display

__all__ = ["Live"]

_WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"


class Live:
    """Base of the live displays.

    While it is live, each display of it holds the widget and, for readers without a kernel, the still form of that
    moment. `_finish` replaces all of them by the still form of the end.

    Parameters
    ----------
    root
        The widget that is shown.
    """

    def __init__(self, root: ipywidgets.Box) -> None:
        self._root = root
        self._display_ids: list[str] = []
        self._finished = False
        self._display_lock = threading.RLock()

    def _still(self) -> dict[str, str]:
        """The present state by media type, without anything that needs a kernel."""
        raise NotImplementedError

    def _ipython_display_(self) -> None:
        with self._display_lock:
            display_id = f"kafkalab-{uuid.uuid4().hex}"
            bundle: dict[str, object] = dict(self._still())
            if not self._finished:
                bundle[_WIDGET_VIEW] = self._root.get_view_spec()
            display(bundle, raw=True, display_id=display_id)
            self._display_ids.append(display_id)

    def _finish(self) -> None:
        """Replace every display by the still form and close the widgets. Safe to call again, from any thread."""
        with self._display_lock:
            if self._finished:
                return
            self._finished = True
            still = self._still()
            self._publish(still)
            if threading.current_thread() is not threading.main_thread():
                _at_end_of_cell(lambda: self._publish(still))
            for widget in _walk(self._root):
                widget.close()

    def _publish(self, still: dict[str, str]) -> None:
        for display_id in self._display_ids:
            update_display(still, raw=True, display_id=display_id)


def _at_end_of_cell(action: Callable[[], None]) -> None:
    # A headless run keeps only updates that come while a cell runs: what another thread published between two cells
    # was lost to it, so it is said again within the next one.
    shell = get_ipython()
    if shell is None:
        return

    def once(*_: object) -> None:
        shell.events.unregister("post_run_cell", once)
        action()

    shell.events.register("post_run_cell", once)


def _walk(widget: ipywidgets.Widget) -> Iterator[ipywidgets.Widget]:
    for child in getattr(widget, "children", ()):
        yield from _walk(child)
    yield widget

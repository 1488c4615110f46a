"""Displays that update while something runs, and leave a still copy in the notebook when it ends."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from typing import ClassVar, Protocol

import ipywidgets
from IPython.core.getipython import get_ipython
from IPython.display import display, update_display

__all__ = ["Beside", "Live", "button", "wide_html"]

_WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"


def wide_html(value: str = "") -> ipywidgets.HTML:
    """Return an HTML widget as wide as its cell. With the usual margin on both sides, its right edge would be cut off."""
    return ipywidgets.HTML(value, layout=ipywidgets.Layout(width="100%", margin="2px 0"))


def button(label: str, action: Callable[[object], None], style: str = "") -> ipywidgets.Button:
    """Return a button as wide as its label."""
    made = ipywidgets.Button(
        description=label, button_style=style, layout=ipywidgets.Layout(width="auto", align_self="flex-start")
    )
    made.on_click(action)
    return made


class Beside(Protocol):
    """A place beside the notebook that can show a display."""

    def show(self, display: Live) -> None:
        """Show a display in place of the previous one of the same kind."""


class Live:
    """Base of the live displays.

    While it's live, each copy in a notebook holds the widget and, for readers without a kernel, the current still form.
    `_finish` replaces all copies with the final still form.

    Parameters
    ----------
    root
        The widget to show.
    """

    beside: ClassVar[Beside | None] = None  # set by the cluster panel
    _told: ClassVar[set[str]] = set()  # what a sentence has said where there's no panel

    def __init__(self, root: ipywidgets.Box) -> None:
        self._root = root
        self._display_ids: list[str] = []
        self._in_cells: list[ipywidgets.Widget] = []
        self._finished = False
        self._display_lock = threading.RLock()

    def _still(self) -> dict[str, str]:
        """Return the current state by media type, in a form that needs no kernel."""
        raise NotImplementedError

    @property
    def widget(self) -> ipywidgets.Widget:
        """Return the display as a widget."""
        return self._root

    def _in_cell(self) -> ipywidgets.Widget:
        """Return the widget for the cell while the display is live."""
        return self._root

    def _show_beside(self, what: str) -> ipywidgets.Widget:
        """Show the display beside the notebook if possible, and return the widget for the cell.

        Where there's no panel, the first display of a kind says where there is one.
        """
        if self.beside is not None:
            self.beside.show(self)
            return ipywidgets.HTML(
                f"{what} is in the panel beside this notebook. <b>Cluster</b> in the toolbar brings it back."
            )
        if what in self._told:
            return self._root
        self._told.add(what)
        words = wide_html(f"<small>In JupyterLab, {what[:1].lower()}{what[1:]} stands in a panel beside the notebook.</small>")
        shown = ipywidgets.VBox([self._root, words], layout=ipywidgets.Layout(width="100%"))
        self._in_cells.append(shown)
        return shown

    def _ipython_display_(self) -> None:
        with self._display_lock:
            display_id = f"kafkalab-{uuid.uuid4().hex}"
            bundle: dict[str, object] = dict(self._still())
            if not self._finished:
                bundle[_WIDGET_VIEW] = self._in_cell().get_view_spec()
            display(bundle, raw=True, display_id=display_id)
            self._display_ids.append(display_id)

    def _finish(self) -> None:
        """Replace every copy with the still form and close the widgets. Safe to call again, from any thread."""
        with self._display_lock:
            if self._finished:
                return
            self._finished = True
            still = self._still()
            self._publish(still)
            if threading.current_thread() is not threading.main_thread():
                _at_end_of_cell(lambda: self._publish(still))
            for root in (self._root, *self._in_cells):
                for widget in _walk(root):
                    widget.close()

    def _publish(self, still: dict[str, str]) -> None:
        for display_id in self._display_ids:
            update_display(still, raw=True, display_id=display_id)


def _at_end_of_cell(action: Callable[[], None]) -> None:
    # A headless run only keeps updates that arrive while a cell runs. It loses what another thread publishes between
    # two cells, so publish it again in the next one.
    shell = get_ipython()
    if shell is None:
        return

    def after_cell(*_: object) -> None:
        shell.events.unregister("post_run_cell", after_cell)
        action()

    shell.events.register("post_run_cell", after_cell)


def _walk(widget: ipywidgets.Widget) -> Iterator[ipywidgets.Widget]:
    for child in getattr(widget, "children", ()):
        yield from _walk(child)
    yield widget

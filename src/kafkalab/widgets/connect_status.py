"""What Connect's workers run, live."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

import ipywidgets

from kafkalab.services.connect_view import ConnectView
from kafkalab.widgets.connect_drawing import connect_html, connect_text
from kafkalab.widgets.live import Live

__all__ = ["ConnectStatus"]

_LOOK = 1.0


class Described(Protocol):
    """What the display needs of Connect."""

    def describe(self) -> ConnectView: ...
    def on_stop(self, callback: Callable[[], None]) -> None: ...


class ConnectStatus(Live):
    """A live table of connectors: their tasks with states and workers, the lag of sinks, and why a task failed.

    When the workers are stopped, or on `close`, a still copy of the last state takes its place in the notebook.

    Parameters
    ----------
    connect
        A `ConnectCluster` that was started.

    Examples
    --------
    >>> ConnectStatus(connect)  # the last line of a cell shows it  # doctest: +SKIP
    """

    def __init__(self, connect: Described) -> None:
        self._connect = connect
        self._view = connect.describe()
        self._table = ipywidgets.HTML(connect_html(self._view), layout=ipywidgets.Layout(width="auto", margin="0"))
        super().__init__(ipywidgets.VBox([self._table], layout=ipywidgets.Layout(width="100%")))
        self._closed = threading.Event()
        connect.on_stop(self.close)
        threading.Thread(target=self._follow, name="kafkalab-connect-status", daemon=True).start()

    def close(self) -> None:
        """Look once more, leave a still copy in the notebook and follow no more. Safe to call again."""
        self._look()
        self._closed.set()
        self._finish()

    def _follow(self) -> None:
        while not self._closed.wait(_LOOK):
            self._look()

    def _look(self) -> None:
        if self._finished:
            return
        try:
            view = self._connect.describe()
        except Exception:  # whatever a cluster that is falling over raises, the next look may see it again
            return
        with self._display_lock:
            if not self._finished and view != self._view:
                self._view = view
                self._table.value = connect_html(view)

    def _still(self) -> dict[str, str]:
        return {"text/html": connect_html(self._view), "text/plain": connect_text(self._view)}

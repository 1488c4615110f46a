"""Cards of what a service says about itself, live."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

import ipywidgets

from kafkalab.widgets.clock import Clock, repeat
from kafkalab.widgets.live import Live

__all__ = ["Described", "Status"]

_LOOK = 1.0

V = TypeVar("V")
V_co = TypeVar("V_co", covariant=True)


class Described(Protocol[V_co]):
    """What a card needs of a service."""

    def describe(self) -> V_co:
        """What it says now."""

    def on_stop(self, callback: Callable[[], None]) -> None:
        """Call a function when it's stopped, before it is."""


class Status(Live, Generic[V]):
    """A card that follows a service. A class of its own for each kind of service says how to write what that says.

    When the service is stopped, or on `close`, a still copy of the last state takes its place in the notebook.

    Parameters
    ----------
    service
        What to follow. It was started.
    """

    _html: Callable[[V], str]  # for a notebook
    _text: Callable[[V], str]  # in plain text

    def __init__(self, service: Described[V]) -> None:
        self._service = service
        self._view = service.describe()
        self._table = ipywidgets.HTML(self._html(self._view), layout=ipywidgets.Layout(width="auto", margin="0"))
        super().__init__(ipywidgets.VBox([self._table], layout=ipywidgets.Layout(width="100%")))
        self._closed = threading.Event()
        service.on_stop(self.close)
        repeat(self._look, _LOOK, self._closed, "kafkalab-status", Clock())

    def close(self) -> None:
        """Look once more, leave a still copy in the notebook and follow no more. Safe to call again."""
        self._look()
        self._closed.set()
        self._finish()

    def _look(self) -> None:
        if self._finished:
            return
        try:
            view = self._service.describe()
        except Exception:  # whatever a service that is falling over raises, the next look may see it again
            return
        with self._display_lock:
            if not self._finished and view != self._view:
                self._view = view
                self._table.value = self._html(view)

    def _still(self) -> dict[str, str]:
        return {"text/html": self._html(self._view), "text/plain": self._text(self._view)}

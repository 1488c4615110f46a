"""Terminals: panes in the notebook that show the lines of workers as they arrive."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

import ipywidgets

from kafkalab.widgets.live import Live
from kafkalab.widgets.terminals_drawing import GAP, Pane, grid_columns, pane_html, panes_html, panes_text

__all__ = ["Terminals"]

_REDRAW = 0.1  # thousands of lines may arrive: redraw the panes at most ten times a second
_LOOK = 0.5  # seconds between two checks whether a silent worker has ended


class Worker(Protocol):
    """The parts of a worker that a pane needs."""

    name: str

    @property
    def lines(self) -> list[str]: ...
    @property
    def alive(self) -> bool: ...
    @property
    def state(self) -> str: ...
    def on_line(self, callback: Callable[[str], object]) -> object: ...


class Terminals(Live):
    """The output of workers side by side, as it arrives.

    When all workers have ended, or after `close`, a still copy replaces it in the notebook.

    Parameters
    ----------
    *workers
        Producers and consumers, one pane each.
    columns
        The number of panes side by side where there's room. In a narrow column there are fewer.
    """

    def __init__(self, *workers: Worker, columns: int = 3) -> None:
        self._workers = workers
        self._columns = max(1, min(columns, len(workers)))
        self._drawn: list[tuple[int, str]] = [(-1, "")] * len(workers)
        self._panes = [ipywidgets.HTML(layout=ipywidgets.Layout(width="auto", min_width="0", margin="0")) for _ in workers]
        root = ipywidgets.GridBox(
            self._panes,
            layout=ipywidgets.Layout(
                grid_template_columns=grid_columns(self._columns),
                grid_gap=f"{GAP}px",
                width="100%",
                max_width="1100px",
            ),
        )
        super().__init__(root)
        self._changed = threading.Event()
        self._closed = threading.Event()
        for worker in workers:
            worker.on_line(lambda _: self._changed.set())
        self._draw()
        threading.Thread(target=self._follow, name="kafkalab-terminals", daemon=True).start()

    def close(self) -> None:
        """Leave a still copy in the notebook and stop following. Safe to call again."""
        self._closed.set()
        self._changed.set()
        self._finish()

    def _follow(self) -> None:
        was_over = False
        while not self._closed.is_set():
            self._changed.wait(_LOOK)
            self._changed.clear()
            over = not any(worker.alive for worker in self._workers)
            self._draw()
            if over and was_over:  # the second time, because a worker's last line arrives after its process ended
                self.close()
            was_over = over
            self._closed.wait(_REDRAW)

    def _draw(self) -> None:
        with self._display_lock:
            if self._finished:
                return
            for i, (worker, widget) in enumerate(zip(self._workers, self._panes, strict=True)):
                pane = _pane(worker)
                key = (len(pane.lines), pane.state)
                if key != self._drawn[i]:
                    self._drawn[i] = key
                    widget.value = pane_html(pane)

    def _still(self) -> dict[str, str]:
        panes = [_pane(worker) for worker in self._workers]
        return {"text/html": panes_html(panes, self._columns), "text/plain": panes_text(panes)}


def _pane(worker: Worker) -> Pane:
    alive = worker.alive
    killed = worker.state.startswith("killed")
    return Pane(worker.name, worker.lines, "running" if alive else "killed" if killed else "ended")

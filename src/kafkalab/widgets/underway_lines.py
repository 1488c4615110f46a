"""Lines that say what a cell is busy with, while it makes the reader wait."""

from __future__ import annotations

import threading
from html import escape

from kafkalab.underway import Task, Underway
from kafkalab.widgets.clock import Clock, repeat
from kafkalab.widgets.live import wide_html

__all__ = ["UnderwayLines", "line_html"]

_QUIET = 1.0  # seconds: what takes less needs no line

# The panel's own words say that there's no cluster yet: not while one is starting.
_STYLE = """<style>
.kafkalab-panel:has(.kafkalab-underway) > .kafkalab-empty { display: none; }
.kafkalab-underway { padding: 6px 10px; margin-bottom: 6px; border-left: 3px solid var(--jp-brand-color1, #1976d2);
  background: var(--jp-layout-color2, #eee); color: var(--jp-ui-font-color1, #222); font-size: 14px; line-height: 1.4; }
.kafkalab-underway progress { width: 100%; accent-color: var(--jp-brand-color1, #1976d2); }
.kafkalab-underway small { font-size: 13px; }
</style>"""


class UnderwayLines:
    """A line for each task of this process, with the seconds it has taken so far. Empty while nothing takes a second.

    Parameters
    ----------
    underway
        The tasks. Nothing else follows them from now on.
    clock
        What the seconds go by.

    Attributes
    ----------
    widget
        The lines.
    """

    def __init__(self, underway: Underway, clock: Clock) -> None:
        self._underway = underway
        self._clock = clock
        self._idle = threading.Event()
        self._idle.set()
        self._began = 0.0
        self._lock = threading.RLock()
        self.widget = wide_html()
        underway.follow(self._changed)

    def _changed(self) -> None:
        with self._lock:
            if not self._underway.tasks:
                self._idle.set()
                self.widget.value = ""
            elif self._idle.is_set():
                self._idle = threading.Event()
                self._began = self._clock.now()
                repeat(self._draw, _QUIET, self._idle, "kafkalab-underway", self._clock)
            elif self.widget.value:
                self._draw()

    def _draw(self) -> None:
        with self._lock:
            tasks = self._underway.tasks
            seconds = self._clock.now() - self._began
            if tasks and seconds >= _QUIET:
                lines = "".join(map(line_html, tasks))
                self.widget.value = f'{_STYLE}<div class="kafkalab-underway">{lines}<small>{seconds:.0f} s so far</small></div>'


def line_html(task: Task) -> str:
    """Return the line of a task."""
    says = str(task)
    name = escape(task.says)
    bar = f'<progress max="{task.total}" value="{task.done}" aria-label="{name}"></progress>' if task.total > 1 else ""
    return f"<div>{escape(says[:1].upper() + says[1:])}{bar}</div>"

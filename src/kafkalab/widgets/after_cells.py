"""Look at something after each cell of the notebook, without standing in the next one's way."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

__all__ = ["AfterCells"]

Look = Callable[[Callable[[], bool]], None]
"""Looks at something. It should end soon once the function that it gets returns True."""


class AfterCells:
    """Calls a function in a thread after each cell: never twice at once, and it's told when the next cell begins.

    Parameters
    ----------
    shell
        The notebook's IPython.
    look
        What to call.
    """

    def __init__(self, shell: Any, look: Look) -> None:
        self._shell = shell
        self._look = look
        self._lock = threading.Lock()
        self._cell_runs = self._wanted = self._works = False
        self._stopped = threading.Event()
        shell.events.register("pre_run_cell", self._before)
        shell.events.register("post_run_cell", self._after)

    def stop(self) -> None:
        """Call it no more. A call that goes on is told so."""
        self._stopped.set()
        self._shell.events.unregister("pre_run_cell", self._before)
        self._shell.events.unregister("post_run_cell", self._after)

    def _before(self, *_: object) -> None:
        self._cell_runs = True

    def _after(self, *_: object) -> None:
        with self._lock:
            self._cell_runs, self._wanted = False, True
            if not self._works:
                self._works = True
                threading.Thread(target=self._work, name="kafkalab-after-cell", daemon=True).start()

    def _work(self) -> None:
        while True:
            with self._lock:
                # What a cell interrupts is asked for again at that cell's end.
                if self._interrupted() or not self._wanted:
                    self._works = False
                    return
                self._wanted = False
            self._look(self._interrupted)

    def _interrupted(self) -> bool:
        return self._cell_runs or self._stopped.is_set()

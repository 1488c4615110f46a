"""Count the time that a learner spends with a chapter, by the cells that run."""

from __future__ import annotations

import os
import re
from pathlib import PurePath
from typing import Any

from kafkalab.progress import record_cell
from kafkalab.shell import notebook_shell
from kafkalab.widgets.clock import Clock

__all__ = ["TimeSpent", "count_time"]

_OFTEN = 30.0  # seconds: cells that follow each other sooner needn't all be written down


def count_time() -> None:
    """Count the time in this notebook from now on, if it's a chapter's, a lab's or a solution's.

    Jupyter's server says which notebook it is. Does nothing where no server does: elsewhere than in JupyterLab and
    Notebook 7, and in runs without anybody.
    """
    shell = notebook_shell()
    notebook = PurePath(os.environ.get("JPY_SESSION_NAME", "")).name
    if shell is not None and (chapter := re.fullmatch(r"(\d\d)_\w+\.ipynb", notebook)):
        TimeSpent(shell, chapter[1], Clock())


class TimeSpent:
    """Records the cells of a notebook as they end.

    Parameters
    ----------
    shell
        The notebook's IPython.
    chapter
        The number of the chapter: ``02``.
    clock
        What time goes by.
    """

    def __init__(self, shell: Any, chapter: str, clock: Clock) -> None:
        self._chapter = chapter
        self._clock = clock
        self._recorded: float | None = None
        shell.events.register("post_run_cell", self._ran)

    def _ran(self, *_: object) -> None:
        now = self._clock.now()
        if self._recorded is None or now - self._recorded >= _OFTEN:
            self._recorded = now
            record_cell(self._chapter)

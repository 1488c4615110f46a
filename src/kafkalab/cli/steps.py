"""Show a few long steps: the current one, its progress, and those still to come."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Literal

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from kafkalab.distribution import Report

__all__ = ["Steps", "Unit"]

Unit = Literal["MB", "steps"]


class Steps:
    """Show named steps: as moving bars on a terminal, as lines elsewhere (a log, a pipe).

    Parameters
    ----------
    console
        Where to show them.
    titles
        All steps in order, so that those still to come show from the start.
    """

    def __init__(self, console: Console, titles: Sequence[str]) -> None:
        self._console = console
        self._count = len(titles)
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[amount]}"),
            TimeElapsedColumn(),
            TextColumn("[dim]{task.fields[detail]}"),
            console=console,
            disable=not console.is_terminal,
        )
        self._tasks = [self._bars.add_task(title, start=False, total=None, amount="", detail="") for title in titles]

    def __enter__(self) -> Steps:
        self._bars.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._bars.stop()

    def begin(self, step: int, unit: Unit) -> Report:
        """Note that a step has begun.

        Returns
        -------
        Report
            Call it with the step's progress: what, done, total (bytes if the unit is MB).
        """
        task = self._tasks[step]
        self._bars.start_task(task)
        shown = -1

        def report(detail: str, done: int, total: int) -> None:
            nonlocal shown
            amount = f"{done / 1e6:.0f} of {total / 1e6:.0f} MB" if unit == "MB" else f"{done} of {total}"
            self._bars.update(task, completed=done, total=total, amount=amount, detail=detail)
            quarter = 4 * done // max(total, 1)
            if quarter > shown:  # a log should have few lines
                shown = quarter
                self._line(step, f"{amount}: {detail}")

        return report

    def end(self, step: int, result: str) -> None:
        """Note that a step is done, with a short result."""
        task = self._tasks[step]
        self._bars.start_task(task)
        self._bars.update(task, completed=1, total=1, amount=f"[green]✓[/] {result}", detail="")
        self._bars.stop_task(task)
        self._line(step, f"✓ {result}")

    def _line(self, step: int, text: str) -> None:
        if not self._console.is_terminal:
            title = self._bars.tasks[self._index(self._tasks[step])].description
            self._console.print(f"[{step + 1}/{self._count}] {title}: {text}", markup=False, soft_wrap=True)

    def _index(self, task: TaskID) -> int:
        return self._bars.task_ids.index(task)

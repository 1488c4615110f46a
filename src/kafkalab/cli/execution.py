"""Run notebooks without a browser, several at a time."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nbformat
from nbclient.exceptions import CellControlSignal, CellExecutionError, DeadKernelError
from nbformat import NotebookNode
from traitlets.config import Config

from kafkalab.distribution.shared import PREPARING_VARIABLE
from kafkalab.exits import exit_status
from kafkalab.kernel_sockets import kernel_address
from kafkalab.notebook_client import ObituaryClient
from kafkalab.resources import shortage

__all__ = ["Outcome", "Watcher", "run_notebooks"]

Watcher = Callable[[Path, int, int], None]
"""Called for each executed cell with the notebook, the number of finished cells, and the number of all cells."""


@dataclass(frozen=True)
class Outcome:
    """The result of one notebook.

    Attributes
    ----------
    path
        The notebook.
    notebook
        The notebook with the outputs of this run.
    seconds
        Duration of the run.
    failure
        Cell and reason of the first error; nothing if there was none.
    skipped
        Why it didn't run at all; nothing if it did.
    """

    path: Path
    notebook: NotebookNode
    seconds: float
    failure: str = ""
    skipped: str = ""


def run_notebooks(
    paths: Sequence[Path], *, at_once: int, cell_timeout: float, watch: Watcher, done: Callable[[Outcome], None]
) -> list[Outcome]:
    """Run notebooks, each in a fresh kernel and in its own folder.

    Parameters
    ----------
    paths
        The notebooks.
    at_once
        How many run in parallel.
    cell_timeout
        Seconds that one cell may take. Time in which it downloads or prepares something for all later runs doesn't
        count.
    watch
        Called for every executed cell.
    done
        Called with every notebook's outcome, as soon as it's known.

    Returns
    -------
    list of Outcome
        In the order of `paths`. When this returns or raises, no kernel of these notebooks is alive.
    """
    handle: Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = Future()

    async def run_all() -> list[Outcome]:
        task = asyncio.current_task()
        assert task is not None
        handle.set_result((asyncio.get_running_loop(), task))
        gate = asyncio.Semaphore(at_once)

        async def run_one(path: Path) -> Outcome:
            async with gate:
                outcome = await _run(path, cell_timeout, watch)
            if not task.cancelling():  # an interrupted notebook has no verdict
                done(outcome)
            return outcome

        return list(await asyncio.gather(*(run_one(path) for path in paths)))

    # Not in the main thread: there nbclient would handle Ctrl-C itself, for one notebook at a time.
    with ThreadPoolExecutor(1) as thread:
        running = thread.submit(asyncio.run, run_all())
        try:
            return running.result()
        except BaseException:
            loop, task = handle.result()
            if not running.done():
                loop.call_soon_threadsafe(task.cancel)  # each client then shuts its kernel down
            raise


class CellTooSlow(Exception):
    """A cell exceeded its time limit."""


class _CellClock:
    """Count the seconds of the running cell, and end the notebook if they exceed the limit.

    This replaces nbclient's `timeout`, a limit that is fixed when a cell begins (nbclient 0.11): nobody can stop its clock.
    Seconds in which a process of the notebook downloads or prepares something must not count. That happens once per
    machine, or the process waits for another one that does it.
    """

    _INTERVAL = 0.5

    def __init__(self, limit: float) -> None:
        self.preparing: Path | None = None
        self._limit = limit
        self._running = False
        self._seconds = 0.0
        self._prepared: list[str] = []

    def begin(self) -> None:
        """Start to count for the next cell."""
        self._running, self._seconds, self._prepared = True, 0.0, []

    def end(self) -> None:
        """Stop counting: neither the time between cells counts, nor the kernel's start before the first one."""
        self._running = False

    async def bound(self, execution: Coroutine[Any, Any, object]) -> None:
        """Await the notebook's execution, with the time limit.

        Raises
        ------
        CellTooSlow
            If a cell took too long. Its kernel has then ended.
        """
        task = asyncio.ensure_future(execution)
        try:
            last_look = time.monotonic()
            while not (await asyncio.wait([task], timeout=self._INTERVAL))[0]:
                now = time.monotonic()
                if self._running:
                    self._count(now - last_look)
                last_look = now
            await task
        finally:
            if not task.done():
                task.cancel()  # the client then shuts the kernel down, and may report a dead kernel
                await asyncio.gather(task, return_exceptions=True)

    def _count(self, seconds: float) -> None:
        if preparing := [task for task in map(_content, self.preparing.iterdir()) if task] if self.preparing else []:
            self._prepared = preparing
            return
        self._seconds += seconds
        if self._seconds > self._limit:
            without = f", not counting the time for preparing {' and '.join(self._prepared)}" if self._prepared else ""
            raise CellTooSlow(f"took longer than {self._limit:g} s{without}")


def _content(path: Path) -> str:
    try:
        return path.read_text()
    except FileNotFoundError:  # just finished
        return ""


async def _run(path: Path, cell_timeout: float, watch: Watcher) -> Outcome:
    notebook = nbformat.read(path, as_version=4)
    if reason := shortage(notebook.metadata):
        return Outcome(path, notebook, 0.0, skipped=reason)
    total = sum(cell.cell_type == "code" for cell in notebook.cells)
    begun = executed = 0
    clock = _CellClock(cell_timeout)

    def count_begun(**cell: object) -> None:
        nonlocal begun
        begun += 1
        clock.begin()

    def count_executed(**cell: object) -> None:
        nonlocal executed
        executed += 1
        clock.end()
        watch(path, executed, total)

    watch(path, 0, total)
    began = time.monotonic()
    reason = ""
    with TemporaryDirectory(prefix="kafkalab-") as scratch:
        # A solved lab doesn't count as the learner's progress, and stored outputs show the same progress for everybody.
        # And the learner's own startup files and settings of IPython are for other notebooks.
        names = ("progress", "preparing", "sockets", "ipython")
        progress, clock.preparing, sockets, ipython = (Path(scratch, name) for name in names)
        for folder in (progress, clock.preparing, sockets, ipython):
            folder.mkdir()
        client = ObituaryClient(
            notebook,
            timeout=None,  # the clock does that
            resources={"metadata": {"path": str(path.parent)}},
            record_timing=False,
            store_widget_state=False,
            coalesce_streams=True,
            on_cell_execute=count_begun,
            on_cell_executed=count_executed,
            extra_arguments=["--log-level=CRITICAL"],  # its log would appear among our own lines
            config=Config(KernelManager=kernel_address(sockets)),
        )
        variables = {"KAFKALAB_PROGRESS": str(progress), PREPARING_VARIABLE: str(clock.preparing), "IPYTHONDIR": str(ipython)}
        try:
            await clock.bound(client.async_execute(env={**os.environ, **variables}))
        except CellTooSlow as error:
            reason = str(error)
        except CellExecutionError as error:
            reason = f"{error.ename}: {error.evalue}"
        except DeadKernelError as error:
            reason = f"{type(error).__name__}: the kernel ended ({exit_status(client.kernel_status)})"
        except (CellControlSignal, RuntimeError) as error:
            reason = f"{type(error).__name__}: {str(error).splitlines()[0]}"
    # Count like JupyterLab. Before the first cell, the kernel itself didn't start.
    failure = f"In [{begun}]: {reason}" if reason else ""
    return Outcome(path, notebook, time.monotonic() - began, failure)

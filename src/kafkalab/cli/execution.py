"""Runs notebooks without a browser, several at a time."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellControlSignal, CellExecutionError, DeadKernelError
from nbformat import NotebookNode

__all__ = ["Outcome", "Watcher", "run_notebooks"]

Watcher = Callable[[Path, int, int], None]
"""Told of each cell that was executed: the notebook, how many cells are done, how many there are."""


@dataclass(frozen=True)
class Outcome:
    """How one notebook went.

    Attributes
    ----------
    path
        The notebook.
    notebook
        The notebook with the outputs of this run.
    seconds
        How long it ran.
    failure
        Cell and reason of the first error; nothing if there was none.
    """

    path: Path
    notebook: NotebookNode
    seconds: float
    failure: str = ""


def run_notebooks(
    paths: Sequence[Path], *, at_once: int, cell_timeout: float, watch: Watcher, done: Callable[[Outcome], None]
) -> list[Outcome]:
    """Run notebooks, each in a fresh kernel and in its own folder.

    Parameters
    ----------
    paths
        The notebooks.
    at_once
        How many run side by side.
    cell_timeout
        Seconds that one cell may take.
    watch
        Told of every executed cell.
    done
        Told of every notebook's outcome, as soon as it is known.

    Returns
    -------
    list of Outcome
        In the order of `paths`. When this returns, or raises, no kernel of these notebooks is alive.
    """

    handle: Future[tuple[asyncio.AbstractEventLoop, asyncio.Task]] = Future()

    async def run_all() -> list[Outcome]:
        task = asyncio.current_task()
        assert task is not None
        handle.set_result((asyncio.get_running_loop(), task))
        gate = asyncio.Semaphore(at_once)

        async def run_one(path: Path) -> Outcome:
            async with gate:
                outcome = await _run(path, cell_timeout, watch)
            if not task.cancelling():  # what is interrupted has no verdict
                done(outcome)
            return outcome

        return list(await asyncio.gather(*(run_one(path) for path in paths)))

    # Not in the main thread: there nbclient would take over Ctrl-C, for one notebook at a time.
    with ThreadPoolExecutor(1) as thread:
        running = thread.submit(asyncio.run, run_all())
        try:
            return running.result()
        except BaseException:
            loop, task = handle.result()
            if not running.done():
                loop.call_soon_threadsafe(task.cancel)  # each client then shuts its kernel down
            raise


async def _run(path: Path, cell_timeout: float, watch: Watcher) -> Outcome:
    notebook = nbformat.read(path, as_version=4)
    total = sum(cell.cell_type == "code" for cell in notebook.cells)
    begun = executed = 0

    def count_begun(**cell: object) -> None:
        nonlocal begun
        begun += 1

    def count_executed(**cell: object) -> None:
        nonlocal executed
        executed += 1
        watch(path, executed, total)

    watch(path, 0, total)
    client = NotebookClient(
        notebook,
        timeout=cell_timeout,
        resources={"metadata": {"path": str(path.parent)}},
        record_timing=False,
        store_widget_state=False,
        coalesce_streams=True,
        on_cell_execute=count_begun,
        on_cell_executed=count_executed,
        extra_arguments=["--log-level=CRITICAL"],  # what it would log goes beside our own lines
    )
    began = time.monotonic()
    reason = ""
    try:
        # What it solves is not the learner's progress, and what it shows of progress is the same for everybody.
        with TemporaryDirectory(prefix="kafkalab-progress-") as progress:
            await client.async_execute(env={**os.environ, "KAFKALAB_PROGRESS": progress})
    except CellExecutionError as error:
        reason = f"{error.ename}: {error.evalue}"
    except (CellControlSignal, DeadKernelError, RuntimeError) as error:
        reason = f"{type(error).__name__}: {str(error).splitlines()[0]}"
    # As JupyterLab numbers cells; before the first one, the kernel itself did not start.
    failure = f"In [{begun}]: {reason}" if reason else ""
    return Outcome(path, notebook, time.monotonic() - began, failure)

"""Watch the limits of a running submission, and end what is left of it."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from pathlib import Path
from threading import Event

import psutil

from kafkalab.errors import WaitTimeout
from kafkalab.grading.isolation import Isolation
from kafkalab.grading.limits import Limits
from kafkalab.lifeline import Run, reap
from kafkalab.paths import files_below
from kafkalab.waiting import wait_until

__all__ = ["Guard", "OverLimit", "end"]

_END_SECONDS = 30.0
_BLOCK = 512  # bytes, of which the system counts a file's room


class OverLimit(Exception):
    """A submission exceeded a limit. The message names it."""


@dataclass(frozen=True)
class Guard:
    """Looks at a submission's limits.

    Attributes
    ----------
    run, isolation, limits
        What runs where, and how far it may go.
    interrupted
        Set to end it early.
    began
        When it began, by `time.monotonic`.
    """

    run: Run
    isolation: Isolation
    limits: Limits
    interrupted: Event
    began: float

    def look(self, worker: int) -> None:
        """Raise `OverLimit` if the submission exceeds a limit now.

        Parameters
        ----------
        worker
            The process that runs it, or that stands for its container.
        """
        if self.interrupted.is_set():
            raise OverLimit("the grading was interrupted")
        if time.monotonic() - self.began > self.limits.seconds:
            raise OverLimit(f"time limit of {self.limits.seconds:g} s")
        if self.isolation.kind == "container":
            return  # the engine sees to the others
        memory, tasks = self._used(worker)
        if memory > self.limits.memory_bytes:
            raise OverLimit(f"memory limit of {self.limits.memory_bytes >> 20} MB")
        if tasks > self.limits.tasks:
            raise OverLimit(f"limit of {self.limits.tasks} processes and threads")
        if self.isolation.kind == "process group" and _size(self.run.directory) > self.limits.disk_bytes:
            raise OverLimit(f"disk limit of {self.limits.disk_bytes >> 20} MB")

    def _used(self, worker: int) -> tuple[int, int]:
        memory = tasks = 0
        for process in self._processes(worker):
            with contextlib.suppress(psutil.Error), process.oneshot():
                size = process.memory_info()
                memory += size.rss - getattr(size, "shared", 0)
                tasks += process.num_threads()
        return memory, tasks

    def _processes(self, worker: int) -> set[psutil.Process]:
        with contextlib.suppress(psutil.NoSuchProcess):
            below = set(psutil.Process(worker).children(recursive=True))
            return below if self.isolation.kind == "namespaces" else below | _processes_of(self.run)
        return set()


def _size(folder: Path) -> int:
    total = 0
    for file in files_below(folder):
        with contextlib.suppress(OSError):
            total += file.lstat().st_blocks * _BLOCK
    return total


def _processes_of(run: Run) -> set[psutil.Process]:
    """Return the processes whose folder for temporary files is the run's: whatever a submission starts inherits it."""
    found = set()
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.environ().get("TMPDIR", "").startswith(str(run.directory)):
                found.add(process)
    return found


def end(run: Run) -> None:
    """Kill what is left of a submission, and remove its folder and its container."""

    def is_gone() -> bool:
        left = _processes_of(run)
        for process in left:
            with contextlib.suppress(psutil.Error):
                process.kill()
        return not left

    with contextlib.suppress(WaitTimeout):
        wait_until(is_gone, _END_SECONDS, "the submission's processes to end")
    reap(run)

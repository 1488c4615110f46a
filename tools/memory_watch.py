"""Running a command within a memory limit, and measuring how much it and all that it starts use."""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from kafkalab.cgroups import own_cgroups

__all__ = ["MARK", "MemoryWatch", "memory_limit"]

MARK = "KAFKALAB_MEMORY_WATCH"
"""Variable by which a watch knows its processes: they inherit it, also when their parents end."""


@contextmanager
def memory_limit(limit: int) -> Iterator[list[str]]:
    """Make a control group with a limit in bytes, of version 1 or 2.

    Yields
    ------
    list of str
        What stands before a command, so that it runs in the group with all that it starts. It's empty where a group
        can't be made (not root, or memory is not given to groups here).
    """
    for parent in own_cgroups("memory", Path("/proc"), Path("/sys/fs/cgroup")):
        group = parent / f"kafkalab-{uuid.uuid4().hex[:8]}"
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            knob = next((group / name for name in ("memory.limit_in_bytes", "memory.max") if (group / name).exists()), None)
            if knob is not None:
                knob.write_text(str(limit))
                yield ["sh", "-c", f'echo $$ > {group}/cgroup.procs; exec "$@"', "sh"]
                return
        finally:
            group.rmdir()
    yield []


class MemoryWatch(threading.Thread):
    """Sums, twice a second, the memory (PSS: shared pages are shared out) of all processes that carry its mark.

    macOS has no PSS. There it sums what each process has for itself (USS).

    Parameters
    ----------
    limit
        Bytes; above it every process of the watch is killed.

    Attributes
    ----------
    peak
        The largest sum so far, in bytes.
    """

    def __init__(self, limit: int) -> None:
        super().__init__(daemon=True)
        self.mark = uuid.uuid4().hex
        self.limit = limit
        self.peak = 0
        self._end = threading.Event()

    def environment(self) -> dict[str, str]:
        """What the environment of a watched process has to hold."""
        return {MARK: self.mark}

    def processes(self) -> list[psutil.Process]:
        """All watched processes that run now."""
        found = []
        for process in psutil.process_iter():
            try:
                if process.environ().get(MARK) == self.mark:
                    found.append(process)
            except (psutil.Error, OSError):
                continue
        return found

    def run(self) -> None:
        while not self._end.wait(0.5):
            processes = self.processes()
            self.peak = max(self.peak, sum(map(_pss, processes)))
            if self.peak > self.limit:
                _kill(processes)

    def __enter__(self) -> MemoryWatch:
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._end.set()
        self.join()
        psutil.wait_procs(self.processes(), timeout=10)  # reapers end by themselves when they have cleaned up
        while left := self.processes():
            _kill(left)


def _pss(process: psutil.Process) -> int:
    try:
        info = process.memory_full_info()
        return getattr(info, "pss", info.uss)
    except (psutil.Error, OSError):
        return 0


def _kill(processes: list[psutil.Process]) -> None:
    for process in processes:
        if process.pid != os.getpid():
            with suppress(psutil.NoSuchProcess):
                process.kill()
    psutil.wait_procs(processes, timeout=5)

"""A control group for each learner: a memory limit for all that the learner runs, and an end for all of it at once.

systemd does this on machines that have it. `spawner.NamespaceSpawner` needs it elsewhere.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
from dataclasses import dataclass
from pathlib import Path

from kafkalab_hub.waiting import wait_until

__all__ = ["ControlGroup"]

_ROOT = Path("/sys/fs/cgroup")
_END_SECONDS = 10.0


@dataclass(frozen=True)
class ControlGroup:
    """A group of processes with a memory limit, of version 1 or 2 of control groups.

    Parameters
    ----------
    name
        Its name, a folder's.
    root
        Where the system keeps its control groups.
    """

    name: str
    root: Path = _ROOT

    @property
    def folder(self) -> Path:
        """Where it is: below ``memory`` in version 1."""
        version_1 = self.root / "memory"
        return (version_1 if version_1.is_dir() else self.root) / self.name

    def create(self, memory: int | None) -> None:
        """Make the group, with a limit in bytes for memory and swap together. Without a limit it only counts."""
        self.folder.mkdir(exist_ok=True)
        if memory is None:
            return
        for name, value in {
            "memory.limit_in_bytes": memory,
            "memory.memsw.limit_in_bytes": memory,
            "memory.max": memory,
            "memory.swap.max": 0,
        }.items():
            if (file := self.folder / name).exists():
                file.write_text(str(value))

    def enter(self) -> None:
        """Put this process into the group. What it starts is in it, too."""
        (self.folder / "cgroup.procs").write_text(str(os.getpid()))

    @property
    def processes(self) -> list[int]:
        """The ids of all processes in the group."""
        try:
            return [int(line) for line in (self.folder / "cgroup.procs").read_text().split()]
        except OSError:
            return []

    @property
    def peak(self) -> int:
        """The most memory that the group had so far, in bytes. It includes files that the kernel keeps in memory."""
        for name in ("memory.max_usage_in_bytes", "memory.peak"):
            if (file := self.folder / name).exists():
                return int(file.read_text())
        return 0

    def remove(self) -> None:
        """Kill what is in the group, and remove it.

        Raises
        ------
        OSError
            If the system refuses, or a process doesn't end within 10 s: `TimeoutError`, which names the processes.
        """
        wait_until(self._is_removed, _END_SECONDS, f"{self.folder} to end", last_seen=lambda: self.processes, interval=0.02)

    def _is_removed(self) -> bool:
        for process in self.processes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        try:
            self.folder.rmdir()
        except FileNotFoundError:
            return True
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise
            return False  # the kernel says nothing when a group is empty
        return True

"""Processes on this machine, their files, and copies of folders that change meanwhile."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from kafkalab.cluster.backends.control import ManagedNode
from kafkalab.lifeline import started
from kafkalab.limits import BY_LIMIT, limit_kills

__all__ = ["NodeProcess", "copy_changing_tree", "living_process", "read_text"]


@dataclass
class NodeProcess(ManagedNode):
    """A node that is a process of this machine."""

    bound: dict[str, int] = field(default_factory=dict)  # listener → port on which the node listens
    advertised: dict[str, int] = field(default_factory=dict)  # listener → port that others use, perhaps the relay's
    pid: int = 0
    since: int = 0  # when that process started
    logged: int = 0  # bytes of its log from before its last start
    child: subprocess.Popen[bytes] | None = field(default=None, repr=False)  # None if it's another process's child
    limit_kills: int = field(default_factory=limit_kills, repr=False)  # how often the memory limit had killed when it started
    end: str | None = None  # why it ended, if the memory limit did it; None until that's known

    def handle(self) -> psutil.Process | None:
        """Return the process, or None if it's gone."""
        if self.child is not None:
            self.child.poll()  # collects the exit status if it ended, so that no zombie stays behind
        return living_process(self.pid, self.since)

    def note_end(self) -> None:
        """Note whether the memory limit ended the process. Call it when the process is first seen to be gone."""
        if self.end is None:
            killed = self.child is None or self.child.returncode == -signal.SIGKILL
            self.end = BY_LIMIT if killed and not self.ended_by and limit_kills() > self.limit_kills else ""


def living_process(pid: int, since: int) -> psutil.Process | None:
    """Return the process that got this id then, or None if it's gone."""
    try:
        process = psutil.Process(pid)
        return process if started(pid) == since and process.status() != psutil.STATUS_ZOMBIE else None
    except psutil.NoSuchProcess:
        return None


def copy_changing_tree(source: Path, target: Path) -> None:
    """Copy a folder even if others remove files and folders from it meanwhile."""

    def unless_gone(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            raise error

    for folder, _, names in os.walk(source, onerror=unless_gone):
        copied = target / Path(folder).relative_to(source)
        copied.mkdir(parents=True)
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                shutil.copyfile(Path(folder, name), copied / name)


def read_text(path: Path, start: int = 0) -> str:
    """Return a file's text from a byte on; empty if there is no such file."""
    return path.read_bytes()[start:].decode(errors="replace") if path.exists() else ""

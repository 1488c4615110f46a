"""Tell a process that the memory limit ended from one that somebody killed: both end by SIGKILL, without a word.

The system counts, for each control group, the processes that it killed because memory ran out.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from kafkalab.cgroups import own_cgroups

__all__ = ["BY_LIMIT", "end_first", "hint_at_kill", "limit_kills"]

BY_LIMIT = "the memory limit ended it"
"""Half a sentence about a process."""

# The file with the count, in version 2 and version 1 of control groups.
_COUNTERS = ("memory.events", "memory.oom_control")

_SOONER = 500  # thousandths of the memory that there is: as if the process had that much more


def limit_kills(proc: Path = Path("/proc"), cgroups: Path = Path("/sys/fs/cgroup")) -> int:
    """Return how many processes of this process's control group were killed because memory ran out; 0 where nobody counts.

    See "memory.events" in https://docs.kernel.org/admin-guide/cgroup-v2.html
    """
    counts = {
        folder: count
        for folder in own_cgroups("memory", proc, cgroups)
        for name in _COUNTERS
        if (count := _count(folder / name)) is not None
    }
    # The group nearest to this process: those above it count what others lost, too.
    return counts[max(counts, key=lambda folder: len(folder.parts))] if counts else 0


def _count(file: Path) -> int | None:
    try:
        return int(dict(line.split() for line in file.read_text().splitlines())["oom_kill"])
    except (OSError, KeyError, ValueError):
        return None


def end_first(pid: int) -> None:
    """Let the system end this process before Jupyter and the notebook's kernel, if memory runs out.

    A broker that's gone can be restarted, and the map says what ended it. A kernel takes the learner's variables with it. See
    "oom_score_adj" in https://docs.kernel.org/filesystems/proc.html
    """
    with suppress(OSError, ValueError):  # the process has ended, or this isn't Linux
        own = int(Path("/proc/self/oom_score_adj").read_text())
        Path(f"/proc/{pid}/oom_score_adj").write_text(str(min(1000, own + _SOONER)))


_before = limit_kills()


def hint_at_kill() -> str:
    """Return half a sentence about a process that ended by SIGKILL, from whom nobody here sent it.

    The limit counts if it has ended something since this process imported the module, as everything does that starts processes.
    """
    return BY_LIMIT if limit_kills() > _before else "killed from outside; out of memory?"

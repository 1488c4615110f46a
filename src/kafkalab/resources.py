"""Check memory and disk before brokers start, so that you get a clear error instead of a crash."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil

from kafkalab.cgroups import own_cgroups
from kafkalab.errors import NotEnoughResources

__all__ = ["available_memory", "require_disk", "require_memory", "shortage"]

# JupyterHub names a server's limit in bytes there. It counts where the control groups can't be seen.
_HUB_LIMIT = "MEM_LIMIT"

# The limit, the memory in use, and details, in version 2 and version 1 of control groups.
_MEMORY_FILES = (
    ("memory.max", "memory.current", "memory.stat"),
    ("memory.limit_in_bytes", "memory.usage_in_bytes", "memory.stat"),
)


def available_memory(proc: Path = Path("/proc"), cgroups: Path = Path("/sys/fs/cgroup")) -> int:
    """Return the available memory in bytes: the machine's, or less if a limit of this process's control groups is nearer."""
    left = [_left_in(folder / limit, folder / used, folder / stat)
            for folder in own_cgroups("memory", proc, cgroups) for limit, used, stat in _MEMORY_FILES]  # fmt: skip
    limited = [amount for amount in left if amount is not None]
    if not limited and (promised := os.environ.get(_HUB_LIMIT, "")).isdigit():
        limited = [int(promised) - _used_by_this_user()]
    return min([int(psutil.virtual_memory().available), *limited])


def _used_by_this_user() -> int:
    used = 0
    for process in psutil.process_iter(["uids", "memory_info"]):
        uids, memory = process.info["uids"], process.info["memory_info"]  # None for what ended, or belongs to others
        if uids and memory and uids.real == os.getuid():
            used += memory.rss
    return used


def _left_in(limit_file: Path, used_file: Path, stat_file: Path) -> int | None:
    """Return how many bytes a control group may still take; None if it has no limit."""
    try:
        limit, used = limit_file.read_text().strip(), int(used_file.read_text())
        stat = dict(line.split() for line in stat_file.read_text().splitlines())
        cache = int(stat.get("total_inactive_file", stat.get("inactive_file", 0)))  # freed when needed
        return None if limit == "max" else int(limit) - used + cache
    except (OSError, ValueError):
        return None


def shortage(notebook: Mapping[str, Any]) -> str:
    """Return why there is too little memory to run a notebook; an empty text if there is enough.

    Parameters
    ----------
    notebook
        Its metadata. A notebook that needs more than others has an entry there: ``{"kafkalab": {"memory_mb": 2000}}``.
    """
    needed = notebook.get("kafkalab", {}).get("memory_mb")
    if needed is None or (free := available_memory() >> 20) >= needed:
        return ""
    return f"it needs about {needed} MB of memory, but only {max(0, free)} MB are free"


def require_memory(needed: int, what: str) -> None:
    """Raise `NotEnoughResources` unless this many bytes of memory are free."""
    available = available_memory()
    if available < needed:
        raise NotEnoughResources(
            f"{what} needs about {needed >> 20} MB of memory, but only {max(0, available) >> 20} MB are free. "
            "Stop other clusters (cluster.stop(), or shut down other notebooks' kernels), or start fewer brokers."
        )


def require_disk(folder: Path, needed: int) -> None:
    """Raise `NotEnoughResources` unless this many bytes are free on a folder's file system."""
    free = psutil.disk_usage(str(folder)).free
    if free < needed:
        raise NotEnoughResources(
            f"the brokers' data needs at least {needed >> 20} MB of disk, but only {free >> 20} MB are free for {folder}. "
            "Free some, or name another folder with TMPDIR."
        )

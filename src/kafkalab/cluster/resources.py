"""Check memory and disk before brokers start, so that you get a clear error instead of a crash."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil

from kafkalab.errors import NotEnoughResources

__all__ = ["available_memory", "require_disk", "require_memory", "shortage"]

# Version 2 and version 1 of control groups: the limit and the memory in use.
_CGROUPS = (
    (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current"), Path("/sys/fs/cgroup/memory.stat")),
    (
        Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
        Path("/sys/fs/cgroup/memory/memory.usage_in_bytes"),
        Path("/sys/fs/cgroup/memory/memory.stat"),
    ),
)


def available_memory() -> int:
    """Return the available memory in bytes: the machine's, or less if a container's limit is lower."""
    available: int = psutil.virtual_memory().available
    for limit_file, used_file, stat_file in _CGROUPS:
        try:
            limit, used = limit_file.read_text().strip(), int(used_file.read_text())
            stat = dict(line.split() for line in stat_file.read_text().splitlines())
        except (OSError, ValueError):
            continue
        if limit != "max":
            cache = int(stat.get("inactive_file", stat.get("total_inactive_file", 0)))  # freed when needed
            available = min(available, int(limit) - used + cache)
    return available


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

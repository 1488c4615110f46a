"""Find the control groups that limit this process on Linux."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

__all__ = ["own_cgroups"]


def own_cgroups(controller: str, proc: Path, cgroups: Path) -> Iterator[Path]:
    """Yield the folders of this process's control groups, from its own up to the topmost.

    Parameters
    ----------
    controller
        What they limit, for version 1: ``memory``, ``pids``.
    proc, cgroups
        Where the system says which groups they are, and where it keeps them.
    """
    try:
        lines = (proc / "self" / "cgroup").read_text().splitlines()
    except OSError:
        lines = []
    # In a container the path may be the machine's, which isn't there. The topmost folder is the container's own then.
    for hierarchy, controllers, path in (line.split(":", 2) for line in ["0::/", f"1:{controller}:/", *lines]):
        if hierarchy == "0":  # version 2, or its part of a machine that has both
            roots = [cgroups, cgroups / "unified"]
        elif controller in controllers.split(","):
            roots = [cgroups / controllers, cgroups / controller]
        else:
            continue
        below = Path(path.lstrip("/"))
        yield from (folder for root in roots for part in (below, *below.parents) if (folder := root / part).is_dir())

"""Walk a folder for the files that somebody wrote.

The build of a wheel imports this module before anything is installed, so it may only use the standard library.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

__all__ = ["LEFTOVERS", "files_below"]

LEFTOVERS = {"__pycache__", "spark-warehouse"}
"""Folders that running notebooks leaves behind."""


def files_below(folder: Path) -> Iterator[Path]:
    """Yield the files of a folder and of those in it, in order, without leftovers and hidden ones. None if it's missing."""
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in LEFTOVERS and not name.startswith("."))
        yield from (Path(parent, name) for name in sorted(names) if not name.startswith("."))

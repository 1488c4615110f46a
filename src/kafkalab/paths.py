"""Folders that kafkalab uses: for downloads, for a learner's progress, and for running clusters."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import platformdirs

__all__ = ["cache_dir", "files_below", "progress_dir", "runs_dir"]


def cache_dir() -> Path:
    """Return the folder of everything that can be downloaded or built again: jars, the class-data archive, command scripts.

    Set ``KAFKALAB_CACHE`` to use another folder than the user's cache folder.
    """
    override = os.environ.get("KAFKALAB_CACHE")
    return Path(override) if override else platformdirs.user_cache_path("kafkalab")


def progress_dir() -> Path:
    """Return the folder of the learner's progress: which labs passed, and when.

    Set ``KAFKALAB_PROGRESS`` to use another folder than the user's data folder.
    """
    override = os.environ.get("KAFKALAB_PROGRESS")
    return Path(override) if override else platformdirs.user_data_path("kafkalab")


def runs_dir() -> Path:
    """Return the folder for running things: broker data, logs, worker files. Nothing in it outlives its owner."""
    return Path(tempfile.gettempdir()) / f"kafkalab-{os.getuid()}"


def files_below(folder: Path) -> Iterator[Path]:
    """Yield each file in a folder and in those below it, even while others remove some: `Path.rglob` fails then.

    A file may be gone by the time it's yielded.
    """
    for parent, _, names in os.walk(folder):
        yield from (Path(parent, name) for name in names)

"""Where kafkalab keeps files: what can be fetched again, what belongs to a learner, what dies with a run."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import platformdirs

__all__ = ["cache_dir", "progress_dir", "runs_dir"]


def cache_dir() -> Path:
    """Folder of all that can be fetched or built again: jars, the class-data archive, command scripts.

    ``KAFKALAB_CACHE`` names another folder than the user's cache folder.
    """
    override = os.environ.get("KAFKALAB_CACHE")
    return Path(override) if override else platformdirs.user_cache_path("kafkalab")


def progress_dir() -> Path:
    """Folder of the learner's progress: which labs passed, and when.

    ``KAFKALAB_PROGRESS`` names another folder than the user's data folder.
    """
    override = os.environ.get("KAFKALAB_PROGRESS")
    return Path(override) if override else platformdirs.user_data_path("kafkalab")


def runs_dir() -> Path:
    """Folder of running things: broker data, logs, worker files. Nothing in it outlives its owner."""
    return Path(tempfile.gettempdir()) / f"kafkalab-{os.getuid()}"

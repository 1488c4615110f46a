"""Write files that hold secrets."""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO

from kafkalab.files import write_atomically

__all__ = ["open_private", "private_folder", "write_private"]


def write_private(path: Path, content: bytes | str) -> Path:
    """Write a file that only its owner can read, in one step, and return it."""
    return write_atomically(path, content, 0o600)


def open_private(path: Path) -> IO[bytes]:
    """Open a new file that only its owner can read, for a process's output."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb")


def private_folder(path: Path) -> Path:
    """Return a folder that only its owner can open, and create it if it's missing."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path

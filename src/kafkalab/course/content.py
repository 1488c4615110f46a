"""Find the course's files, in a clone of the repository or in the installed package.

The build of a wheel imports this module before anything is installed, so it may only use the standard library.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from kafkalab.errors import KafkaLabError

__all__ = ["FIRST", "SOLUTIONS", "Content", "clone_dir", "find_content"]

FIRST = "notebooks/00_start_here.ipynb"
"""The chapter that opens by default."""

FOLDERS = ("notebooks", "labs")
SOLUTIONS = "solutions"

PACKAGED = Path(__file__).with_name("content")
"""Where a wheel holds the course."""

# What running notebooks leaves in a clone. Hidden files and folders are left out, too.
LEFTOVERS = {"__pycache__", "spark-warehouse"}


@dataclass(frozen=True)
class Content:
    """The files of the course.

    Attributes
    ----------
    root
        The folder with ``notebooks``, ``labs`` and, unless they were removed, ``solutions``.
    """

    root: Path

    def files(self) -> dict[str, Path]:
        """Return chapters, labs, and everything beside them: name (``labs/NN_chapter/NN_lab.ipynb``) → file, in order."""
        return {name: path for folder in FOLDERS for name, path in self._below(folder)}

    def solutions(self) -> dict[str, Path]:
        """Return solutions and the modules beside them, by name. Empty in a course without solutions."""
        return dict(self._below(SOLUTIONS))

    def lab_seconds(self, stem: str) -> int | None:
        """Return how long the cells of a lab's solution ran when their outputs were stored, or None if that isn't known."""
        notebook = next((self.root / "labs").glob(f"*/{stem}.ipynb"), None)
        if notebook is None:
            return None
        seconds: int | None = json.loads(notebook.read_bytes())["metadata"].get("kafkalab", {}).get("seconds")
        return seconds

    def _below(self, folder: str) -> list[tuple[str, Path]]:
        found = []
        for parent, folders, names in os.walk(self.root / folder):
            folders[:] = sorted(name for name in folders if name not in LEFTOVERS and not name.startswith("."))
            for name in sorted(names):
                path = Path(parent, name)
                # A README at the top is for authors: it explains where the files come from.
                is_for_authors = name == "README.md" and path.parent == self.root / folder
                if not name.startswith(".") and not is_for_authors:
                    found.append((path.relative_to(self.root).as_posix(), path))
        return found


def clone_dir() -> Path | None:
    """Return the clone that this package runs from, or None for an installed package."""
    folder = Path(__file__).parents[3]  # src/kafkalab/course
    return folder if (folder / FIRST).exists() else None


def find_content() -> Content:
    """Find the course that belongs to this package: the one in its clone, else the one in the package itself.

    Raises
    ------
    KafkaLabError
        If neither has notebooks.
    """
    for root in (clone_dir(), PACKAGED):
        if root and (root / FIRST).exists():
            return Content(root)
    raise KafkaLabError(f"the course's notebooks are missing: there is no {FIRST} beside this package; install it again")

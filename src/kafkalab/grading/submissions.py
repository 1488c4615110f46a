"""Find the submissions in a folder, and read them without running anything."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kafkalab.course.names import CHECK
from kafkalab.errors import KafkaLabError

__all__ = ["Cell", "Submission", "Unreadable", "find_submissions", "lab_meant_by", "read_cells"]

_LARGEST = 20 << 20  # bytes: a notebook with pictures in its outputs is far below


class Unreadable(Exception):
    """The file isn't a notebook that can be run. The message is the reason in its row."""


@dataclass(frozen=True)
class Submission:
    """What somebody handed in.

    Attributes
    ----------
    name
        Its path within the folder of submissions.
    path
        The notebook, another file, or a learner's folder without a notebook.
    beside
        Other files of the learner's folder, by their path in it. The notebook may import or read them.
    """

    name: str
    path: Path
    beside: Mapping[str, Path]


@dataclass(frozen=True)
class Cell:
    """A cell of code. Outputs that are stored with it aren't read: they prove nothing."""

    id: str
    source: str
    may_fail: bool = False


def find_submissions(folder: Path, *, lab_checks: Iterable[str] = (), except_for: Path | None = None) -> list[Submission]:
    """Return the submissions in a folder, by name.

    Each file in it is one, and so is each notebook in each of its folders, which hold a learner's files. A folder without
    any notebook is one, too, so that it gets its row. Hidden files don't count.

    Parameters
    ----------
    lab_checks
        The checks of the lab to grade. A learner's folder may hold notebooks of other labs, too: they don't count then.
    except_for
        The file with the marks.

    Raises
    ------
    KafkaLabError
        If there is no such folder, or nothing in it.
    """
    if not folder.is_dir():
        raise KafkaLabError(f"{folder} is no folder. Name the one with the submissions: a notebook each, or a folder for each")
    found: list[Submission] = []
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or path.resolve() == except_for:
            continue
        found += _in_folder(path, list(lab_checks)) if path.is_dir() else [Submission(path.name, path, {})]
    if not found:
        raise KafkaLabError(f"there is no submission in {folder}: no file, and no folder")
    return found


def _in_folder(folder: Path, lab_checks: list[str]) -> list[Submission]:
    files = {path.relative_to(folder).as_posix(): path for path in _files_below(folder)}
    notebooks = {name: path for name, path in files.items() if path.suffix == ".ipynb"}
    if lab_checks:
        of_the_lab = {name: path for name, path in notebooks.items() if _calls_any(path, lab_checks)}
        notebooks = of_the_lab or notebooks
    if not notebooks:
        return [Submission(folder.name, folder, {})]
    others = {name: path for name, path in files.items() if path.suffix != ".ipynb"}
    return [Submission(f"{folder.name}/{name}", path, _relative_to(name, others)) for name, path in notebooks.items()]


def _files_below(folder: Path) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = Path(parent, name)
            # A symbolic link may lead to any file of the marker.
            if not name.startswith(".") and path.is_file() and not path.is_symlink():
                yield path


def _relative_to(notebook: str, files: Mapping[str, Path]) -> dict[str, Path]:
    """Return the files in the notebook's own folder and below it, by their path from there."""
    prefix = notebook.rpartition("/")[0]
    prefix += "/" if prefix else ""
    return {name.removeprefix(prefix): path for name, path in files.items() if name.startswith(prefix)}


def _calls_any(notebook: Path, checks: list[str]) -> bool:
    try:
        return any(name in checks for cell in read_cells(notebook) for name in CHECK.findall(cell.source))
    except Unreadable:
        return False


def read_cells(path: Path) -> list[Cell]:
    """Return the cells of code of a submission's notebook.

    Raises
    ------
    Unreadable
        If it has none, or isn't a notebook.
    """
    if path.is_dir():
        raise Unreadable("no notebook in this folder")
    try:
        if path.is_symlink():
            raise Unreadable("not a notebook: a symbolic link")
        if path.stat().st_size > _LARGEST:
            raise Unreadable(f"not graded: larger than {_LARGEST >> 20} MB")
        content = path.read_bytes()
    except OSError as error:
        raise Unreadable(f"can't be read: {error.strerror}") from None
    if not content.strip():
        raise Unreadable("not a notebook: an empty file")
    try:
        cells = [_cell(cell) for cell in json.loads(content)["cells"] if cell["cell_type"] == "code"]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise Unreadable("not a notebook") from None
    if not any(cell.source.strip() for cell in cells):
        raise Unreadable("no cell of code")
    return cells


def _cell(cell: Mapping[str, Any]) -> Cell:
    tags = cell.get("metadata", {}).get("tags", [])
    return Cell(str(cell.get("id", "")), "".join(cell["source"]), "raises-exception" in tags)


def lab_meant_by(cells: Iterable[Cell], checks: Mapping[str, str]) -> str | None:
    """Return the lab of which a notebook calls the most checks, or None.

    Parameters
    ----------
    checks
        The lab of each check.
    """
    calls = Counter(checks[name] for cell in cells for name in CHECK.findall(cell.source) if name in checks)
    return calls.most_common(1)[0][0] if calls else None

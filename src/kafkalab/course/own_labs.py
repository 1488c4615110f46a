"""An instructor's own labs, from a folder, beside the course's.

The folder that ``KAFKALAB_LABS`` names, or ``own-labs`` in a bundle, holds a notebook for each lab, ``NN_name.ipynb``, with
the number of the chapter that it belongs to. Beside it may stand ``NN_name.py`` with the lab's checks, written as those of the
course. Other files and folders come along. ``solutions/NN_name.ipynb`` is a lab's solution. ``labs.toml`` may have a ``title``
for the home page, and ``kafkalab``, the version of the engine that the labs were tried with.

The build of a wheel imports this module before anything is installed, so it may only use the standard library.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

from kafkalab.course.walk import files_below

__all__ = ["ABOUT", "CHOICE", "OWN", "OwnLabs", "read_own_labs"]

CHOICE = "KAFKALAB_LABS"
"""The variable that names the folder."""

OWN = "own"
"""Where these labs are among the course's: ``labs/own/NN_name.ipynb``."""

ABOUT = "labs.toml"
"""The file that says what the labs are called, and what they were tried with."""

_STEM = re.compile(r"\d\d_\w+")
_TITLE = "Labs of your class"


@dataclass(frozen=True)
class OwnLabs:
    """An instructor's own labs.

    Attributes
    ----------
    folder
        Where they are, or None if there are none.
    title
        What the home page calls them.
    files
        What learners get, by its name in the course: ``labs/own/02_leaders.ipynb``, ``solutions/own/02_leaders.ipynb``.
    checks
        The module with a lab's checks, by the lab's stem. A lab may have none.
    problems
        What is wrong with the folder, a sentence each. What it concerns is left out.
    """

    folder: Path | None = None
    title: str = _TITLE
    files: Mapping[str, Path] = field(default_factory=dict)
    checks: Mapping[str, Path] = field(default_factory=dict)
    problems: tuple[str, ...] = ()

    @property
    def stems(self) -> list[str]:
        """The labs, in order."""
        return [path.stem for name, path in self.files.items() if name.startswith("labs/") and name.endswith(".ipynb")]


def read_own_labs(folder: Path, taken: Collection[str], chapters: Collection[str]) -> OwnLabs:
    """Read a folder. Whatever is wrong with it, the course goes on: `OwnLabs.problems` says it.

    Parameters
    ----------
    taken
        The stems of the course's labs.
    chapters
        The numbers of the course's chapters: ``02``.
    """
    if not folder.is_dir():
        return OwnLabs(problems=(f"{CHOICE} names {folder}, and there is no such folder. Name the folder with your own labs.",))
    problems: list[str] = []
    title = _read_about(folder / ABOUT, problems)
    notebooks = []
    for path in sorted(folder.glob("*.ipynb")):
        if problem := _problem_of(path, taken, chapters):
            problems.append(problem)
        else:
            notebooks.append(path)
    if not notebooks and not problems:
        problems.append(
            f"{folder} should hold labs of your own, and there is no notebook in it. A lab is a notebook NN_name.ipynb."
        )
    checks = {path.stem: path.with_suffix(".py") for path in notebooks if path.with_suffix(".py").is_file()}
    problems += _unpaired(folder, checks)
    return OwnLabs(folder, title, dict(_named(folder, {path.stem for path in notebooks})), checks, tuple(problems))


def _named(folder: Path, stems: Collection[str]) -> Iterator[tuple[str, Path]]:
    """Yield what learners get: labs, what stands beside them, solutions. Checks and the page about the folder stay here."""
    for path in files_below(folder):
        place = path.relative_to(folder)
        if place.parts[0] == "solutions":
            if path.stem in stems or path.suffix != ".ipynb":
                yield f"solutions/{OWN}/{place.relative_to('solutions').as_posix()}", path
        elif len(place.parts) == 1 and (place.name in (ABOUT, "README.md") or _STEM.fullmatch(path.stem)):
            if path.suffix == ".ipynb" and path.stem in stems:
                yield f"labs/{OWN}/{place.name}", path
        elif path.suffix != ".ipynb":
            yield f"labs/{OWN}/{place.as_posix()}", path


def _problem_of(path: Path, taken: Collection[str], chapters: Collection[str]) -> str | None:
    if not _STEM.fullmatch(path.stem) or path.stem[:2] not in chapters:
        return (
            f"{path} is left out: the name of a lab begins with the number of its chapter, as in 02_leaders.ipynb. "
            f"There are chapters {min(chapters)} to {max(chapters)}."
        )
    if path.stem in taken:
        return f"{path} is left out: the course has a lab {path.stem}. Give yours another name."
    try:
        readable = isinstance(json.loads(path.read_bytes())["cells"], list)
    except (OSError, ValueError, KeyError, TypeError):
        readable = False
    return None if readable else f"{path} is left out: it can't be read as a notebook. Open it in JupyterLab and save it again."


def _unpaired(folder: Path, checks: Mapping[str, Path]) -> Iterator[str]:
    """Yield what is wrong with modules, as far as it shows without running them."""
    for path in sorted(folder.glob("*.py")):
        if not _STEM.fullmatch(path.stem):
            continue  # a module that a lab imports
        if path.stem not in checks:
            yield f"{path} has the checks of no lab: {path.stem}.ipynb isn't beside it, or is left out."
            continue
        try:
            compile(path.read_bytes(), path, "exec")
        except (OSError, ValueError, SyntaxError) as error:
            yield f"The checks of {path.stem} can't be loaded: {path}: {error}."


def _read_about(path: Path, problems: list[str]) -> str:
    """Return the title, and say what is wrong with the page about the folder."""
    try:
        about = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return _TITLE
    except (OSError, ValueError) as error:
        problems.append(f"{path} can't be read: {error}. It's TOML, with a title and kafkalab's version.")
        return _TITLE
    tried, installed = str(about.get("kafkalab", "")), version("kafkalab")
    if tried and tried != installed:
        problems.append(
            f"The labs in {path.parent} were tried with kafkalab {tried}, and {installed} is installed. "
            f"Run their solutions again, then write the new version into {path.name}."
        )
    return str(about.get("title", _TITLE))

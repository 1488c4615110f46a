"""Find the course that is installed.

A course is a package that names itself by an entry point of the group ``kafkalab.courses``::

    [project.entry-points."kafkalab.courses"]
    my-course = "mycourse"

It has a package per chapter (``mycourse.ch02_failover``) with a module per lab and a ``quiz.toml``, and a `course.toml`.
Its notebooks are in the repository that holds the package, or in the package's own folder ``content``. An instructor's own
labs come beside them (see `kafkalab.course.own_labs`).
"""

from __future__ import annotations

import importlib
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from kafkalab.course import own_labs
from kafkalab.course.bundled import mismatch
from kafkalab.course.content import Content
from kafkalab.course.own_labs import OwnLabs, read_own_labs
from kafkalab.errors import KafkaLabError

__all__ = ["CONTENT_FOLDER", "GROUP", "OWN_FOLDER", "Course", "find_course"]

GROUP = "kafkalab.courses"
CHOICE = "KAFKALAB_COURSE"
CONTENT_FOLDER = "KAFKALAB_CONTENT_FOLDER"
"""Variable that names a folder with notebooks to use in place of those beside the package."""

OWN_FOLDER = "own-labs"
"""Where an instructor's own labs are in a bundle."""


@dataclass(frozen=True)
class Course:
    """A course.

    Attributes
    ----------
    package
        The name of its package.
    content
        Its notebooks.
    clone
        The repository that the package is in, or None if it's installed without one.
    """

    package: str
    content: Content
    clone: Path | None = None

    def checks_module(self, stem: str) -> str:
        """Return the name of the module with the checks of one of the course's labs, by the lab's stem."""
        return f"{self.package}.ch{self.content.chapter_of(stem)}.{stem[3:]}"

    def quizzes(self) -> Mapping[str, Traversable]:
        """Return the files with review questions by chapter, ``02_failover``, in order."""
        folders = sorted((folder for folder in files(self.package).iterdir() if folder.name[:2] == "ch"), key=lambda f: f.name)
        quizzes = {folder.name[2:]: folder / "quiz.toml" for folder in folders}
        notebooks = self.content.root / "notebooks"  # a bundle has some of the chapters
        return {name: quiz for name, quiz in quizzes.items() if quiz.is_file() and (notebooks / f"{name}.ipynb").is_file()}

    def problems(self) -> list[str]:
        """Return what is wrong with the course's files and an instructor's own labs, a sentence each. The course goes on."""
        bundle = mismatch(self.content.root)
        return [*([bundle] if bundle else []), *self.content.own.problems]

    def usual(self) -> str:
        """Return which chapters need nothing but what everybody fetches: ``"chapters 0 to 5"``."""
        chapters: str = self._toml()["usual"]
        return chapters

    def needs(self) -> Mapping[str, str]:
        """Return which chapters need a download or a command that others don't: ``{"curl": "chapter 6"}``."""
        chapters: Mapping[str, str] = self._toml()["needs"]
        return chapters

    def _toml(self) -> dict[str, Any]:
        return tomllib.loads((files(self.package) / "course.toml").read_text("utf-8"))


@cache
def find_course() -> Course:
    """Return the course that is installed. If there are several, ``KAFKALAB_COURSE`` names the entry point of one.

    Raises
    ------
    KafkaLabError
        If none is installed, or several and none is chosen, or its notebooks are missing.
    """
    courses = {entry.name: entry.value for entry in entry_points(group=GROUP)}
    name = os.environ.get(CHOICE) or (next(iter(courses)) if len(courses) == 1 else "")
    if name not in courses:
        raise KafkaLabError(
            f"{CHOICE} should name one of the installed courses: {', '.join(sorted(courses))}"
            if courses
            else "no course is installed; install this one again"
        )
    package = courses[name]
    folder = Path(str(importlib.import_module(package).__file__)).parent
    repository = folder.parents[1]  # of src/<package>
    clone = repository if Content.is_in(repository) else None
    if elsewhere := os.environ.get(CONTENT_FOLDER):
        if Content.is_in(Path(elsewhere)):
            return Course(package, Content(Path(elsewhere), _own_labs(Path(elsewhere))), clone)
        raise KafkaLabError(f"there are no chapters and labs in {elsewhere}, the folder that {CONTENT_FOLDER} names")
    root = clone or folder / "content"
    if Content.is_in(root):
        return Course(package, Content(root, _own_labs(root)), clone)
    raise KafkaLabError(f"the course's notebooks are missing: there are none beside the package {package}; install it again")


def _own_labs(root: Path) -> OwnLabs:
    folder = Path(os.environ.get(own_labs.CHOICE) or root / OWN_FOLDER)
    if folder == root / OWN_FOLDER and not folder.is_dir():
        return OwnLabs()
    labs = {path.stem for path in (root / "labs").glob("*/*.ipynb")}
    chapters = {path.stem[:2] for path in (root / "notebooks").glob("*.ipynb")}
    return read_own_labs(folder.expanduser().absolute(), labs, chapters)

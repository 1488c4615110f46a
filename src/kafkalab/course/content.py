"""The files of a course: chapters, labs, solutions.

The build of a wheel imports this module before anything is installed, so it may only use the standard library.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from kafkalab.course.outline import outline
from kafkalab.course.own_labs import OWN, OwnLabs
from kafkalab.course.walk import files_below
from kafkalab.errors import KafkaLabError

__all__ = ["REFERENCES", "SOLUTIONS", "Content", "LabFacts"]

FOLDERS = ("notebooks", "labs")
SOLUTIONS = "solutions"

# To look things up, with their titles. A course has those that there are.
REFERENCES = {"docs/cheat-sheet.md": "Cheat sheet", "docs/glossary.md": "Glossary"}


@dataclass(frozen=True)
class LabFacts:
    """What the reader of a lab wants to know beforehand. It stands in the notebook's metadata, under ``kafkalab``.

    Attributes
    ----------
    difficulty
        How much of it the chapter hasn't shown before: ``easy``, ``medium`` or ``hard``.
    minutes
        About how long a learner needs, as its author estimates.
    needs
        What to read or do before.
    seconds
        How long the cells of its solution ran when their outputs were stored, or None if that isn't known.
    """

    difficulty: str
    minutes: int
    needs: str
    seconds: int | None = None


@dataclass(frozen=True)
class Content:
    """The files of a course.

    Attributes
    ----------
    root
        The folder with ``notebooks``, ``labs`` and, unless they were removed, ``solutions``.
    own
        An instructor's labs from another folder.
    """

    root: Path
    own: OwnLabs = field(default_factory=OwnLabs)

    @staticmethod
    def is_in(folder: Path) -> bool:
        """Return whether a folder holds a course's files."""
        return all((folder / name).is_dir() for name in FOLDERS)

    def files(self) -> dict[str, Path]:
        """Return chapters, labs, everything beside them, and what there is to look things up: name → file, in order.

        A name is a path within the course: ``labs/NN_chapter/NN_lab.ipynb``.
        """
        references = {name: self.root / name for name in REFERENCES if (self.root / name).is_file()}
        return {name: path for folder in FOLDERS for name, path in self._below(folder)} | references | self._own("labs")

    def solutions(self) -> dict[str, Path]:
        """Return solutions and the modules beside them, by name. Empty in a course without solutions."""
        return dict(self._below(SOLUTIONS)) | self._own(SOLUTIONS)

    def _own(self, folder: str) -> dict[str, Path]:
        return {name: path for name, path in self.own.files.items() if name.startswith(f"{folder}/")}

    @cached_property
    def _chapters(self) -> dict[str, str]:
        """Each lab's chapter, in the order of the list at the chapter's end; labs that it doesn't name come last."""
        labs = {path.stem: path.parent.name for path in sorted((self.root / "labs").glob("*/*.ipynb"))}
        named: list[str] = []
        for chapter in sorted((self.root / "notebooks").glob("*.ipynb")):
            links = re.findall(rf"labs/{chapter.stem}/(\w+)\.ipynb", chapter.read_text(encoding="utf-8"))
            named += reversed(dict.fromkeys(stem for stem in reversed(links) if stem in labs))  # the text names them, too
        place = {stem: number for number, stem in enumerate(named)}
        course = {stem: labs[stem] for stem in sorted(labs, key=lambda stem: (labs[stem], place.get(stem, len(place))))}
        return course | dict.fromkeys(self.own.stems, OWN)

    def lab_stems(self) -> list[str]:
        """Return the stems of all labs by chapter, and within one in the order of the list at its end. Own ones come last."""
        return list(self._chapters)

    def chapter_of(self, stem: str) -> str:
        """Return the chapter (``02_cluster_failover``) of a lab, by the lab's stem: the name of its folder in ``labs``."""
        return self._chapters[stem]

    @cached_property
    def chapter_titles(self) -> dict[str, str]:
        """Each chapter (``02_cluster_failover``) with the heading of its notebook, in order."""
        return {path.stem: outline(path).title for path in sorted((self.root / "notebooks").glob("*.ipynb"))}

    def lab_facts(self, stem: str) -> LabFacts:
        """Return what a lab's notebook says of itself.

        Raises
        ------
        KafkaLabError
            If it lacks something.
        """
        name = f"labs/{self.chapter_of(stem)}/{stem}.ipynb"
        path = self.own.files.get(name, self.root / name)
        facts: dict[str, Any] = json.loads(path.read_bytes())["metadata"].get("kafkalab", {})
        try:
            return LabFacts(**facts)
        except TypeError as error:
            raise KafkaLabError(f"the metadata of {path.name} has no complete `kafkalab`: {error}") from error

    def _below(self, folder: str) -> list[tuple[str, Path]]:
        # A README at the top is for authors: it explains where the files come from.
        paths = (path for path in files_below(self.root / folder) if path != self.root / folder / "README.md")
        return [(path.relative_to(self.root).as_posix(), path) for path in paths]

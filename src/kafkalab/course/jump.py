"""Copies of chapters that begin with a later section.

What the section builds on stands in a single cell before it. A static analysis finds what that is, by the names that the
section and all later ones use. It can't see what cells do outside the notebook, such as to a topic. So a cell's metadata may
say, under ``kafkalab``, which is the last section that builds on what it does there: ``{"needed_until": 9}``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePath
from typing import Any

from kafkalab.course.content import Content
from kafkalab.course.dependencies import Code, Needs, ended_by, needs
from kafkalab.course.names import find_notebook
from kafkalab.course.sections import Section, sections
from kafkalab.errors import KafkaLabError

__all__ = ["Jump", "find_jump"]


@dataclass(frozen=True)
class Jump:
    """A copy of a chapter that begins with one of its sections.

    Attributes
    ----------
    chapter
        The chapter's notebook.
    section
        The section.
    """

    chapter: Path
    section: Section

    @property
    def name(self) -> str:
        """The copy's name in the course's layout, beside the chapter."""
        return f"notebooks/{self.chapter.stem}-from-{self.section.number}.ipynb"

    @cached_property
    def needs(self) -> Needs:
        """What must run first. Its numbers are those of the chapter's cells of code, without the others."""
        start = sum(number < self.section.cells.start for number, _ in self._code)
        marks = {place: self._cells[number]["metadata"].get("kafkalab", {}) for place, (number, _) in enumerate(self._code)}
        until = {place: facts["needed_until"] for place, facts in marks.items() if "needed_until" in facts and place < start}
        also = {place for place, last in until.items() if last >= self.section.number}
        return needs([code for _, code in self._code], start, also=also, never=until.keys() - also, ends=False)

    @cached_property
    def first_cell(self) -> str:
        """The code that must run first, or nothing."""
        parts = [self._code[place][1].part(chosen) for place, chosen in self.needs.parts.items()]
        done = f'print("You are at the beginning of section {self.section.number}.")'
        return "\n\n".join([*parts, done]) if parts else ""

    def notebook(self) -> bytes:
        """Return the copy, as nbformat writes it, without outputs."""
        whole = json.loads(self.chapter.read_bytes())
        whole["cells"] = [*self._front(), *self._rest()]
        return (json.dumps(whole, ensure_ascii=False, indent=1, sort_keys=True) + "\n").encode()

    @cached_property
    def _cells(self) -> list[dict[str, Any]]:
        cells: list[dict[str, Any]] = json.loads(self.chapter.read_bytes())["cells"]
        return cells

    @cached_property
    def _code(self) -> list[tuple[int, Code]]:
        return [(n, Code("".join(cell["source"]))) for n, cell in enumerate(self._cells) if cell["cell_type"] == "code"]

    def _front(self) -> Iterator[dict[str, Any]]:
        number = self.section.number
        title = "".join(self._cells[0]["source"]).split("\n")[0]
        run = "Run the next cell. It starts what this section builds on, and does what it needs of the earlier ones."
        text = [
            f"{title}: from section {number}",
            f"This copy begins with section {number}. [The whole chapter]({self.chapter.name}) stays as it is.",
            "## Where you are",
            f"{run} Then go on below it." if self.first_cell else "This section needs nothing of the earlier ones.",
        ]
        yield {"cell_type": "markdown", "id": "jump", "metadata": {}, "source": "\n\n".join(text)}
        if self.first_cell:
            # Its code is long, and a reader knows it. Its output may be, too.
            folded = {"jupyter": {"source_hidden": True}, "scrolled": True}
            yield _code_cell("jump-here", folded, self.first_cell)

    def _rest(self) -> Iterator[dict[str, Any]]:
        there = {
            name
            for place, chosen in self.needs.parts.items()
            for statement in chosen
            for name in self._code[place][1].statements[statement].makes
        }
        code = dict(self._code)
        for number, cell in enumerate(self._cells[self.section.cells.start :], self.section.cells.start):
            if cell["cell_type"] != "code":
                yield cell
                continue
            source = code[number].source
            for statement in code[number].statements:
                if (name := ended_by(statement)) and name not in there:  # what was never started needn't be ended
                    source = re.sub(rf"^{name}\.\w+\(\).*\n?", "", source, count=1, flags=re.MULTILINE)
                there |= statement.makes
            if source := source.rstrip("\n"):
                yield _code_cell(cell["id"], cell["metadata"], source)


def find_jump(name: str, section: int, content: Content) -> Jump:
    """Return the copy of a chapter that begins with a section.

    Raises
    ------
    KafkaLabError
        If there is no such chapter, or it has no such section. The message lists those that there are.
    """
    notebook = find_notebook(name, content)
    stem = PurePath(notebook).stem
    if not notebook.startswith("notebooks/"):
        raise KafkaLabError(f"{stem} is a lab, and only chapters have sections; `kafkalab lab {stem}` opens it")
    chapter = content.files()[notebook]
    there = sections(chapter)
    for found in there:
        if found.number == section:
            return Jump(chapter, found)
    listed = "\n".join(f"  {found.heading} ({found.mark})" for found in there)
    raise KafkaLabError(f"{stem} has no section {section}. It has\n{listed}")


def _code_cell(id: str, metadata: dict[str, Any], source: str) -> dict[str, Any]:
    return {"cell_type": "code", "execution_count": None, "id": id, "metadata": metadata, "outputs": [], "source": source}

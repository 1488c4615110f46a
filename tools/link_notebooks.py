"""Writes the links between notebooks into notebooks/ and solutions/.

``python tools/link_notebooks.py`` writes them. ``python tools/link_notebooks.py --check`` only says what differs (exit 1).

A chapter gets a table of contents below its title, with the chapters before and after it and the labs where they belong, and
a line at its end. A lab gets one line below its title. These cells have the tag ``navigation`` and are written anew each time.
Nothing else in a notebook changes.

A lab belongs after the last section of its chapter that it needs. That stands in its metadata, under ``kafkalab``. A cell with
the tag ``rest`` is a good place to stop, chosen by the author. It stands before a section's heading, and the table names it.
"""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent

NAVIGATION, REST = "navigation", "rest"

SECTION = re.compile(r"(?m)^## ((\d+) · .+)$")


@dataclass(frozen=True)
class Notebook:
    """A chapter's notebook, or a lab's solution."""

    path: Path

    @cached_property
    def content(self) -> dict[str, Any]:
        return json.loads(self.path.read_text(encoding="utf-8"))  # type: ignore[no-any-return]

    @property
    def own_cells(self) -> list[dict[str, Any]]:
        """Its cells without those that are written here."""
        return [cell for cell in self.content["cells"] if NAVIGATION not in tags(cell)]

    @property
    def title(self) -> str:
        return "".join(self.own_cells[0]["source"]).split("\n")[0].removeprefix("# ")

    def with_cells(self, cells: list[dict[str, Any]]) -> str:
        return json.dumps({**self.content, "cells": cells}, indent=1, ensure_ascii=False) + "\n"


class Lab(Notebook):
    """A lab, which is written in its solution."""

    @property
    def minutes(self) -> int:
        return self.content["metadata"]["kafkalab"]["minutes"]  # type: ignore[no-any-return]

    @property
    def needs(self) -> str:
        return self.content["metadata"]["kafkalab"]["needs"]  # type: ignore[no-any-return]

    def link(self, folder: str, text: str) -> str:
        """A link to the lab. A solution links labs, too: the reader has them, but not each solution."""
        return f"[{text}]({folder}/labs/{self.path.parent.name}/{self.path.name})"


class Chapter(Notebook):
    """A chapter."""

    @property
    def name(self) -> str:
        return f"Chapter {int(self.path.stem[:2])}: {self.title}"

    @cached_property
    def labs(self) -> list[Lab]:
        """Its labs, in the order of the list at its end."""
        solutions = {path.stem: path for path in sorted((ROOT / "solutions" / self.path.stem).glob("*.ipynb"))}
        text = "\n".join("".join(cell["source"]) for cell in self.own_cells)
        links = re.findall(rf"labs/{self.path.stem}/(\w+)\.ipynb", text)
        place = {stem: number for number, stem in enumerate(links)}  # the last link counts: sections name labs, too
        return [Lab(solutions[stem]) for stem in sorted(solutions, key=lambda stem: (place.get(stem, len(links)), stem))]

    @cached_property
    def sections(self) -> dict[int, str]:
        """The headings of its sections, by number."""
        texts = ["".join(cell["source"]) for cell in self.own_cells if cell["cell_type"] == "markdown"]
        return {int(number): heading for text in texts for heading, number in SECTION.findall(text)}

    @property
    def rests(self) -> set[int]:
        """The sections after which there is a good place to stop."""
        after = set()
        for cell, following in zip(self.own_cells, self.own_cells[1:], strict=False):
            if REST in tags(cell):
                heading = SECTION.match("".join(following["source"]))
                if not heading:
                    sys.exit(f"{self.path.name}: no section begins after the cell {cell['id']}, which is a place to stop")
                after.add(int(heading[2]) - 1)
        return after

    def section_of(self, lab: Lab) -> int:
        """The last section that a lab needs: that of another lab which it needs, or of the chapter's text, or the last one."""
        number = self.path.stem[:2]
        if named := re.search(rf"chapter {number}, sections? ([\d, to and]*\d)(?! *GB)", lab.needs):
            return max(map(int, re.findall(r"\d+", named[1])))
        if f"chapter {number}" not in lab.needs:
            before = [other for other in self.labs if re.search(rf"\b{other.path.stem}\b", lab.needs)]
            if before:
                return max(map(self.section_of, before))
        return max(self.sections)


def tags(cell: dict[str, Any]) -> list[str]:
    return cell["metadata"].get("tags", [])  # type: ignore[no-any-return]


def navigation(name: str, text: str) -> dict[str, Any]:
    """A cell of links."""
    return {
        "cell_type": "markdown",
        "id": f"{NAVIGATION}-{name}",
        "metadata": {"tags": [NAVIGATION]},
        "source": text.splitlines(keepends=True),
    }


def anchor(heading: str) -> str:
    """The id of a heading in its page, as JupyterLab and nbconvert make it: spaces become hyphens."""
    return heading.replace("`", "").replace(" ", "-")


def linked_chapter(chapter: Chapter, before: Chapter | None, after: Chapter | None) -> str:
    """The text of a chapter's notebook with its links."""
    ways = []
    if before:
        ways.append(f"[← {before.name}]({before.path.name})")
    if after:
        ways.append(f"[{after.name} →]({after.path.name})")
    contents = []
    for number, heading in chapter.sections.items():
        rest = " · a good place to stop" if number in chapter.rests else ""
        contents.append(f"{number}. [{heading.partition(' · ')[2]}](#{anchor(heading)}){rest}")
        for lab in chapter.labs:
            if chapter.section_of(lab) == number:
                contents.append(f"    - Lab, {lab.minutes} minutes: {lab.link('..', lab.title)}")
    first, *others = chapter.own_cells
    front = navigation("contents", "\n\n".join([" · ".join(ways), "**In this chapter**", "\n".join(contents)]))
    end = (
        f"Next: [{after.name} →]({after.path.name})"
        if after
        else "This was the last chapter. The labs are all in the list at its top."
    )
    return chapter.with_cells([first, front, *others, navigation("next", end)])


def linked_lab(lab: Lab, chapter: Chapter, before: Lab | None, after: Lab | None) -> str:
    """The text of a solution's notebook with its links."""
    place = chapter.labs.index(lab) + 1
    parts = [
        f"Lab {place} of {len(chapter.labs)} of [chapter {int(chapter.path.stem[:2])}](../../notebooks/{chapter.path.name})"
    ]
    if before:
        parts.append(before.link("../..", f"← {before.title}"))
    if after:
        parts.append(after.link("../..", f"{after.title} →"))
    first, *others = lab.own_cells
    return lab.with_cells([first, navigation("lab", " · ".join(parts)), *others])


def linked() -> dict[Path, str]:
    """The texts that the notebooks should have."""
    chapters: list[Chapter] = [Chapter(path) for path in sorted((ROOT / "notebooks").glob("*.ipynb"))]
    labs = [(chapter, lab) for chapter in chapters for lab in chapter.labs]
    texts = {}
    for before, chapter, after in zip([None, *chapters], chapters, [*chapters[1:], None], strict=False):
        texts[chapter.path] = linked_chapter(chapter, before, after)
    for (_, before_lab), (chapter, lab), (_, after_lab) in zip(
        [(None, None), *labs], labs, [*labs[1:], (None, None)], strict=False
    ):
        texts[lab.path] = linked_lab(lab, chapter, before_lab, after_lab)
    return texts


def main(check: bool) -> int:
    """Write the notebooks whose links aren't as they should be, or only name them; return how many there are."""
    differ = {path: text for path, text in linked().items() if path.read_text(encoding="utf-8") != text}
    for path, text in differ.items():
        print(("differs: " if check else "written: ") + str(path.relative_to(ROOT)))
        if not check:
            path.write_text(text, encoding="utf-8")
    return len(differ)


if __name__ == "__main__":
    only_check = "--check" in sys.argv[1:]
    sys.exit(1 if main(only_check) and only_check else 0)

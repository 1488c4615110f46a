"""The sections of a chapter: which of its cells they have, how long they take, and whether somebody may skip them.

A section begins with a cell whose first line is its heading, ``## 4 · …``. That cell's metadata say the rest, under
``kafkalab``: ``{"minutes": 5, "section": "core"}``.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from kafkalab.errors import KafkaLabError

__all__ = ["MARKS", "Section", "sections"]

MARKS = ("core", "extra", "skip-safe")

_HEADING = re.compile(r"## (\d+) · .+")


@dataclass(frozen=True)
class Section:
    """A section of a chapter.

    Attributes
    ----------
    number
        Its number.
    heading
        Its heading, with the number: ``"4 · Put three consumers into one group"``.
    mark
        ``core``: everybody does it, and it needs only other core sections. ``extra``: worth the time if there is some.
        ``skip-safe``: extra, and no later section needs it or refers to it.
    minutes
        About how long it takes.
    needs
        Numbers of earlier sections that aren't core, but that it needs.
    cells
        The numbers of its cells in the notebook.
    """

    number: int
    heading: str
    mark: str
    minutes: int
    needs: tuple[int, ...]
    cells: range


def sections(path: Path) -> tuple[Section, ...]:
    """Return the sections of a chapter's notebook, in order.

    Raises
    ------
    KafkaLabError
        If the file is no notebook that can be read, or a section has no mark.
    """
    try:
        cells = json.loads(path.read_bytes())["cells"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise KafkaLabError(f"{path} can't be read as a notebook: {error}") from error
    first_lines = ["".join(cell["source"]).split("\n")[0] if cell["cell_type"] == "markdown" else "" for cell in cells]
    begins = [number for number, line in enumerate(first_lines) if line.startswith("## ")] + [len(cells)]
    return tuple(
        _section(path, begin, end, cells[begin], heading[0].removeprefix("## "))
        for begin, end in pairwise(begins)
        if (heading := _HEADING.match(first_lines[begin]))
    )


def _section(path: Path, begin: int, end: int, cell: dict[str, Any], heading: str) -> Section:
    facts = cell["metadata"].get("kafkalab", {})
    if facts.get("section") not in MARKS or not isinstance(facts.get("minutes"), int):
        raise KafkaLabError(
            f"{path.name}: the heading cell of section {heading} has no mark; its metadata need"
            f' {{"kafkalab": {{"minutes": 5, "section": "core"}}}}, with one of {", ".join(MARKS)}'
        )
    number = int(heading.split(" ")[0])
    return Section(number, heading, facts["section"], facts["minutes"], tuple(facts.get("needs", ())), range(begin, end))

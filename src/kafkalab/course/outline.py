"""What a notebook tells of itself: title, time, sections, and how far somebody ran it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Outline", "outline"]

_SECTION = re.compile(r"^## (\d+ · .+)$", re.MULTILINE)
_MINUTES = re.compile(r"\*\*Time:\*\* (?:about )?(\d+) minutes")


@dataclass(frozen=True)
class Outline:
    """The outline of a notebook.

    Attributes
    ----------
    title
        Its first heading.
    minutes
        How long it takes, as its first cell says, or None if it says nothing.
    sections
        The headings of its numbered sections: ``"1 · Start three brokers"``.
    reached
        The number of sections up to the cell that was run last. None if no cell was run, 0 if only cells before the first
        section were.
    finished
        Whether the cell that was run last comes after the last section, or is the last one of it.
    """

    title: str
    minutes: int | None
    sections: tuple[str, ...]
    reached: int | None
    finished: bool


def outline(path: Path) -> Outline:
    """Return the outline of a notebook.

    Raises
    ------
    OSError, ValueError
        If the file can't be read, or isn't a notebook.
    """
    try:
        cells = [(cell["cell_type"], "".join(cell["source"]), cell) for cell in json.loads(path.read_bytes())["cells"]]
    except (KeyError, TypeError) as error:
        raise ValueError(f"{path} is no notebook") from error
    front = cells[0][1] if cells else ""
    minutes = _MINUTES.search(front)
    sections = tuple(heading for _, heading in _sections(cells))
    ran = [(cell["execution_count"], number) for number, (kind, _, cell) in enumerate(cells) if _was_run(kind, cell)]
    last = max(ran)[1] if ran else None
    reached = None if last is None else sum(number < last for number, _ in _sections(cells))
    code = [number for number, (kind, *_) in enumerate(cells) if kind == "code"]
    # The cells at the end stop the cluster and show the quiz, so the last section may be done before they are.
    end = max((number for number in code if number < _end(cells)), default=None)
    return Outline(
        title=front.split("\n")[0].removeprefix("# "),
        minutes=int(minutes[1]) if minutes else None,
        sections=sections,
        reached=reached,
        finished=last is not None and end is not None and last >= end,
    )


def _sections(cells: list[tuple[str, str, Any]]) -> Iterator[tuple[int, str]]:
    for number, (kind, text, _) in enumerate(cells):
        if kind == "markdown":
            for heading in _SECTION.findall(text):
                yield number, heading


def _was_run(kind: str, cell: Any) -> bool:
    return kind == "code" and isinstance(cell.get("execution_count"), int)


def _end(cells: list[tuple[str, str, Any]]) -> int:
    """Return the number of the cell after the sections: the first whose heading has no number, after one that has."""
    numbers = [number for number, _ in _sections(cells)]
    after = [
        n for n, (kind, text, _) in enumerate(cells) if kind == "markdown" and numbers and n > numbers[-1] and "## " in text
    ]
    return after[0] if after else len(cells)

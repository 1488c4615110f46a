"""What a notebook tells of itself: title, time, sections, and how far somebody ran it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kafkalab.course.outline import outline

CELLS: list[str | tuple[str]] = [
    "# Play games\n\n**Time:** 30 minutes; the cells run for 5 seconds.",
    ("import games",),
    "## 1 · Dice",
    ("dice()",),
    "Chess has no dice.\n\n## 2 · Chess",
    ("chess()",),
    "## 3 · Words",
    "## What you saw",
    ("stop()",),
]


def write(path: Path, **ran: int) -> Path:
    """A notebook in which some cells, named by their function, were run in that order."""
    cells = []
    for cell in CELLS:
        if isinstance(cell, str):
            cells.append({"cell_type": "markdown", "source": cell.splitlines(keepends=True)})
        else:
            count = ran.get(cell[0].removesuffix("()"))
            cells.append({"cell_type": "code", "source": [cell[0]], "execution_count": count, "outputs": []})
    path.write_text(json.dumps({"cells": cells}))
    return path


def test_title_time_and_sections(tmp_path: Path) -> None:
    found = outline(write(tmp_path / "games.ipynb"))
    assert (found.title, found.minutes) == ("Play games", 30)
    assert found.sections == ("1 · Dice", "2 · Chess", "3 · Words")
    assert (found.reached, found.finished) == (None, False)


@pytest.mark.parametrize(
    ("ran", "reached", "finished"),
    [
        ({"import games": 1}, 0, False),
        ({"dice": 2}, 1, False),
        ({"chess": 2, "dice": 3}, 1, False),  # somebody went back
        ({"dice": 2, "chess": 3}, 2, True),  # the last section has no cells to run
        ({"stop": 4}, 3, True),
    ],
)
def test_how_far_it_was_run(ran: dict[str, int], reached: int, finished: bool, tmp_path: Path) -> None:
    found = outline(write(tmp_path / "games.ipynb", **ran))
    assert (found.reached, found.finished) == (reached, finished)


@pytest.mark.parametrize("text", ["", "no JSON", "[]", "{}", '{"cells": [1]}'])
def test_what_is_no_notebook(text: str, tmp_path: Path) -> None:
    (tmp_path / "games.ipynb").write_text(text)
    with pytest.raises(ValueError):
        outline(tmp_path / "games.ipynb")

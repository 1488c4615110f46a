"""Code that a learner reads fits the column of text: no line wraps, and a cell is seen at a glance."""

from __future__ import annotations

from pathlib import Path

import pytest

import new_lab
from notebook_support import NOTEBOOKS, code_cells

ROOT = Path(__file__).parents[2]
MOST_COLUMNS, MOST_LINES = 76, 15
MOST_LINES_SOLVED = 22  # with the answer that the learner writes, and the two marks around it
BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"


def visible_code(path: Path) -> list[tuple[str, list[str]]]:
    """The id and the lines of each cell of code whose source isn't folded."""
    shown = [cell for cell in code_cells(path) if not cell["metadata"].get("jupyter", {}).get("source_hidden")]
    return [(cell["id"], "".join(cell["source"]).split("\n")) for cell in shown]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_line_of_code_wraps(path: Path) -> None:
    wide = [f"{id}: {line}" for id, lines in visible_code(path) for line in lines if len(line) > MOST_COLUMNS]
    assert not wide, "\n".join(wide)


def without_answers(lines: list[str]) -> list[str]:
    """The lines that a lab shows."""
    shown, answer = [], False
    for line in lines:
        answer = line.strip() == BEGIN or (answer and line.strip() != END)
        if not answer and line.strip() != END:
            shown.append(line)
    return shown


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_cell_is_short(path: Path) -> None:
    cells = visible_code(path)
    assert not {id: len(lines) for id, lines in cells if len(without_answers(lines)) > MOST_LINES}
    assert not {id: len(lines) for id, lines in cells if len(lines) > MOST_LINES_SOLVED}


def test_what_a_lab_shows_is_told_from_the_answer() -> None:
    assert without_answers(["def f():", f"    {BEGIN}", "    return 1", f"    {END}", "f()"]) == ["def f():", "f()"]


def test_a_new_lab_begins_narrow() -> None:
    assert [line for line in f"{new_lab.START}\n{new_lab.DO}".split("\n") if len(line) > MOST_COLUMNS] == []

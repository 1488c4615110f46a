"""What only instructors see reaches no lab, no workspace, no bundle and no page of the site."""

from __future__ import annotations

import json
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

import make_site
from kafkalab.course import Content, Workspace
from kafkalab.course.versions import INSTRUCTOR, Version
from make_handouts import _lab
from make_labs import lab_of
from notebook_support import NOTEBOOKS

SECRET = "Ask who predicted 45 s."
FACTS = {"difficulty": "easy", "minutes": 5, "needs": "nothing"}


@pytest.fixture
def solution(tmp_path: Path) -> Path:
    """A lab's solution with cells for instructors, text and code."""
    cells = [
        new_markdown_cell("# Lab\n\n**What you'll learn.** It.\n\nBegin."),
        new_markdown_cell(SECRET, metadata={"tags": [INSTRUCTOR]}),
        new_code_cell(f'print("{SECRET}")', metadata={"tags": ["x", INSTRUCTOR]}),
        new_code_cell("### BEGIN SOLUTION\nanswer = 1\n### END SOLUTION"),
    ]
    path = tmp_path / "solutions/02_play/02_lab.ipynb"
    path.parent.mkdir(parents=True)
    nbformat.write(new_notebook(cells=cells, metadata={"kafkalab": FACTS}), path)
    return path


def test_a_lab_does_not_get_them(solution: Path) -> None:
    lab = lab_of(solution)
    assert SECRET not in lab and len(json.loads(lab)["cells"]) == 2 and "# YOUR CODE HERE" in lab


def test_a_workspace_does_not_get_them_from_chapters_and_solutions(solution: Path, tmp_path: Path) -> None:
    assert SECRET.encode() not in Version.for_learners(solution).data
    for name in ("notebooks/02_play.ipynb", "labs/02_play/02_lab.ipynb"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_bytes(solution.read_bytes())
    mine = Workspace(tmp_path / "mine", Content(tmp_path))
    mine.update()
    mine.solution("02_lab")
    copies = list(mine.folder.rglob("*.ipynb"))
    assert len(copies) == 3 and not [path for path in copies if SECRET in path.read_text()]


def test_the_site_does_not_get_them(solution: Path, tmp_path: Path) -> None:
    make_site._lay_out(solution, tmp_path / "page.ipynb")
    assert SECRET not in (tmp_path / "page.ipynb").read_text()


def test_answers_on_paper_have_them(solution: Path, tmp_path: Path) -> None:
    (tmp_path / "labs/02_play").mkdir(parents=True)
    (tmp_path / "labs/02_play/02_lab.ipynb").write_text(lab_of(solution))
    (tmp_path / "notebooks").mkdir()
    content = Content(tmp_path)
    assert SECRET in "".join(_lab(content, "02_lab", True)) and SECRET not in "".join(_lab(content, "02_lab", False))


def test_no_lab_of_this_course_has_one() -> None:
    labs = list(NOTEBOOKS[0].parents[1].glob("labs/*/*.ipynb"))
    assert len(labs) > 60
    for path in labs:
        assert INSTRUCTOR not in {
            tag for cell in json.loads(path.read_bytes())["cells"] for tag in cell["metadata"].get("tags", ())
        }

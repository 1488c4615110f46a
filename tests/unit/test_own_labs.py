"""An instructor's own labs appear beside the course's, and whatever is wrong with them, the course goes on."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkalab.checks import check, find_check, find_lab, hint, labs
from kafkalab.cli import home_server
from kafkalab.course import Course, Workspace, find_course
from kafkalab.course.first_page import first_page
from kafkalab.errors import KafkaLabError
from kafkalab.progress import LabProgress, ProgressRecord
from kafkalab.widgets import LabCard
from widget_support import FakeCluster, html

EXAMPLE = Path(__file__).parents[2] / "docs/teach/own-labs"
LAB = "labs/own/02_leaders.ipynb"
BARE = {"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The example's folder, to edit."""
    folder = shutil.copytree(EXAMPLE, tmp_path / "own")
    monkeypatch.setenv("KAFKALAB_LABS", str(folder))
    for user in ("kafkalab.checks.lab", "kafkalab.course.workspace", "kafkalab.course", "kafkalab.cli.home_server"):
        monkeypatch.setattr(f"{user}.find_course", find_course.__wrapped__)
    yield folder
    for name in [name for name in sys.modules if name.startswith("kafkalab_own_labs")]:
        del sys.modules[name]


def the_course() -> Course:
    return find_course.__wrapped__()


def problem() -> str:
    [sentence] = the_course().problems()
    return sentence


def test_they_are_labs_like_the_courses(folder: Path) -> None:
    content = the_course().content
    assert content.lab_stems()[-1] == "02_leaders" and content.chapter_of("02_leaders") == "own"
    assert content.lab_facts("02_leaders").minutes == 10
    assert find_check("02_leaders") is find_lab("02_leaders").checks[0]
    assert find_lab("02_failsafe").checks
    assert not the_course().problems()


def test_card_check_and_hints_work(folder: Path, cluster: FakeCluster, capsys: pytest.CaptureFixture[str]) -> None:
    assert "easy · about 10 minutes · needs chapter 02" in html(LabCard("02_leaders"))
    check("02_leaders", cluster)
    assert "✗ orders has 3 partitions with 3 replicas each" in capsys.readouterr().out
    hint("02_leaders")
    assert "How many partitions does it take" in capsys.readouterr().out


def test_the_workspace_has_them_without_checks_and_solutions(folder: Path, tmp_path: Path) -> None:
    (folder / "data").mkdir()
    (folder / "data/orders.csv").write_text("1,2\n")
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__/x.pyc").touch()
    (folder / "README.md").write_text("for authors")
    mine = Workspace(tmp_path / "mine", the_course().content)
    mine.update()
    names = sorted(path.relative_to(mine.folder).as_posix() for path in (mine.folder / "labs/own").rglob("*") if path.is_file())
    assert names == [LAB, "labs/own/data/orders.csv"]
    assert mine.open("leaders") == mine.folder / LAB
    path, _ = mine.solution("02_leaders")
    assert path == mine.folder / "solutions/own/02_leaders.ipynb" and "create_topics" in path.read_text()


def test_the_home_page_has_a_part_for_them(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = the_course().content
    page = first_page(content, tmp_path, ProgressRecord())
    assert page.own and page.own.title == "Labs of your class"
    [lab] = page.own.labs
    assert (lab.path, lab.title, lab.minutes, lab.passed) == (LAB, "Give each broker a partition to lead", 10, False)
    assert "own" not in {Path(lab.path).parent.name for chapter in page.chapters for lab in chapter.labs}
    record = ProgressRecord(labs={"02_leaders": LabProgress(True, 1, "2026-01-01T00:00:00+00:00")})
    assert first_page(content, tmp_path, record).own.labs[0].passed
    Workspace(tmp_path / "mine", content).update()
    notebook = json.loads((tmp_path / "mine" / LAB).read_text())
    notebook["cells"][1]["execution_count"] = 1
    (tmp_path / "mine" / LAB).write_text(json.dumps(notebook))
    assert first_page(content, tmp_path / "mine", ProgressRecord()).go_on.path == LAB
    assert first_page(content, tmp_path / "mine", record).go_on.path == "notebooks/00_start_here.ipynb"
    monkeypatch.setenv("KAFKALAB_WORKSPACE", str(tmp_path / "mine"))
    (folder / "02_failsafe.ipynb").write_text(json.dumps(BARE))
    assert "the course has a lab 02_failsafe" in home_server._page().problems[0]


def test_without_the_variable_there_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KAFKALAB_LABS", raising=False)
    assert not the_course().content.own.stems and not the_course().problems()
    assert first_page(the_course().content, tmp_path, ProgressRecord()).own is None


# -- what is wrong is said, once, and the course goes on --------------------------------------------------------------


def test_there_is_no_such_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKALAB_LABS", str(tmp_path / "nowhere"))
    assert "nowhere, and there is no such folder" in problem()
    assert "02_failsafe" in the_course().content.lab_stems()


def test_there_is_no_notebook(folder: Path) -> None:
    for path in folder.glob("02_leaders.*"):
        path.unlink()
    assert "there is no notebook in it" in problem()


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("02_failsafe.ipynb", json.dumps(BARE), "the course has a lab 02_failsafe. Give yours another name"),
        ("leaders.ipynb", json.dumps(BARE), "begins with the number of its chapter"),
        ("90_leaders.ipynb", json.dumps(BARE), "There are chapters 00 to 12"),
        ("02_torn.ipynb", "{", "can't be read as a notebook"),
        ("02_list.ipynb", "[]", "can't be read as a notebook"),
        ("02_lonely.py", "", "has the checks of no lab: 02_lonely.ipynb isn't beside it"),
        ("02_leaders.py", "def", "The checks of 02_leaders can't be loaded: .*invalid syntax"),
        ("labs.toml", "title =", "labs.toml can't be read"),
        ("labs.toml", 'kafkalab = "0.0.1"', r"were tried with kafkalab 0\.0\.1, and \d"),
    ],
)
def test_one_file_is_wrong(folder: Path, name: str, text: str, says: str) -> None:
    (folder / name).write_text(text)
    assert re.search(says, problem())
    assert the_course().content.own.stems == ["02_leaders"]


@pytest.mark.parametrize(
    ("module", "says"),
    [
        ("def", "SyntaxError"),
        ("import nothing_of_that_name", "ModuleNotFoundError: No module named 'nothing_of_that_name'"),
        ("lab = 1", 'it needs lab = Lab\\("02_leaders"\\)'),
        ("", 'it needs lab = Lab\\("02_leaders"\\)'),
        ("from kafkalab.checks import Lab\nlab = Lab('02_other')", 'it needs lab = Lab\\("02_leaders"\\)'),
        (
            "from kafkalab.checks import Lab\nlab = Lab('02_leaders')\nlab.add_check('02_failsafe', 'x', hints=())",
            "the check 02_failsafe should be called 02_leaders or 02_leaders_something",
        ),
    ],
)
def test_a_broken_module_is_named_and_other_checks_go_on(folder: Path, module: str, says: str) -> None:
    (folder / "02_leaders.py").write_text(module)
    for ask in (find_lab, find_check, LabCard):
        with pytest.raises(KafkaLabError, match=f"the checks of 02_leaders can't be loaded: .*{says}"):
            ask("02_leaders")
    assert find_check("02_failsafe").id == "02_failsafe"
    assert "02_leaders" not in labs("02")


def test_a_lab_may_have_no_checks(folder: Path, tmp_path: Path) -> None:
    (folder / "02_leaders.py").unlink()
    assert not the_course().problems()
    for ask in (find_check, LabCard):
        with pytest.raises(KafkaLabError, match=r"02_leaders has no checks.*02_leaders\.py, beside the notebook"):
            ask("02_leaders")
    assert not first_page(the_course().content, tmp_path, ProgressRecord()).own.labs[0].passed
    with pytest.raises(KafkaLabError, match="no chapter or lab 'nothing'"):
        Workspace(tmp_path / "mine", the_course().content).open("nothing")


def test_the_example_is_a_lab_and_its_solution_solves_it() -> None:
    """Both have the same cells but for the learner's."""
    lab, solution = (json.loads((EXAMPLE / name / "02_leaders.ipynb").read_text())["cells"] for name in ("", "solutions"))
    assert [cell["id"] for cell in lab] == [cell["id"] for cell in solution]
    assert [cell["id"] for cell, other in zip(lab, solution, strict=True) if cell != other] == ["code"]

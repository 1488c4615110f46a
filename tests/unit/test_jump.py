"""Sections' marks, and copies of chapters that begin with a later section."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import nbformat
import pytest

from kafkalab import cli
from kafkalab.cli import jump as command
from kafkalab.course import Content, Course, Workspace, find_course
from kafkalab.course.dependencies import Code, needs
from kafkalab.course.jump import Jump, find_jump
from kafkalab.course.sections import MARKS, Section, sections
from kafkalab.errors import KafkaLabError
from notebook_support import CHAPTERS, without_sections

JUMPS = [Jump(chapter, section) for chapter in CHAPTERS for section in sections(chapter)]


def code_of(cells: list[dict[str, Any]]) -> list[Code]:
    return [Code("".join(cell["source"])) for cell in cells if cell["cell_type"] == "code"]


def missing_without(chapter: Path, skipped: set[int]) -> frozenset[str]:
    """Names that nobody makes if these sections are skipped."""
    return needs(code_of(without_sections(chapter, skipped)), 0).missing


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_core_sections_and_the_end_need_no_other_section(chapter: Path) -> None:
    assert not missing_without(chapter, {section.number for section in sections(chapter) if section.mark != "core"})


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_a_section_that_is_skipped_leaves_the_others_but_those_that_say_they_need_it(chapter: Path) -> None:
    there = sections(chapter)
    for section in there:
        if section.mark == "core":
            continue
        in_need = {other.number for other in there if section.number in other.needs}
        assert not (in_need and section.mark == "skip-safe")
        assert not missing_without(chapter, {section.number} | in_need), section.heading


@pytest.mark.parametrize("jump", JUMPS, ids=lambda jump: f"{jump.chapter.stem[:2]}-{jump.section.number}")
def test_all_names_that_a_section_and_the_later_ones_need_are_made_before(jump: Jump) -> None:
    assert not jump.needs.missing
    copy = json.loads(jump.notebook())
    assert "".join(copy["cells"][2 if jump.first_cell else 1]["source"]).startswith(f"## {jump.section.heading}")
    assert not any(cell.get("outputs") for cell in copy["cells"])


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_a_copy_has_all_that_its_cells_need(chapter: Path) -> None:
    there = sections(chapter)
    copy = nbformat.reads(Jump(chapter, there[len(there) // 2]).notebook().decode(), 4)
    nbformat.validate(copy)
    assert not needs([Code(cell.source) for cell in copy.cells if cell.cell_type == "code"], 0).missing


def notebook(path: Path, *cells: str | tuple[str, dict[str, object]]) -> Path:
    """A chapter of these cells: those that begin with # are text. A pair is a cell with its metadata under `kafkalab`."""
    made = []
    for number, cell in enumerate(cells):
        source, facts = cell if isinstance(cell, tuple) else (cell, {})
        new = nbformat.v4.new_markdown_cell if source.startswith("#") else nbformat.v4.new_code_cell
        made.append(new(source, id=f"cell-{number}", metadata={"kafkalab": facts} if facts else {}))
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(nbformat.v4.new_notebook(cells=made), path)
    return path


CORE = {"section": "core", "minutes": 5}


@pytest.fixture
def chapter(tmp_path: Path) -> Path:
    return notebook(
        tmp_path / "course/notebooks/03_games.ipynb",
        "# Games",
        ("## 1 · Dice", CORE),
        "import dice\nd = dice.start()",
        ("d.throw()", {"needed_until": 2}),
        "d.look()",
        ("## 2 · Chess", {"section": "extra", "minutes": 7, "needs": [1]}),
        "c = dice.chess()",
        ("## 3 · Words", CORE),
        "print(d)",
        "## What you saw",
        "d.stop()\nc.stop()  # at last",
    )


def jump_to(chapter: Path, number: int) -> Jump:
    return Jump(chapter, sections(chapter)[number - 1])


def test_sections_with_their_marks(chapter: Path) -> None:
    assert sections(chapter)[1] == Section(2, "2 · Chess", "extra", 7, (1,), range(5, 7))
    assert [section.cells for section in sections(chapter)] == [range(1, 5), range(5, 7), range(7, 9)]


@pytest.mark.parametrize("facts", [{}, {"section": "core"}, {"section": "hard", "minutes": 3}])
def test_a_section_without_its_mark(tmp_path: Path, facts: dict[str, object]) -> None:
    path = notebook(tmp_path / "a.ipynb", "# A", ("## 1 · B", facts))
    with pytest.raises(KafkaLabError, match=r"a\.ipynb: the heading cell of section 1 · B has no mark") as raised:
        sections(path)
    assert all(mark in str(raised.value) for mark in MARKS)


def test_a_file_that_is_no_chapter(tmp_path: Path) -> None:
    (tmp_path / "a.ipynb").write_text("{}")
    with pytest.raises(KafkaLabError, match=r"a\.ipynb can't be read as a notebook"):
        sections(tmp_path / "a.ipynb")


def test_the_first_cell_does_what_names_and_marks_say(chapter: Path) -> None:
    assert jump_to(chapter, 1).first_cell == ""
    last = 'print("You are at the beginning of section {}.")'
    assert jump_to(chapter, 2).first_cell == "\n\n".join(["import dice\nd = dice.start()", "d.throw()", last.format(2)])
    assert jump_to(chapter, 3).first_cell == "\n\n".join(["import dice\nd = dice.start()", last.format(3)])


def test_a_copy_begins_with_its_section_and_ends_only_what_there_is(chapter: Path) -> None:
    copy = nbformat.reads(jump_to(chapter, 3).notebook().decode(), 4)
    text, first, heading, *_, end = copy.cells
    assert text.source.startswith("# Games: from section 3\n") and "(03_games.ipynb)" in text.source
    assert "Run the next cell" in text.source
    assert first.metadata.jupyter.source_hidden
    assert heading.source == "## 3 · Words"
    assert end.source == "d.stop()"
    assert nbformat.reads(jump_to(chapter, 2).notebook().decode(), 4).cells[-1].source == "d.stop()\nc.stop()  # at last"


def test_a_section_that_needs_nothing(chapter: Path) -> None:
    text, heading, *_ = json.loads(jump_to(chapter, 1).notebook())["cells"]
    assert text["source"].endswith("This section needs nothing of the earlier ones.")
    assert heading["source"] == ["## 1 · Dice"]


def test_no_such_section_and_no_such_chapter() -> None:
    content = find_course().content
    with pytest.raises(KafkaLabError, match=r"02_cluster_failover has no section 40. It has\n  1 · Start three .* \(core\)\n"):
        find_jump("2", 40, content)
    with pytest.raises(KafkaLabError, match="there is no chapter 77; there are 00_start_here, "):
        find_jump("77", 1, content)
    with pytest.raises(KafkaLabError, match="02_failsafe is a lab, and only chapters have sections"):
        find_jump("02_failsafe", 1, content)


@pytest.fixture
def served(chapter: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """What `kafkalab jump` opens in a JupyterLab of its own."""
    opened: list[Path] = []

    def open_lab(args: object, workspace: object, path: Path) -> int:
        opened.append(path)
        return 0

    monkeypatch.setattr(command, "open_lab", open_lab)
    content = Content(chapter.parents[1])
    (content.root / "labs").mkdir()
    monkeypatch.setattr(command, "find_course", lambda: Course("games", content))
    monkeypatch.setattr(command, "open_workspace", lambda folder: Workspace(folder, content))
    return opened


def test_the_command_makes_a_copy_and_keeps_an_earlier_one(
    tmp_path: Path, served: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    call = ["jump", "03", "--section", "3", "--workspace", str(tmp_path / "mine")]
    assert cli.main(call) == 0
    copy = tmp_path / "mine/notebooks/03_games-from-3.ipynb"
    assert served == [copy] and copy.exists()
    assert "03_games-from-3.ipynb begins with section 3 · Words. Run its first cell" in capsys.readouterr().out
    mine = nbformat.read(copy, 4)
    mine.cells[-1].source = "mine"
    nbformat.write(mine, copy)
    own = (tmp_path / "mine/notebooks/03_games.ipynb").read_bytes()
    assert cli.main(call) == 0
    [kept] = (tmp_path / "mine/notebooks").glob("03_games-from-3.2*.ipynb")
    assert f"is kept in {kept.name}" in capsys.readouterr().out
    assert nbformat.read(kept, 4).cells[-1].source == "mine"
    assert (tmp_path / "mine/notebooks/03_games.ipynb").read_bytes() == own


def test_the_command_opens_no_second_jupyterlab(
    tmp_path: Path, served: list[Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jupyter_server.serverapp.list_running_servers", lambda: [{"root_dir": str(tmp_path / "mine")}])
    assert cli.main(["jump", "03", "--section", "3", "--workspace", str(tmp_path / "mine")]) == 0
    assert not served
    assert "JupyterLab has your workspace open" in capsys.readouterr().out


def test_the_command_changes_nothing_if_there_is_no_such_section(
    tmp_path: Path, served: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["jump", "03", "--section", "9", "--workspace", str(tmp_path / "new")]) == 1
    assert "03_games has no section 9" in capsys.readouterr().err
    assert not served
    assert not (tmp_path / "new").exists()

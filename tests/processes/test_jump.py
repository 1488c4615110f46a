"""Chapters without the sections that may be skipped, and chapters from a later section on, in a kernel."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest

from kafkalab.cli.execution import Outcome, run_notebooks
from kafkalab.course.jump import Jump
from kafkalab.course.sections import sections
from kafkalab.distribution import put_tools_on_path
from notebook_support import CHAPTERS, without_sections

IN_TIME = 30.0
"""Seconds from the start of the kernel to the beginning of the section."""

SHORT = "06_schema_registry"

pytestmark = pytest.mark.cluster


@pytest.fixture(autouse=True)
def on_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKALAB_BACKEND", "local")
    put_tools_on_path()


def chapter_of(stem: str) -> Path:
    [found] = [chapter for chapter in CHAPTERS if chapter.stem == stem]
    return found


def run(path: Path) -> tuple[Outcome, float]:
    """Run a notebook. Return the outcome, and the seconds until its first cell of code had run."""
    began = time.monotonic()
    ready: list[float] = []

    def watch(path: Path, executed: int, total: int) -> None:
        if executed == 1:
            ready.append(time.monotonic() - began)

    [outcome] = run_notebooks([path], at_once=1, cell_timeout=300, watch=watch, done=lambda outcome: None)
    return outcome, ready[0] if ready else float("inf")


def run_core_only(chapter: Path, folder: Path) -> Outcome:
    skipped = {section.number for section in sections(chapter) if section.mark != "core"}
    notebook = nbformat.read(chapter, 4)
    kept = {cell["id"] for cell in without_sections(chapter, skipped)}
    notebook.cells = [cell for cell in notebook.cells if cell.id in kept]
    nbformat.write(notebook, folder / chapter.name)
    return run(folder / chapter.name)[0]


def run_jump(jump: Jump, folder: Path) -> tuple[Outcome, float]:
    """Run a copy up to the end of its section."""
    notebook = nbformat.reads(jump.notebook().decode(), 4)
    begins = [n for n, cell in enumerate(notebook.cells) if cell.cell_type == "markdown" and cell.source.startswith("## ")]
    notebook.cells = notebook.cells[: begins[1]] if len(begins) > 1 else notebook.cells
    path = folder / Path(jump.name).name
    nbformat.write(notebook, path)
    return run(path)


def test_the_core_of_a_chapter_runs_without_the_rest(tmp_path: Path) -> None:
    assert not run_core_only(chapter_of(SHORT), tmp_path).failure


@pytest.mark.at_length
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_the_core_of_each_chapter_runs_without_the_rest(chapter: Path, tmp_path: Path) -> None:
    assert not run_core_only(chapter, tmp_path).failure


def test_a_jump_runs_from_its_section_on(tmp_path: Path, measured: Callable[[str], None]) -> None:
    chapter = chapter_of("00_start_here")
    outcome, seconds = run_jump(Jump(chapter, sections(chapter)[4]), tmp_path)
    assert not outcome.failure
    measured(f"a jump to section 5 of chapter 00 took {seconds:.0f} s beside other tests")  # test_each_jump… has the bound


@pytest.mark.at_length
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    "jump",
    [Jump(chapter, section) for chapter in CHAPTERS for section in sections(chapter)],
    ids=lambda jump: f"{jump.chapter.stem[:2]}-{jump.section.number}",
)
def test_each_jump_is_at_its_section_in_time(jump: Jump, tmp_path: Path) -> None:
    outcome, seconds = run_jump(jump, tmp_path)
    assert not outcome.failure
    assert not jump.first_cell or seconds < IN_TIME, f"{seconds:.0f} s"

"""Work and progress go to another machine in one file."""

from __future__ import annotations

import zipfile
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from kafkalab import progress
from kafkalab.cli.portable import export_work, import_work
from kafkalab.course import Content, Workspace
from kafkalab.errors import KafkaLabError

CHAPTER, LAB = "notebooks/00_start_here.ipynb", "labs/00_start_here/00_first_record.ipynb"


def write(path: Path, source: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(new_notebook(cells=[new_code_cell(source, id="one")]), path)


def text(path: Path) -> str:
    return str(nbformat.read(path, 4).cells[0].source)


@pytest.fixture
def content(tmp_path: Path) -> Content:
    for name in (CHAPTER, LAB):
        write(tmp_path / "course" / name, "theirs")
    return Content(tmp_path / "course")


@pytest.fixture
def machines(tmp_path: Path, content: Content, monkeypatch: pytest.MonkeyPatch) -> tuple[Workspace, Workspace]:
    """Two workspaces. Progress is that of the first machine; `move` goes to the other."""
    monkeypatch.setenv("KAFKALAB_PROGRESS", str(tmp_path / "first"))
    both = Workspace(tmp_path / "here", content), Workspace(tmp_path / "there", content)
    for workspace in both:
        workspace.update()
    return both


@pytest.fixture
def exported(machines: tuple[Workspace, Workspace], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work of the first machine, which isn't there any more."""
    here, _ = machines
    write(here.folder / LAB, "mine")
    (here.folder / "labs/notes.txt").write_text("note")
    progress.record_lab("00_first_record", True)
    progress.record_quiz("00_start_here", 4, 5)
    progress.record_prediction("How many?", "three")
    progress.record_outcome("How many?", True)
    assert export_work(here, tmp_path / "work.zip") == 2
    monkeypatch.setenv("KAFKALAB_PROGRESS", str(tmp_path / "second"))
    return tmp_path / "work.zip"


def test_only_the_learners_work_goes_along(exported: Path) -> None:
    names = zipfile.ZipFile(exported).namelist()
    assert names == ["workspace/labs/notes.txt", f"workspace/{LAB}", "progress.json"]


def test_work_and_progress_are_taken_up(exported: Path, machines: tuple[Workspace, Workspace]) -> None:
    _, there = machines
    assert import_work(there, exported) == (2, [])
    assert text(there.folder / LAB) == "mine" and text(there.folder / CHAPTER) == "theirs"
    record = progress.load()
    assert record.labs["00_first_record"].passed and record.quizzes["00_start_here"].right == 4
    assert record.predictions == {"How many?": "three"} and record.outcomes == {"How many?": True}
    assert there.update().updated == []  # it's still the learner's
    assert text(there.folder / LAB) == "mine"
    assert import_work(there, exported) == (2, [])  # again


def test_nothing_of_ones_own_is_lost(exported: Path, machines: tuple[Workspace, Workspace]) -> None:
    _, there = machines
    write(there.folder / LAB, "mine, too")
    progress.record_quiz("00_start_here", 5, 5)
    progress.record_prediction("How many?", "two")
    files, kept = import_work(there, exported)
    assert files == 2 and [text(path) for path in kept] == ["mine, too"]
    assert text(there.folder / LAB) == "mine"
    record = progress.load()
    assert record.quizzes["00_start_here"].right == 5
    assert record.predictions == {"How many?": "two"} and not record.outcomes


@pytest.mark.parametrize("name", ["workspace/../up.txt", "/etc/x", "workspace/.kafkalab/manifest.json", "other.txt"])
def test_a_file_from_elsewhere_changes_nothing(
    name: str, exported: Path, machines: tuple[Workspace, Workspace], tmp_path: Path
) -> None:
    _, there = machines
    with zipfile.ZipFile(exported, "a") as archive:
        archive.writestr(name, "x")
    with pytest.raises(KafkaLabError, match="isn't what `kafkalab export` writes"):
        import_work(there, exported)
    assert text(there.folder / LAB) == "theirs" and progress.load() == progress.ProgressRecord()
    assert not (tmp_path / "up.txt").exists()


@pytest.mark.parametrize("content_of_it", [None, b"no zip", b""])
def test_what_is_no_export_is_refused(
    content_of_it: bytes | None, machines: tuple[Workspace, Workspace], tmp_path: Path
) -> None:
    path = tmp_path / "x.zip"
    if content_of_it is not None:
        path.write_bytes(content_of_it)
    with pytest.raises(KafkaLabError, match=r"x\.zip (can't be read|isn't what)"):
        import_work(machines[1], path)


@pytest.mark.parametrize("record", ["[]", "{", '{"version": 99}', '{"version": 1, "labs": {"a": 1}, "quizzes": {}}'])
def test_progress_that_is_none_is_refused(record: str, machines: tuple[Workspace, Workspace], tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr(f"workspace/{LAB}", "x")
        archive.writestr("progress.json", record)
    with pytest.raises(KafkaLabError, match="isn't what"):
        import_work(machines[1], tmp_path / "x.zip")
    assert text(machines[1].folder / LAB) == "theirs"


def test_without_work_nothing_is_written(machines: tuple[Workspace, Workspace], tmp_path: Path) -> None:
    with pytest.raises(KafkaLabError, match="no work"):
        export_work(machines[0], tmp_path / "work.zip")
    assert not (tmp_path / "work.zip").exists()


def test_a_folder_that_is_not_there_is_named(machines: tuple[Workspace, Workspace], tmp_path: Path) -> None:
    write(machines[0].folder / LAB, "mine")
    with pytest.raises(KafkaLabError, match="can't be written"):
        export_work(machines[0], tmp_path / "nowhere/work.zip")


def test_an_export_within_the_workspace_does_not_contain_itself(machines: tuple[Workspace, Workspace]) -> None:
    write(machines[0].folder / LAB, "mine")
    target = machines[0].folder / "work.zip"
    assert [export_work(machines[0], target) for _ in range(2)] == [1, 1]

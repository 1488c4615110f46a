"""The learner's workspace: what is copied, updated, kept and left alone."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from kafkalab import course
from kafkalab.course import Content, Course, Update, Workspace, find_course, workspace_dir
from kafkalab.course.names import find_notebook
from kafkalab.course.versions import Version
from kafkalab.errors import KafkaLabError

ROOT = Path(__file__).parents[2]
CHAPTER = "notebooks/02_cluster_failover.ipynb"
LAB = "labs/02_cluster_failover/02_failsafe.ipynb"
SOLUTION = LAB.replace("labs", "solutions")
MODULE = "labs/02_cluster_failover/workers_app.py"
TODAY = "2026-03-14"


def write_notebook(path: Path, *sources: str, output: str = "") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    outputs = [new_output("stream", text=output)] if output else []
    cells = [new_code_cell(source, id=f"cell-{n}", outputs=outputs, execution_count=1) for n, source in enumerate(sources)]
    nbformat.write(new_notebook(cells=[new_markdown_cell("# Title", id="title"), *cells]), path)


def run_without_editing(path: Path) -> None:
    """Change a notebook as JupyterLab does that runs all cells and saves: outputs, metadata, an empty cell at the end."""
    notebook = nbformat.read(path, 4)
    for cell in notebook.cells[1:]:
        cell.outputs, cell.execution_count = [new_output("stream", text="seen\n")], 7
    notebook.metadata["language_info"] = {"name": "python", "version": "3.12.0"}
    notebook.cells.append(new_code_cell("", id="empty"))
    nbformat.write(notebook, path)


def edit(path: Path, source: str = "mine") -> None:
    notebook = nbformat.read(path, 4)
    notebook.cells[1].source = source
    nbformat.write(notebook, path)


def texts(path: Path) -> list[str]:
    return [cell.source for cell in nbformat.read(path, 4).cells[1:]]


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(autouse=True)
def no_midnight(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafkalab.course.workspace.date", SimpleNamespace(today=lambda: TODAY))


@pytest.fixture
def content(tmp_path: Path) -> Content:
    root = tmp_path / "course"
    write_notebook(root / "notebooks/00_start_here.ipynb", "start", output="started\n")
    write_notebook(root / CHAPTER, "kill", output="killed\n")
    (root / "notebooks/pictures").mkdir()
    (root / "notebooks/pictures/ring.svg").write_text("<svg/>")
    write_notebook(root / LAB, 'check("02_failsafe_topic", cluster)')
    for name in ("02_customers", "02_customer_groups"):
        write_notebook(root / f"labs/02_cluster_failover/{name}.ipynb", f'check("{name}", cluster)')
    (root / MODULE).write_text("given = 1\n")
    (root / "labs/02_cluster_failover/data.csv").write_text("1,2\n")
    write_notebook(root / SOLUTION, "solved", output="right\n")
    (root / "solutions/02_cluster_failover/workers_app.py").write_text("given = 1\n")
    (root / "solutions/02_cluster_failover/partitioner.py").write_text("# Written in the lab 02_failsafe.\nright = 1\n")
    (root / "solutions/02_cluster_failover/other.py").write_text("# Written in the lab 02_customers.\nright = 2\n")
    return Content(root)


@pytest.fixture
def workspace(tmp_path: Path, content: Content) -> Workspace:
    return Workspace(tmp_path / "mine", content)


@pytest.fixture
def filled(workspace: Workspace) -> Workspace:
    workspace.update()
    return workspace


# -- what is copied ---------------------------------------------------------------------------------------------------


def test_a_new_workspace_has_everything_but_solutions_and_outputs(workspace: Workspace, content: Content) -> None:
    done = workspace.update()
    assert done.created
    assert done.added == list(content.files())
    assert sorted(done.added) == sorted(
        [
            "notebooks/00_start_here.ipynb", CHAPTER, "notebooks/pictures/ring.svg",
            "labs/02_cluster_failover/02_customers.ipynb", "labs/02_cluster_failover/02_customer_groups.ipynb",
            LAB, "labs/02_cluster_failover/data.csv", MODULE,
        ]
    )  # fmt: skip
    assert not (workspace.folder / "solutions").exists()
    copied = nbformat.read(workspace.folder / CHAPTER, 4)
    assert [(cell.outputs, cell.execution_count) for cell in copied.cells[1:]] == [([], None)]
    assert texts(workspace.folder / CHAPTER) == ["kill"]
    nbformat.validate(copied)


def test_leftovers_of_runs_and_pages_for_authors_are_not_copied(workspace: Workspace, content: Content) -> None:
    for name in ("labs/__pycache__/a.pyc", "labs/.ipynb_checkpoints/b.ipynb", "labs/README.md", "notebooks/.hidden"):
        (content.root / name).parent.mkdir(exist_ok=True)
        (content.root / name).write_text("no")
    assert not [name for name in workspace.update().added if name not in content.files()]
    assert not (workspace.folder / "labs/README.md").exists()
    assert len(snapshot(workspace.folder / "labs")) == 5


def test_what_is_written_is_what_nbformat_writes(filled: Workspace) -> None:
    path = filled.folder / CHAPTER
    before = path.read_bytes()
    nbformat.write(nbformat.read(path, 4), path)
    assert path.read_bytes() == before


def test_a_second_update_changes_nothing(filled: Workspace) -> None:
    before = snapshot(filled.folder)
    assert filled.update() == Update()
    assert snapshot(filled.folder) == before


# -- a newer course ---------------------------------------------------------------------------------------------------


def test_new_in_the_course(filled: Workspace, content: Content) -> None:
    write_notebook(content.root / "notebooks/03_producer.ipynb", "send")
    assert filled.update() == Update(added=["notebooks/03_producer.ipynb"])
    assert texts(filled.folder / "notebooks/03_producer.ipynb") == ["send"]


def test_untouched_is_updated(filled: Workspace, content: Content) -> None:
    write_notebook(content.root / CHAPTER, "stop")
    (content.root / "notebooks/pictures/ring.svg").write_text("<svg>2</svg>")
    assert filled.update() == Update(updated=[CHAPTER, "notebooks/pictures/ring.svg"])
    assert texts(filled.folder / CHAPTER) == ["stop"]
    assert len(list((filled.folder / "notebooks").glob("02_*"))) == 1


def test_new_outputs_in_the_course_are_no_update(filled: Workspace, content: Content) -> None:
    write_notebook(content.root / CHAPTER, "kill", output="killed again\n")
    assert filled.update() == Update()


def test_new_metadata_reach_an_untouched_notebook_only(filled: Workspace, content: Content) -> None:
    run_without_editing(filled.folder / LAB)
    for name in (CHAPTER, LAB):
        notebook = nbformat.read(content.root / name, 4)
        notebook.metadata["kafkalab"] = {"minutes": 30}
        nbformat.write(notebook, content.root / name)
    assert filled.update() == Update()
    assert nbformat.read(filled.folder / CHAPTER, 4).metadata.kafkalab.minutes == 30
    assert "kafkalab" not in nbformat.read(filled.folder / LAB, 4).metadata


def test_edited_is_never_overwritten(filled: Workspace, content: Content) -> None:
    edit(filled.folder / CHAPTER)
    (filled.folder / MODULE).write_text("my own\n")
    before = snapshot(filled.folder / "notebooks") | snapshot(filled.folder / "labs")
    assert filled.update() == Update()
    write_notebook(content.root / CHAPTER, "stop")
    (content.root / MODULE).write_text("given = 2\n")
    assert filled.update() == Update(left={CHAPTER: "you changed it", MODULE: "you changed it"})
    assert snapshot(filled.folder / "notebooks") | snapshot(filled.folder / "labs") == before


def test_what_was_left_alone_is_said_once_for_each_version(filled: Workspace, content: Content) -> None:
    edit(filled.folder / CHAPTER)
    for source in ("stop", "pause"):
        write_notebook(content.root / CHAPTER, source)
        assert filled.update() == Update(left={CHAPTER: "you changed it"})
        assert filled.update() == Update()


def test_a_change_that_was_taken_back_is_no_change(filled: Workspace, content: Content) -> None:
    edit(filled.folder / CHAPTER)
    write_notebook(content.root / CHAPTER, "stop")
    filled.update()
    edit(filled.folder / CHAPTER, "kill")
    write_notebook(content.root / CHAPTER, "pause")
    assert filled.update().updated == [CHAPTER]


def test_both_came_to_the_same(filled: Workspace, content: Content) -> None:
    edit(filled.folder / CHAPTER, "stop")
    write_notebook(content.root / CHAPTER, "stop")
    assert filled.update() == Update()
    write_notebook(content.root / CHAPTER, "pause")
    assert filled.update().updated == [CHAPTER]


def test_run_but_not_edited_is_updated_and_the_run_is_kept(filled: Workspace, content: Content) -> None:
    path = filled.folder / CHAPTER
    run_without_editing(path)
    run = path.read_bytes()
    assert filled.update() == Update()
    assert path.read_bytes() == run
    write_notebook(content.root / CHAPTER, "stop")
    kept = path.with_name(f"02_cluster_failover.{TODAY}.ipynb")
    assert filled.update() == Update(updated=[CHAPTER], kept={CHAPTER: kept})
    assert kept.read_bytes() == run
    assert texts(path) == ["stop"]


def test_deleted_stays_deleted(filled: Workspace, content: Content) -> None:
    (filled.folder / LAB).unlink()
    assert filled.update() == Update()
    write_notebook(content.root / LAB, "newer")
    assert filled.update() == Update(left={LAB: "you deleted it"})
    assert filled.update() == Update()
    assert not (filled.folder / LAB).exists()


def test_deleted_comes_back_when_it_is_opened(filled: Workspace) -> None:
    (filled.folder / LAB).unlink()
    assert filled.open("02_failsafe") == filled.folder / LAB
    assert (filled.folder / LAB).exists()


def test_everything_deleted_is_a_new_start(filled: Workspace) -> None:
    for path in list(filled.folder.rglob("*")):
        if path.is_file() and ".kafkalab" not in path.parts:
            path.unlink()
    assert filled.update().created


def test_removed_from_the_course(filled: Workspace, content: Content) -> None:
    for name in (LAB, CHAPTER, "labs/02_cluster_failover/02_customers.ipynb", "notebooks/pictures/ring.svg"):
        (content.root / name).unlink()
    edit(filled.folder / LAB)
    run_without_editing(filled.folder / CHAPTER)
    done = filled.update()
    assert sorted(done.removed) == ["labs/02_cluster_failover/02_customers.ipynb", "notebooks/pictures/ring.svg"]
    assert done.left == dict.fromkeys((LAB, CHAPTER), "it is no longer part of the course")
    assert (filled.folder / LAB).exists()
    assert (filled.folder / CHAPTER).exists()
    assert not (filled.folder / "notebooks/pictures").exists()
    assert filled.update() == Update()


def test_what_was_left_alone_can_be_named_later(filled: Workspace, content: Content) -> None:
    """For the home page: an update says it once."""
    assert filled.left_alone() == {}
    edit(filled.folder / LAB)
    edit(filled.folder / CHAPTER)
    write_notebook(content.root / CHAPTER, "kill two")
    (content.root / LAB).unlink()
    (filled.folder / "notebooks/00_start_here.ipynb").unlink()
    write_notebook(content.root / "notebooks/00_start_here.ipynb", "started anew")
    filled.update()
    assert filled.left_alone() == {CHAPTER: "the course has a newer one", LAB: "it is no longer part of the course"}
    assert filled.update() == Update() and len(filled.left_alone()) == 2
    filled.reset(CHAPTER)
    assert list(filled.left_alone()) == [LAB]
    write_notebook(content.root / LAB, "it came back")
    assert filled.update().left == {LAB: "you changed it"}
    (filled.folder / LAB).unlink()
    assert filled.left_alone() == {}


# -- what can go wrong ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_bytes(b"\xff{"), lambda path: path.write_text("[1]")])
def test_the_manifest_is_lost(filled: Workspace, content: Content, damage: Callable[[Path], object]) -> None:
    """What equals the course is known again; anything else counts as the learner's."""
    edit(filled.folder / LAB)
    run_without_editing(filled.folder / CHAPTER)
    write_notebook(content.root / "notebooks/00_start_here.ipynb", "newer")
    damage(filled.folder / ".kafkalab/manifest.json")
    before = snapshot(filled.folder / "notebooks") | snapshot(filled.folder / "labs")
    assert filled.update() == Update(left=dict.fromkeys(("notebooks/00_start_here.ipynb", LAB), "it was there already"))
    assert snapshot(filled.folder / "notebooks") | snapshot(filled.folder / "labs") == before
    (content.root / "notebooks/pictures/ring.svg").write_text("<svg>2</svg>")
    assert filled.update() == Update(updated=["notebooks/pictures/ring.svg"])


def test_an_unreadable_file_is_left_alone(filled: Workspace, content: Content, monkeypatch: pytest.MonkeyPatch) -> None:
    write_notebook(content.root / LAB, "newer")
    write_notebook(content.root / CHAPTER, "newer")
    original = Path.read_bytes

    def refusing(path: Path) -> bytes:
        if path == filled.folder / LAB:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return original(path)

    monkeypatch.setattr(Path, "read_bytes", refusing)
    assert filled.update() == Update(updated=[CHAPTER], left={LAB: "it can't be read: Permission denied"})


def test_a_folder_where_a_file_should_be_is_left_alone(workspace: Workspace) -> None:
    (workspace.folder / LAB).mkdir(parents=True)
    assert workspace.update().left == {LAB: "it can't be read: Is a directory"}


@pytest.mark.parametrize("text", ["", "not JSON", "[]", '{"cells": [1]}', "{}"])
def test_a_broken_notebook_is_the_learners(filled: Workspace, content: Content, text: str) -> None:
    (filled.folder / CHAPTER).write_text(text)
    write_notebook(content.root / CHAPTER, "stop")
    assert filled.update().left == {CHAPTER: "you changed it"}
    assert (filled.folder / CHAPTER).read_text() == text


def test_a_broken_notebook_of_the_course_is_copied_as_it_is(content: Content, workspace: Workspace) -> None:
    (content.root / CHAPTER).write_text("<<<<<<< HEAD")
    workspace.update()
    assert (workspace.folder / CHAPTER).read_text() == "<<<<<<< HEAD"


def test_a_file_stands_where_the_workspace_should_be(workspace: Workspace) -> None:
    workspace.folder.write_text("")
    with pytest.raises(KafkaLabError, match=r"can't be written \(Not a directory: .*\); name another folder: kafkalab lab"):
        workspace.update()


def full_after(number: int, error: int, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Let `number` files be written, and then none but the manifest."""
    written: list[Path] = []
    original = Path.write_bytes

    def refusing(path: Path, data: bytes) -> int:
        if path.name.startswith(".manifest.json"):
            return original(path, data)
        if len(written) == number:
            original(path, data[:10])
            raise OSError(error, os.strerror(error), str(path))
        written.append(path)
        return original(path, data)

    monkeypatch.setattr(Path, "write_bytes", refusing)
    return written


def test_the_disk_is_full(workspace: Workspace, content: Content, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        written = full_after(3, errno.ENOSPC, patch)
        with pytest.raises(KafkaLabError, match="no space left for the workspace"):
            workspace.update()
    assert len(written) == 3
    assert len(snapshot(workspace.folder)) == 3 + 2  # no half file, the manifest and the lock
    done = workspace.update()
    assert len(done.added) == len(content.files()) - 3
    assert not done.left


def test_the_disk_is_full_when_a_run_is_kept(filled: Workspace, content: Content, monkeypatch: pytest.MonkeyPatch) -> None:
    run_without_editing(filled.folder / CHAPTER)
    run = (filled.folder / CHAPTER).read_bytes()
    write_notebook(content.root / CHAPTER, "stop")
    with monkeypatch.context() as patch:
        full_after(0, errno.ENOSPC, patch)
        with pytest.raises(KafkaLabError, match="no space left"):
            filled.update()
    assert (filled.folder / CHAPTER).read_bytes() == run
    assert filled.update().updated == [CHAPTER]
    assert run in snapshot(filled.folder / "notebooks").values()


def test_a_read_only_workspace(filled: Workspace, monkeypatch: pytest.MonkeyPatch, content: Content) -> None:
    write_notebook(content.root / CHAPTER, "stop")
    before = snapshot(filled.folder)
    full_after(0, errno.EROFS, monkeypatch)
    with pytest.raises(KafkaLabError, match=r"can't be written \(Read-only file system"):
        filled.update()
    assert snapshot(filled.folder) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")
def test_a_workspace_of_somebody_else(content: Content) -> None:
    code = "import os, sys; from pathlib import Path; from kafkalab.course import Content, Workspace; os.setuid(65534)\n"
    code += "try: Workspace(Path(sys.argv[1], 'mine'), Content(Path(sys.argv[1], 'course'))).update()\n"
    code += "except Exception as error: print(error)"
    with tempfile.TemporaryDirectory() as folder:  # tmp_path lies in a folder that only its owner may enter
        Path(folder).chmod(0o755)
        shutil.copytree(content.root, Path(folder, "course"))
        Workspace(Path(folder, "mine"), content).update()
        said = subprocess.run([sys.executable, "-c", code, folder], capture_output=True, text=True, check=True).stdout
    assert "can't be written (Permission denied" in said


def test_the_course_itself_is_no_workspace(content: Content) -> None:
    before = snapshot(content.root)
    for folder in (content.root, content.root / "labs", content.root / "labs/../labs/deeper"):
        with pytest.raises(KafkaLabError, match="holds the course itself"):
            Workspace(folder, content).update()
    assert snapshot(content.root) == before


def test_two_at_once(workspace: Workspace, content: Content) -> None:
    """Each file is copied by one of them, and a run that an update keeps is kept once."""

    def both() -> list[Update]:
        done: list[Update] = []
        barrier = threading.Barrier(2)

        def update() -> None:
            barrier.wait()
            done.append(Workspace(workspace.folder, content).update())

        threads = [threading.Thread(target=update) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return done

    assert sorted(len(done.added) for done in both()) == [0, len(content.files())]
    run_without_editing(workspace.folder / CHAPTER)
    write_notebook(content.root / CHAPTER, "stop")
    assert sorted(len(done.kept) for done in both()) == [0, 1]
    assert len(list((workspace.folder / "notebooks").glob("02_*"))) == 2


def test_a_file_of_the_course_cannot_be_read(workspace: Workspace, content: Content) -> None:
    (content.root / "labs/nowhere.csv").symlink_to("missing")
    with pytest.raises(KafkaLabError, match=r"the course's file .*nowhere.csv can't be read: No such file"):
        workspace.update()


# -- reset and solution -----------------------------------------------------------------------------------------------


def test_reset_keeps_the_old_one_beside(filled: Workspace) -> None:
    path = filled.folder / LAB
    edit(path)
    kept = path.with_name(f"02_failsafe.{TODAY}.ipynb")
    assert filled.reset("02_failsafe") == (path, kept)
    assert texts(kept) == ["mine"]
    assert texts(path) == ['check("02_failsafe_topic", cluster)']
    edit(path, "again")
    assert filled.reset("02_failsafe")[1] == path.with_name(f"02_failsafe.{TODAY}.2.ipynb")
    assert texts(kept) == ["mine"]


def test_reset_keeps_a_run(filled: Workspace) -> None:
    run_without_editing(filled.folder / LAB)
    run = (filled.folder / LAB).read_bytes()
    kept = filled.reset("02_failsafe")[1]
    assert kept is not None
    assert kept.read_bytes() == run


def test_reset_of_an_untouched_one_keeps_nothing(filled: Workspace, content: Content) -> None:
    assert filled.reset("2") == (filled.folder / CHAPTER, None)
    write_notebook(content.root / CHAPTER, "newer")
    assert filled.reset("2") == (filled.folder / CHAPTER, None)
    assert texts(filled.folder / CHAPTER) == ["newer"]


def test_reset_brings_back_and_is_updated_again(filled: Workspace, content: Content) -> None:
    edit(filled.folder / LAB)
    write_notebook(content.root / LAB, "newer")
    filled.update()
    filled.reset("02_failsafe")
    write_notebook(content.root / LAB, "newest")
    assert filled.update().updated == [LAB]
    (filled.folder / LAB).unlink()
    assert filled.reset("02_failsafe") == (filled.folder / LAB, None)
    assert (filled.folder / LAB).exists()


def test_solution_comes_with_its_modules_and_no_others(filled: Workspace) -> None:
    path, kept = filled.solution("02_failsafe_topic")
    assert path == filled.folder / SOLUTION
    assert kept == []
    assert texts(path) == ["solved"]
    assert sorted(file.name for file in path.parent.iterdir()) == ["02_failsafe.ipynb", "partitioner.py", "workers_app.py"]
    assert filled.update() == Update()


def test_a_solution_is_updated_and_an_edited_one_kept(filled: Workspace, content: Content) -> None:
    path, _ = filled.solution("02_failsafe")
    write_notebook(content.root / SOLUTION, "better")
    assert filled.update().updated == [SOLUTION]
    edit(path)
    assert filled.solution("02_failsafe")[1] == [path.with_name(f"02_failsafe.{TODAY}.ipynb")]
    assert texts(path) == ["better"]


def test_a_course_without_solutions(filled: Workspace, content: Content) -> None:
    filled.solution("02_failsafe")
    for path in (content.root / "solutions/02_cluster_failover").iterdir():
        path.unlink()
    assert filled.update() == Update()
    assert (filled.folder / SOLUTION).exists()
    with pytest.raises(
        KafkaLabError, match="no solution of 02_failsafe yet: this course came without it.*`kafkalab release FILE`"
    ):
        filled.solution("02_failsafe")


def test_reset_and_solution_for_a_notebooks_cell(
    content: Content, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("kafkalab.course.workspace.find_course", lambda: Course("kafkacourse", content))
    monkeypatch.setenv("KAFKALAB_WORKSPACE", str(tmp_path / "mine"))
    assert course.reset("02_failsafe") == tmp_path / "mine" / LAB
    assert course.solution("02_failsafe") == tmp_path / "mine" / SOLUTION
    assert capsys.readouterr() == ("", "")


# -- names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("2", CHAPTER), ("02", CHAPTER), ("02_cluster_failover", CHAPTER), ("02_cl", CHAPTER), ("cluster", CHAPTER),
        ("02_c", CHAPTER), ("02_cluster_failover.ipynb", CHAPTER), ("0", "notebooks/00_start_here.ipynb"),
        ("02_failsafe", LAB), ("02_failsafe.ipynb", LAB), (LAB, LAB), (f"/mine/{LAB}", LAB), ("failsafe", LAB), ("fail", LAB),
        ("02_failsafe_topic", LAB), ("02_customers", "labs/02_cluster_failover/02_customers.ipynb"),
    ],
)  # fmt: skip
def test_what_a_name_means(content: Content, name: str, found: str) -> None:
    assert find_notebook(name, content) == found


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("7", "there is no chapter 7; there are 00_start_here, 02_cluster_failover"),
        ("02_failsave", "there is no chapter or lab '02_failsave'; did you mean 02_failsafe"),
        ("clutser_failover", "did you mean 02_cluster_failover?"),
        ("02_failsafe_topics", "did you mean 02_failsafe_topic or 02_failsafe?"),
        ("customer", "'customer' can mean several notebooks: 02_customer_groups, 02_customers"),
        ("xyz", "there is no chapter or lab 'xyz'; the chapters are 00_start_here, 02_cluster_failover"),
        ("", "there is no chapter or lab ''"),
    ],
)
def test_an_unknown_name_is_answered_with_near_ones(content: Content, name: str, said: str) -> None:
    with pytest.raises(KafkaLabError) as error:
        find_notebook(name, content)
    assert said in str(error.value)


# -- where ------------------------------------------------------------------------------------------------------------


def test_where_the_workspace_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, filled: Workspace) -> None:
    monkeypatch.delenv("KAFKALAB_WORKSPACE", raising=False)
    monkeypatch.chdir(tmp_path)
    assert workspace_dir() == ROOT / "workspace"
    assert workspace_dir(Path("here")) == tmp_path / "here"
    monkeypatch.chdir(filled.folder / "labs/02_cluster_failover")
    assert workspace_dir() == filled.folder
    monkeypatch.setenv("KAFKALAB_WORKSPACE", "~/named")
    assert workspace_dir() == Path.home() / "named"
    assert workspace_dir(tmp_path) == tmp_path


# -- this course ------------------------------------------------------------------------------------------------------


def test_git_ignores_the_workspace() -> None:
    """So that opening and saving a notebook changes no file that git knows."""
    if not (ROOT / ".git").exists():
        pytest.skip("this is no clone")
    ignored = subprocess.run(["git", "check-ignore", "workspace/notebooks/00_start_here.ipynb"], cwd=ROOT, capture_output=True)
    assert ignored.returncode == 0


def test_links_work_in_the_workspace(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "mine", find_course().content)
    workspace.update()
    dead = []
    for path in workspace.folder.rglob("*.ipynb"):
        for cell in nbformat.read(path, 4).cells:
            if cell.cell_type == "markdown":
                dead += [f"{path.name}: {link}" for link in links(cell.source) if not (path.parent / link).exists()]
    assert not dead


def test_nothing_needs_the_solutions() -> None:
    """A workspace has none, and a teacher may take them out of a clone."""
    content = find_course().content
    needing = []
    for name, path in content.files().items():
        if name.endswith(".ipynb"):
            needing += [name for cell in nbformat.read(path, 4).cells if re.search(r"\.\./solutions", cell.source)]
        elif name.endswith(".py") and "solutions" in path.read_text():
            needing.append(name)
    assert not needing


def links(text: str) -> list[str]:
    """The relative links of a Markdown text, without anchors."""
    found = re.findall(r"\]\(([^)\s]+)\)", text)
    return [link.split("#")[0] for link in found if re.search(r"[./]", link) and "://" not in link and not link.startswith("#")]


@pytest.mark.parametrize(
    "name", [name for name in find_course().content.files() | find_course().content.solutions() if name.endswith(".ipynb")]
)
def test_each_notebook_is_as_jupyterlab_writes_it(name: str) -> None:
    """Saving it changes nothing but what a kernel adds: it has ids, a kernel's name and nbformat's own layout."""
    text = (find_course().content.root / name).read_text(encoding="utf-8")
    notebook = nbformat.reads(text, 4)
    assert nbformat.writes(notebook) + "\n" == text
    raw = json.loads(text)
    ids = [cell["id"] for cell in raw["cells"]]
    assert len(set(ids)) == len(ids)
    assert raw["metadata"]["kernelspec"]["name"] == "python3"
    assert (raw["nbformat"], raw["nbformat_minor"]) == (4, 5)


def test_versions_compare_sources() -> None:
    one = Version.of(b'{"cells": [{"cell_type": "code", "source": ["a\\n", "b"], "outputs": [1]}]}', "x.ipynb")
    other = Version.of(b'{"cells": [{"cell_type": "code", "source": "a\\nb", "outputs": []}]}', "x.ipynb")
    assert one.sources == other.sources
    assert one.digest != other.digest

"""A part of the course as a ZIP, and solutions that a class takes up later."""

from __future__ import annotations

import json
import subprocess
import zipfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from kafkalab.cli import main
from kafkalab.course import Content, Course, Workspace, find_course
from kafkalab.course.bundled import LABEL, Bundle, mismatch
from kafkalab.course.own_labs import read_own_labs
from kafkalab.course.packing import choose, course_bundle, solutions_bundle
from kafkalab.errors import KafkaLabError

MAKE, SPLIT, OTHER = "labs/01_play/01_make", "labs/01_play/01_split", "labs/02_last/02_other"
LABS = [MAKE, SPLIT, OTHER]


def write(path: Path, *cells: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))


def markdown(text: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "source": text, "metadata": {}, "id": "a"}


def ran(text: str) -> dict[str, Any]:
    output = {"output_type": "stream", "name": "stdout", "text": "/home/somebody"}
    return {"cell_type": "code", "source": text, "metadata": {}, "id": "b", "execution_count": 1, "outputs": [output]}


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A course of two chapters and three labs that git tracks, and files that it doesn't."""
    root = tmp_path_factory.mktemp("clone")
    lab = "[Make](../labs/01_play/01_make.ipynb#a) and [other](../labs/02_last/02_other.ipynb)"
    write(root / "notebooks/01_play.ipynb", markdown(f"# Play\n\n{lab}, [Kafka](https://kafka.apache.org/a.md)"), ran("play()"))
    write(root / "notebooks/02_last.ipynb", markdown("# Last"))
    for name in LABS:
        write(root / f"{name}.ipynb", markdown("# A lab\n\n[Back](../../notebooks/02_last.ipynb)"), ran("# YOUR CODE HERE"))
        write(
            root / f"solutions/{name.removeprefix('labs/')}.ipynb",
            markdown("[Back](../../notebooks/01_play.ipynb)"),
            ran("answer"),
        )
    (root / "solutions/01_play/given.py").write_text("given = 1\n")
    (root / "solutions/01_play/mine.py").write_text("# Written in the lab 01_split.\n")
    (root / "solutions/01_play/other.py").write_text("# Written in the lab 01_make.\n")
    for name in (
        "src/package/__init__.py",
        "tools/setup.sh",
        "pyproject.toml",
        "tests/test_it.py",
        "tools/other.py",
        "Makefile",
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("#!/bin/sh\n" if name.endswith("sh") else "")
    subprocess.run("git init -q . && git add .", shell=True, cwd=root, check=True)
    for name in ("src/package/secret.py", "labs/01_play/notes.txt", "notebooks/draft.svg", ".env", "solutions/01_play/x.py"):
        (root / name).write_text("secret")
    return root


@pytest.fixture
def course(clone: Path) -> Course:
    return Course("kafkacourse", Content(clone), clone)


def packed(course: Course, *names: str, solutions: bool = False) -> dict[str, bytes]:
    return course_bundle(course, choose(names, course.content), solutions=solutions)


def test_it_has_the_chapter_its_labs_and_what_sets_it_up_and_nothing_else(course: Course) -> None:
    files = packed(course, "1")
    assert sorted(files) == sorted([
        "README.md", LABEL, f"{MAKE}.ipynb", f"{SPLIT}.ipynb", "notebooks/01_play.ipynb",
        "pyproject.toml", "src/package/__init__.py", "tools/setup.sh",
    ])  # fmt: skip
    assert not [name for name, data in files.items() if b"secret" in data or b"/home/somebody" in data or b"answer" in data]
    assert Bundle.read(files[LABEL]) == Bundle(version("kafkalab"), "course without solutions", ["01_play"])
    readme = files["README.md"].decode()
    assert f"kafkalab {version('kafkalab')}" in readme and ".venv/bin/kafkalab lab 01\n" in readme
    assert "no solutions" in readme and "kafkalab release FILE" in readme


def test_with_solutions_they_are_those_of_its_labs(course: Course) -> None:
    files = packed(course, "01_split", solutions=True)
    assert [name for name in sorted(files) if name.startswith(("labs", "solutions"))] == [
        f"{SPLIT}.ipynb",
        "solutions/01_play/01_split.ipynb",
        "solutions/01_play/given.py",
        "solutions/01_play/mine.py",
    ]
    assert "kafkalab solution NAME" in files["README.md"].decode()


def test_links_to_what_is_not_in_it_become_words(course: Course) -> None:
    def text(name: str) -> str:
        return "".join(json.loads(packed(course, "1")[name])["cells"][0]["source"])

    assert text("notebooks/01_play.ipynb") == (
        "# Play\n\n[Make](../labs/01_play/01_make.ipynb#a) and other, [Kafka](https://kafka.apache.org/a.md)"
    )
    assert text(f"{MAKE}.ipynb") == "# A lab\n\nBack"


def test_several_or_all(course: Course) -> None:
    assert choose((), course.content) == choose(("02", "01"), course.content)
    both = choose((), course.content)
    assert both.labs == tuple(Path(name).name for name in LABS) and both.words == "chapters 01 and 02"
    with pytest.raises(KafkaLabError, match="there is no chapter 7; there are 01_play"):
        choose(("7",), course.content)


def test_own_labs_come_along_and_are_found(course: Course, tmp_path: Path) -> None:
    own = tmp_path / "own"
    for name in ("01_cards", "02_chess"):
        write(own / f"{name}.ipynb", ran("# YOUR CODE HERE"))
        write(own / f"solutions/{name}.ipynb", ran("answer"))
        (own / f"{name}.py").write_text("lab = 1")
    (own / "labs.toml").write_text('title = "Games"')
    with_own = Course("kafkacourse", Content(course.content.root, read_own_labs(own, (), ("01", "02"))), course.clone)
    mine = ["own-labs/01_cards.ipynb", "own-labs/01_cards.py", "own-labs/labs.toml"]
    assert [name for name in sorted(packed(with_own, "1")) if name.startswith("own-labs")] == mine
    files = packed(with_own, "1", solutions=True)
    assert {name for name in files if name.startswith("own-labs")} == {*mine, "own-labs/solutions/01_cards.ipynb"}
    assert "solutions/own/01_cards.ipynb" in solutions_bundle(with_own, choose(("1",), with_own.content))
    assert "labs.toml" not in "".join(packed(with_own, "01_make"))


def test_a_bundle_of_the_course_says_what_is_in_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The whole command, with this course."""
    target = tmp_path / "class.zip"
    assert main(["bundle", "--labs", "03", "--without-solutions", "--output", str(target)]) == 0
    said = capsys.readouterr().out
    assert f"Without solutions: 8 labs of chapter 03, kafkalab {version('kafkalab')}." in said and "class.zip has" in said
    names = zipfile.ZipFile(target).namelist()
    folder = f"kafkalab-{version('kafkalab')}-03-without-solutions/"
    assert all(name.startswith(folder) for name in names)
    assert f"{folder}notebooks/03_producer.ipynb" in names and f"{folder}tools/setup.sh" in names
    assert not [name for name in names if "/solutions/" in name or "/tests/" in name or name.endswith(".pyc")]
    mode = zipfile.ZipFile(target).getinfo(f"{folder}tools/setup.sh").external_attr >> 16
    assert mode & 0o111


def test_an_installed_package_or_a_folder_without_git_makes_none(course: Course, tmp_path: Path) -> None:
    installed = Course("kafkacourse", course.content)
    with pytest.raises(KafkaLabError, match="this course is an installed package; clone the repository"):
        packed(installed)
    with pytest.raises(KafkaLabError, match="git can't list that in .*not a git repository"):
        course_bundle(Course("x", course.content, tmp_path), choose((), course.content), solutions=True)


def test_a_notebook_that_git_does_not_know_is_named(course: Course) -> None:
    draft = course.content.root / "labs/02_last/02_draft.ipynb"
    write(draft)
    try:
        with pytest.raises(KafkaLabError, match=r"git doesn't track labs/02_last/02_draft\.ipynb.*`git add` it"):
            packed(Course("x", Content(course.content.root), course.clone), "2")
    finally:
        draft.unlink()


def test_a_file_that_cannot_be_written(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["bundle", "--labs", "0", "--solutions-only", "--output", str(tmp_path / "no/class.zip")]) == 1
    assert "class.zip can't be written: No such file or directory. Name a file" in capsys.readouterr().err


# -- versions ---------------------------------------------------------------------------------------------------------


def test_a_bundle_of_another_version_is_reported(tmp_path: Path) -> None:
    assert mismatch(tmp_path) is None
    (tmp_path / LABEL).write_text(Bundle(version("kafkalab"), "course", ["01_play"]).as_json())
    assert mismatch(tmp_path) is None
    (tmp_path / LABEL).write_text(Bundle("9.9", "course", ["01_play"]).as_json())
    assert mismatch(tmp_path) == (
        f"This bundle was made with kafkalab 9.9, and {version('kafkalab')} is installed. "
        "Call `tools/setup.sh course` in the bundle's folder."
    )
    assert Course("kafkacourse", Content(tmp_path)).problems() == [mismatch(tmp_path)]
    for broken in ("{", "[]", '{"kafkalab": "1"}', '{"kafkalab": "1", "kind": "x", "chapters": []}'):
        (tmp_path / LABEL).write_text(broken)
        assert "bundle.json can't be read" in (mismatch(tmp_path) or ""), broken


# -- solutions, chapter by chapter ------------------------------------------------------------------------------------


@pytest.fixture
def mine(course: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """The workspace of a learner whose course has no solutions."""
    root = tmp_path / "class"
    for name, path in course.content.files().items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(path.read_bytes())
    monkeypatch.setattr("kafkalab.course.workspace.find_course", lambda: Course("kafkacourse", Content(root)))
    monkeypatch.setenv("KAFKALAB_WORKSPACE", str(tmp_path / "mine"))
    workspace = Workspace(tmp_path / "mine", Content(root))
    workspace.update()
    return workspace


def zipped(files: dict[str, bytes], path: Path) -> str:
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return str(path)


def released(course: Course, *names: str) -> dict[str, bytes]:
    return solutions_bundle(course, choose(names, course.content))


def test_released_solutions_are_there_when_they_are_asked_for(
    course: Course, mine: Workspace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["solution", "--yes", "01_split"]) == 1
    assert "no solution of 01_split yet: this course came without it" in capsys.readouterr().err
    before = {path: path.read_bytes() for path in mine.folder.rglob("*.ipynb")}
    assert main(["release", zipped(released(course, "1"), tmp_path / "s.zip")]) == 0
    assert capsys.readouterr().out == "2 solutions are here now: 01_make, 01_split.\n`kafkalab solution NAME` shows one.\n"
    seen = {path: path.read_bytes() for path in mine.folder.rglob("*.ipynb") if ".kafkalab" not in path.parts}
    assert seen == before, "none is shown before it's asked for, and nothing else changes"
    assert main(["solution", "--yes", "01_split"]) == 0
    shown = mine.folder / "solutions/01_play"
    assert sorted(path.name for path in shown.iterdir()) == ["01_split.ipynb", "given.py", "mine.py"]
    text = (shown / "01_split.ipynb").read_text()
    assert "answer" in text and "../../notebooks/01_play.ipynb" in text and "/home/somebody" not in text
    with pytest.raises(KafkaLabError, match="no solution of 02_other yet"):
        mine.find_solution("02_other")


def test_a_second_release_updates_and_keeps_what_was_shown(course: Course, mine: Workspace, tmp_path: Path) -> None:
    mine.release({name: data for name, data in released(course, "1").items() if name != LABEL})
    path, _ = mine.solution("01_split")
    mine.release({name: data for name, data in released(course, "2").items() if name != LABEL})
    assert not mine.update().removed and path.exists()
    better = released(course, "1")["solutions/01_play/01_split.ipynb"].replace(b"answer", b"better")
    mine.release({"solutions/01_play/01_split.ipynb": better})
    assert mine.update().updated == ["solutions/01_play/01_split.ipynb"] and "better" in path.read_text()
    path.write_text(path.read_text().replace("better", "mine"))
    mine.release({"solutions/01_play/01_split.ipynb": better.replace(b"better", b"best")})
    assert mine.update().left == {"solutions/01_play/01_split.ipynb": "you changed it"} and "mine" in path.read_text()


def test_solutions_of_another_version_are_taken_up_with_a_word(
    course: Course, mine: Workspace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = released(course, "2") | {LABEL: Bundle("9.9", "solutions", ["02_last"]).as_json().encode()}
    assert main(["release", zipped(files, tmp_path / "s.zip")]) == 0
    assert f"made with kafkalab 9.9, and {version('kafkalab')} is installed: a lab may differ" in capsys.readouterr().out


@pytest.mark.parametrize(
    "name", ["solutions/../up.ipynb", "/etc/x", "labs/01_play/01_make.ipynb", "solutions/a.ipynb", "solutions/.x/a.ipynb"]
)
def test_a_file_with_anything_else_changes_nothing(
    name: str, course: Course, mine: Workspace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["release", zipped(released(course, "1") | {name: b"x"}, tmp_path / "s.zip")]) == 1
    assert f"it has {name}, which is no solution" in capsys.readouterr().err
    with pytest.raises(KafkaLabError, match="yet"):
        mine.find_solution("01_split")


def test_what_is_no_file_with_solutions(
    course: Course, mine: Workspace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = {f"folder/{name}": data for name, data in packed(course, "1").items()}
    (tmp_path / "text.zip").write_text("no zip")
    for source, says in (
        (zipped(whole, tmp_path / "whole.zip"), "it's a whole course; unzip it, and follow its README"),
        (zipped({"workspace/a": b""}, tmp_path / "work.zip"), "it has no bundle.json"),
        (zipped({LABEL: b"{"}, tmp_path / "torn.zip"), "whole isn't|Expecting"),
        (str(tmp_path / "text.zip"), "File is not a zip file"),
        (str(tmp_path / "none.zip"), "can't be read: No such file or directory"),
    ):
        assert main(["release", source]) == 1
        error = capsys.readouterr().err
        assert any(word in error for word in says.split("|")), error


def test_without_solutions_there_is_nothing_to_release(mine: Workspace, course: Course) -> None:
    content = Content(mine.folder.parent / "class")
    with pytest.raises(KafkaLabError, match="this course has no solutions of chapter 01"):
        solutions_bundle(Course("x", content, course.clone), choose(("1",), content))


def test_quizzes_are_those_of_the_chapters_that_are_there(tmp_path: Path) -> None:
    for name in ("notebooks/03_producer.ipynb", "labs/03_producer/03_retries.ipynb"):
        write(tmp_path / name, markdown("# Send"))
    assert list(Course("kafkacourse", Content(tmp_path)).quizzes()) == ["03_producer"]
    assert len(find_course().quizzes()) == 13

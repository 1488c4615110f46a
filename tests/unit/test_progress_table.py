"""The bars of progress, their page, and the command that shows, exports and deletes it."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from kafkalab import progress
from kafkalab.checks import labs
from kafkalab.cli import main
from kafkalab.course import find_course
from kafkalab.course.predictions import chapters_by_question
from kafkalab.progress import LabProgress, ProgressRecord, QuizProgress, TimeProgress
from kafkalab.widgets import Progress
from kafkalab.widgets.progress_data import chapters_of, labs_of_course, time_in_words
from kafkalab.widgets.progress_table import progress_html, progress_page, progress_text
from kafkalab.widgets.quiz_data import quiz_names

DAY = "2026-01-02T03:04:05+00:00"
RECORD = ProgressRecord(
    {"02_failsafe": LabProgress(True, 2, DAY), "02_<x>": LabProgress(False, 3, None)},
    {"01_single_node": QuizProgress(7, 7, DAY)},
)
TITLES = {"02_failsafe": "Kill <a> broker", "01_my_topic": "Send seven lines"}


def test_the_progress_as_text() -> None:
    later = [name[:2] for name in quiz_names() if name[:2] > "02"]
    assert progress_text(RECORD, TITLES).splitlines() == [
        "  00 quiz      not answered yet",
        "  01_my_topic  not checked yet",
        "x 01 quiz      7 of 7 right",
        "x 02_failsafe  passed on 2026-01-02",
        "  02_<x>       checked 3 ×, not passed yet",
        "  02 quiz      not answered yet",
        *(f"  {chapter} quiz      not answered yet" for chapter in later),
    ]


def test_each_chapter_is_a_bar_that_unfolds() -> None:
    chapters = chapters_of(RECORD, TITLES)
    html = progress_html(chapters, {})
    assert f"2 of {6 + len(quiz_names()) - 3} done" in html
    assert html.count("<details>") == len(find_course().content.chapter_titles) == 13
    assert "02 · Break a Kafka cluster" in html and "1 of 3</span>" in html and "width:33.3%" in html
    assert "Kill &lt;a&gt; broker" in html and "02_&lt;x&gt;" in html
    assert '<span role="img" aria-label="done">✓</span><span>Kill' in html


def test_predictions_that_came_true_stand_with_their_chapter() -> None:
    by_chapter = chapters_by_question(find_course().content)
    two, other = ([q for q, chapter in by_chapter.items() if chapter == number] for number in ("02", "05"))
    outcomes = {two[0]: True, two[1]: False, two[2]: True, other[0]: False, "no longer asked": True}
    chapters = {chapter.number: chapter for chapter in chapters_of(ProgressRecord(outcomes=outcomes), TITLES)}
    assert [(chapters[n].came_true, chapters[n].known) for n in ("01", "02", "05")] == [(0, 0), (2, 3), (0, 1)]
    html = progress_html(list(chapters.values()), {})
    assert "<p><b>0 of 15 done</b> · 2 of 4 predictions came true</p>" in html and "2 of 3 as you predicted" in html


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(1, "under 1 min"), (60, "1 min"), (3569, "59 min"), (3600, "1 h 0 min"), (5100, "1 h 25 min"), (90_000, "25 h 0 min")],
)
def test_a_time_in_words(seconds: int, words: str) -> None:
    assert time_in_words(seconds) == words


def test_the_time_stands_with_its_chapter_and_says_what_it_means() -> None:
    times = {"02": TimeProgress(5100, DAY), "05": TimeProgress(120, DAY)}
    chapters = chapters_of(ProgressRecord(times=times), TITLES)
    assert [chapter.seconds for chapter in chapters if chapter.number in ("01", "02", "05")] == [0, 5100, 120]
    page = progress_page(chapters)
    assert "<b>0 of 15 done</b> · 1 h 27 min</p>" in page
    assert page.count("<span>Time</span>") == 2 and "<span>1 h 25 min</span>" in page and "Gaps of more than 10 minutes" in page
    assert "Gaps of" not in progress_page(chapters_of(RECORD, TITLES))


def test_labs_are_linked_from_wherever_the_notebook_is(
    progress_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = tmp_path / "labs/02_cluster_failover/02_failsafe.ipynb"
    for folder in ("notebooks", "labs/02_cluster_failover"):
        (tmp_path / folder).mkdir(parents=True)
    lab.touch()  # the only one that wasn't deleted
    for folder in ("notebooks", "labs/02_cluster_failover"):
        monkeypatch.chdir(tmp_path / folder)
        targets = set(re.findall(r'data-kafkalab-open="([^"]+)"', Progress()._repr_mimebundle_()["text/html"]))
        assert targets == {os.path.relpath(lab)}
    monkeypatch.chdir("/")
    assert "<a " not in Progress()._repr_mimebundle_()["text/html"]


def test_each_lab_of_the_course_has_its_link(progress_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = find_course().content.root
    monkeypatch.chdir(root / "notebooks")
    targets = set(re.findall(r'data-kafkalab-open="([^"]+)"', Progress()._repr_mimebundle_()["text/html"]))
    assert {Path(target).stem for target in targets if "/labs/" in target} == set(labs())
    assert all((root / "notebooks" / target).is_file() for target in targets)


def test_the_page_stands_alone(progress_folder: Path) -> None:
    page = progress_page(chapters_of(RECORD, TITLES))
    assert page.startswith("<!DOCTYPE html>") and page.count("<details open>") == 13
    assert "<a " not in page and "src=" not in page


def test_the_command_shows_a_line_for_each_chapter(progress_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    progress.record_lab(next(iter(labs_of_course())), True)
    assert main(["progress"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 13 and re.fullmatch(r"00  Start a Kafka cluster of your own +1 of \d+ done", lines[0])


def test_the_command_shows_the_time(progress_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = ProgressRecord(times={"00": TimeProgress(1500, DAY)})
    progress_folder.mkdir()
    (progress_folder / "progress.json").write_text(progress.as_json(record))
    assert main(["progress"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith(" done · 25 min") and all(line.endswith(" done") for line in lines[1:])


def test_the_command_exports(progress_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    progress.record_lab("02_failsafe", True)
    page, data = tmp_path / "mine.html", tmp_path / "mine.json"
    assert main(["progress", "--html", str(page)]) == main(["progress", "--json", str(data)]) == 0
    assert capsys.readouterr().out == f"Your progress is in {page}.\nYour progress is in {data}.\n"
    assert "passed on" in page.read_text() and data.read_text() == (progress_folder / "progress.json").read_text()


@pytest.mark.parametrize("option", ["--html", "--json"])
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("", "is a folder. Name a file, such as"),
        ("missing/mine", "can't be written: No such file or directory"),
        ("file/mine", "can't be written: Not a directory"),
    ],
)
def test_a_file_that_cannot_be_written_is_named(
    option: str, name: str, said: str, progress_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    progress.record_lab("02_failsafe", True)
    (tmp_path / "file").touch()
    assert main(["progress", option, str(tmp_path / name)]) == 1
    assert capsys.readouterr().err.startswith(f"kafkalab: {tmp_path / name} {said}")


@pytest.mark.parametrize("option", ["--html", "--json"])
def test_nothing_to_export_is_said(
    option: str, progress_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["progress", option, str(tmp_path / "mine")]) == 1
    assert "there's no progress to export yet" in capsys.readouterr().err and not (tmp_path / "mine").exists()


@pytest.mark.parametrize(
    ("words", "answer", "status", "said", "left"),
    [
        ([], "n", 1, "Delete all your progress: labs, quizzes, predictions and times? [y/N] Kept.\n", 1),
        ([], "y", 0, "Delete all your progress: labs, quizzes, predictions and times? [y/N] Your progress is deleted.\n", 0),
        (["--yes"], None, 0, "Your progress is deleted.\n", 0),
    ],
)
def test_deleting_asks_first(
    words: list[str],
    answer: str | None,
    status: int,
    said: str,
    left: int,
    progress_folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    progress.record_lab("02_failsafe", True)
    monkeypatch.setattr("builtins.input", lambda *_: answer)
    assert main(["progress", "--delete", *words]) == status
    assert capsys.readouterr().out == said
    assert len(progress.load().labs) == left


def test_nothing_to_delete_is_said(progress_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["progress", "--delete"]) == 0
    assert capsys.readouterr().out == "There's no progress to delete.\n"


def test_progress_that_cannot_be_deleted_is_named(
    progress_folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    progress.record_lab("02_failsafe", True)

    def refuse(path: Path, **_: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "unlink", refuse)
    assert main(["progress", "--delete", "--yes"]) == 1
    assert "your progress can't be deleted: Permission denied: " in capsys.readouterr().err

from __future__ import annotations

import errno
import json
import threading
from pathlib import Path

import pytest

from kafkalab import progress


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KAFKALAB_PROGRESS", str(tmp_path / "progress"))
    return tmp_path / "progress"


def test_nothing_done_yet() -> None:
    assert progress.load() == progress.ProgressRecord()


def test_reading_makes_no_folder(folder: Path) -> None:
    progress.load()
    assert not folder.exists()


def test_a_failed_check_is_counted_but_is_no_pass() -> None:
    progress.record_lab("02_failsafe", False)
    lab = progress.load().labs["02_failsafe"]
    assert (lab.passed, lab.checks, lab.passed_at) == (False, 1, None)


def test_a_pass_stays_a_pass() -> None:
    progress.record_lab("02_failsafe", True)
    first = progress.load().labs["02_failsafe"]
    progress.record_lab("02_failsafe", False)
    lab = progress.load().labs["02_failsafe"]
    assert (lab.passed, lab.checks, lab.passed_at) == (True, 2, first.passed_at)


def test_the_best_quiz_result_is_kept() -> None:
    for right in (3, 7, 5):
        progress.record_quiz("01_single_node", right, 7)
    assert progress.load().quizzes["01_single_node"].right == 7


def test_a_quiz_with_other_questions_begins_anew() -> None:
    progress.record_quiz("01_single_node", 7, 7)
    progress.record_quiz("01_single_node", 2, 9)
    quiz = progress.load().quizzes["01_single_node"]
    assert (quiz.right, quiz.questions) == (2, 9)


@pytest.mark.parametrize(
    "content",
    [
        b"{",
        b"",
        b"\xff\xfe",
        b"[]",
        b"null",
        b'{"version": 2}',
        b'{"version": 1, "labs": {}}',
        b'{"version": 1, "labs": {"a": {"x": 1}}, "quizzes": {}}',
    ],
)
def test_an_unreadable_file_is_set_aside(folder: Path, content: bytes) -> None:
    folder.mkdir()
    (folder / "progress.json").write_bytes(content)
    assert progress.load() == progress.ProgressRecord()
    (aside,) = folder.glob("progress-unreadable-*.json")
    assert aside.read_bytes() == content
    progress.record_lab("01_my_topic", True)
    assert progress.load().labs["01_my_topic"].passed
    assert aside.exists()


def test_nothing_but_the_file_and_its_lock_is_left(folder: Path) -> None:
    progress.record_lab("01_my_topic", True)
    assert sorted(entry.name for entry in folder.iterdir()) == ["lock", "progress.json"]
    assert set(json.loads((folder / "progress.json").read_text())) == {
        "version",
        "labs",
        "quizzes",
        "predictions",
        "outcomes",
        "times",
        "votes",
    }


def test_notebooks_that_finish_at_once_lose_nothing() -> None:
    def many(worker: int) -> None:
        for i in range(10):
            progress.record_lab(f"{worker:02}_lab_{i}", True)

    threads = [threading.Thread(target=many, args=(worker,)) for worker in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(progress.load().labs) == 40


def test_predictions_are_kept_by_their_question_and_the_last_one_counts(folder: Path) -> None:
    progress.record_prediction("How long?", "2 s")
    progress.record_prediction("How long?", "7 s")
    assert progress.load().predictions == {"How long?": "7 s"}


def test_a_file_from_before_there_were_predictions_can_be_read(folder: Path) -> None:
    progress.record_lab("01_my_topic", True)
    content = json.loads((folder / "progress.json").read_text())
    del content["predictions"], content["outcomes"], content["times"]
    (folder / "progress.json").write_text(json.dumps(content))
    record = progress.load()
    assert not (record.predictions or record.outcomes or record.times) and record.labs["01_my_topic"].passed


def test_another_prediction_has_no_outcome_yet() -> None:
    progress.record_prediction("How long?", "2 s")
    progress.record_outcome("How long?", True)
    progress.record_prediction("How long?", "2 s")
    assert progress.load().outcomes == {"How long?": True}
    progress.record_prediction("How long?", "7 s")
    assert progress.load().outcomes == {}


def test_the_same_outcome_again_writes_nothing(folder: Path) -> None:
    progress.record_outcome("How long?", True)
    before = (folder / "progress.json").stat().st_ino
    progress.record_outcome("How long?", True)
    assert (folder / "progress.json").stat().st_ino == before
    progress.record_outcome("How long?", False)
    assert progress.load().outcomes == {"How long?": False}


def test_what_was_exported_is_the_same_progress_in_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    progress.record_lab("01_my_topic", True)
    progress.record_outcome("How long?", True)
    progress.record_cell("02")
    record = progress.load()
    (tmp_path / "progress.json").write_text(progress.as_json(record))
    monkeypatch.setenv("KAFKALAB_PROGRESS", str(tmp_path))
    assert progress.load() == record


def test_time_goes_from_cell_to_cell_without_pauses_and_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def run_cells(*cells: tuple[str, str]) -> dict[str, int]:
        for chapter, at in cells:
            monkeypatch.setattr(progress, "_now", lambda at=at: f"2026-01-02T{at}+00:00")
            progress.record_cell(chapter)
        return {chapter: time.seconds for chapter, time in progress.load().times.items()}

    assert run_cells(("02", "10:00:00")) == {"02": 0}  # only what follows a cell
    assert run_cells(("02", "10:03:00"), ("02", "10:13:00")) == {"02": 780}
    assert run_cells(("02", "10:23:01")) == {"02": 780}  # a pause
    assert run_cells(("05", "10:24:01"), ("02", "10:25:01")) == {"02": 840, "05": 60}  # two notebooks by turns
    assert run_cells(("02", "10:20:00")) == {"02": 840, "05": 60}  # the machine's clock was set back


def test_deleted_progress_is_gone_and_begins_anew(folder: Path) -> None:
    progress.record_lab("01_my_topic", True)
    progress.record_cell("01")
    for _ in range(2):
        progress.delete()
        assert progress.load() == progress.ProgressRecord()
    progress.record_lab("01_my_topic", False)
    assert progress.load().labs["01_my_topic"].checks == 1


@pytest.fixture
def nothing_reported_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_printed", set())


def test_a_folder_that_cannot_be_made_costs_the_record_and_nothing_else(
    folder: Path, nothing_reported_yet: None, capsys: pytest.CaptureFixture[str]
) -> None:
    folder.parent.joinpath("progress").write_text("a file")
    for _ in range(2):
        progress.record_lab("02_failsafe", True)
    assert progress.load() == progress.ProgressRecord()
    said = capsys.readouterr().out.splitlines()
    assert len(said) == 2 and "can't be kept: File exists" in said[0] and "KAFKALAB_PROGRESS" in said[0]


@pytest.mark.parametrize("code", [errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EACCES])
def test_what_cannot_be_written_leaves_the_old_file(
    code: int, folder: Path, nothing_reported_yet: None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    progress.record_lab("02_failsafe", True)

    def refuse(*_: object) -> None:
        raise OSError(code, "refused")

    monkeypatch.setattr("os.fsync", refuse)
    progress.record_quiz("02_failsafe", 1, 2)
    progress.record_prediction("why", "because")
    assert "Your progress can't be kept: refused" in capsys.readouterr().out
    assert list(progress.load().labs) == ["02_failsafe"]
    assert sorted(path.name for path in folder.iterdir()) == ["lock", "progress.json"]


def test_a_file_that_cannot_be_read_is_not_overwritten(
    folder: Path, nothing_reported_yet: None, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "progress.json").mkdir(parents=True)
    progress.record_lab("02_failsafe", True)
    assert (folder / "progress.json").is_dir() and "can't be kept" in capsys.readouterr().out
    assert progress.load() == progress.ProgressRecord()


def test_a_file_of_a_later_version_is_kept_and_named(
    folder: Path, nothing_reported_yet: None, capsys: pytest.CaptureFixture[str]
) -> None:
    folder.mkdir()
    (folder / "progress.json").write_text('{"version": 99}')
    progress.load()
    (kept,) = folder.glob("progress-unreadable-*")
    assert f"kept as {kept}" in capsys.readouterr().out

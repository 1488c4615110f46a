"""Grading: a row for every submission, whatever it is. No kernel and no broker starts here."""

from __future__ import annotations

import csv
import io
import json
import os
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from threading import Event

import pytest

from kafkalab.checks.lab import Lab, find_lab
from kafkalab.cli import main
from kafkalab.errors import BackendUnavailable, KafkaLabError
from kafkalab.grading import isolation
from kafkalab.grading.grade import Task, grade, prepare, seconds_for
from kafkalab.grading.guard import Guard
from kafkalab.grading.isolation import Isolation, process_group
from kafkalab.grading.limits import Limits
from kafkalab.grading.marks import Mark, as_csv
from kafkalab.grading.plan import plan
from kafkalab.grading.session import run_submission
from kafkalab.grading.submissions import Cell, Submission, Unreadable, find_submissions, read_cells
from kafkalab.lifeline import Run
from kafkalab.waiting import wait_until
from support import PATIENCE, own_runs

LAB = "02_min_insync"
CALL = 'check("02_min_insync", cluster, refused=refused)'


def notebook(path: Path, *sources: str) -> Path:
    cells = [{"cell_type": "code", "id": f"cell-{n}", "metadata": {}, "source": source} for n, source in enumerate(sources)]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    return path


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


# -- submissions ------------------------------------------------------------------------------------------------------


def test_each_file_and_folder_is_a_submission(tmp_path: Path) -> None:
    notebook(tmp_path / "anna.ipynb", CALL)
    notebook(tmp_path / "ben/week2/lab.ipynb", CALL)
    (tmp_path / "ben/week2/helper.py").touch()
    (tmp_path / "cleo").mkdir()
    (tmp_path / "dan.docx").touch()
    (tmp_path / "marks.csv").touch()
    (tmp_path / ".DS_Store").touch()
    found = find_submissions(tmp_path, except_for=tmp_path / "marks.csv")
    assert [submission.name for submission in found] == ["anna.ipynb", "ben/week2/lab.ipynb", "cleo", "dan.docx"]
    assert list(found[1].beside) == ["helper.py"]


def test_a_learners_other_notebooks_do_not_count_if_one_is_of_the_lab(tmp_path: Path) -> None:
    notebook(tmp_path / "anna/lab.ipynb", CALL)
    notebook(tmp_path / "anna/notes.ipynb", "1")
    notebook(tmp_path / "ben/notes.ipynb", "1")
    found = find_submissions(tmp_path, lab_checks=["02_min_insync"])
    assert [submission.name for submission in found] == ["anna/lab.ipynb", "ben/notes.ipynb"]


def test_a_link_hands_in_no_file_of_the_markers(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("{}")
    (tmp_path / "all/anna").mkdir(parents=True)
    notebook(tmp_path / "all/anna/lab.ipynb", CALL)
    (tmp_path / "all/anna/data").symlink_to(secret)
    (tmp_path / "all/ben.ipynb").symlink_to(secret)
    anna, ben = find_submissions(tmp_path / "all")
    assert not anna.beside
    with pytest.raises(Unreadable, match="symbolic link"):
        read_cells(ben.path)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "not a notebook: an empty file"),
        ("PK\x03\x04", "not a notebook"),
        ("[" * 100_000, "not a notebook"),
        ("{}", "not a notebook"),
        ('{"cells": 3}', "not a notebook"),
        ('{"cells": [{"cell_type": "code"}]}', "not a notebook"),
        ('{"cells": [{"cell_type": "markdown", "source": "x"}]}', "no cell of code"),
        ('{"cells": []}', "no cell of code"),
    ],
)
def test_what_is_no_notebook_gets_a_row_with_the_reason(tmp_path: Path, content: str, reason: str) -> None:
    (tmp_path / "it.ipynb").write_text(content)
    [submission] = find_submissions(tmp_path)
    assert prepare(submission, find_lab(LAB), None) == Mark("it.ipynb", LAB, reason=reason)


def test_a_folder_without_a_notebook_and_a_notebook_without_a_check(tmp_path: Path) -> None:
    (tmp_path / "anna").mkdir()
    notebook(tmp_path / "ben.ipynb", "1 + 1")
    anna, ben = (prepare(submission, None, None) for submission in find_submissions(tmp_path))
    assert isinstance(anna, Mark) and anna.reason == "no notebook in this folder"
    assert isinstance(ben, Mark) and "--lab" in ben.reason


def test_the_lab_is_the_one_whose_checks_are_called(tmp_path: Path) -> None:
    notebook(tmp_path / "anna.ipynb", CALL, 'check("00_first_record", cluster)', 'check("02_isr_grows", cluster)')
    task = prepare(find_submissions(tmp_path)[0], None, 7)
    assert isinstance(task, Task)
    assert (task.lab.stem, task.limits.seconds) == (LAB, 7)


def test_the_time_limit_is_three_times_the_labs_own() -> None:
    assert seconds_for("02_failsafe") == 150  # as its metadata say: 50
    assert seconds_for("00_first_record") == 90  # a kernel needs time to start, too


@pytest.mark.parametrize("stem", ["02_failsafe", "11_lakehouse"])
def test_every_check_of_a_lab_is_called_in_a_submission_that_calls_none(stem: str, tmp_path: Path) -> None:
    task = prepare(Submission("x", notebook(tmp_path / "x.ipynb", "cluster = 1", "cluster.stop()"), {}), find_lab(stem), None)
    assert isinstance(task, Task)
    called = [check for step in task.steps for check in step.checks]
    assert called == [check.id for check in task.lab.checks]
    assert [step.number for step in task.steps] == [1, *[0] * len(called), 2], "before the cluster stops"


# -- the plan ---------------------------------------------------------------------------------------------------------

OF_THE_LAB = [Cell("a", "start"), Cell("b", 'check("02_x", cluster)'), Cell("c", "more"), Cell("d", 'check("02_y", cluster)')]
CHECKS = ["02_x", "02_y"]


def sources(*submitted: Cell) -> list[str]:
    return [step.source for step in plan(submitted, OF_THE_LAB, CHECKS)]


def test_learners_call_a_check_with_their_own_names() -> None:
    own = [Cell("a", "start"), Cell("b", 'check("02_x", my_cluster)'), Cell("", "more"), Cell("z", 'check("02_y", c)')]
    assert sources(*own) == [cell.source for cell in own]
    assert [step.instead for step in plan(own, OF_THE_LAB, CHECKS) if step.checks] == [
        {"02_x": 'check("02_x", cluster)'},
        {"02_y": 'check("02_y", cluster)'},
    ]


def test_a_check_that_was_deleted_is_called_where_the_lab_does() -> None:
    assert sources(Cell("a", "start"), Cell("n", "new"), Cell("c", "more"), Cell("e", "end")) == [
        "start", 'check("02_x", cluster)', "new", "more", 'check("02_y", cluster)', "end",
    ]  # fmt: skip


def test_without_the_labs_ids_it_is_called_before_the_cluster_stops() -> None:
    assert sources(Cell("", "all"), Cell("", "cluster.stop()")) == [
        "all", 'check("02_x", cluster)', 'check("02_y", cluster)', "cluster.stop()",
    ]  # fmt: skip


# -- rows -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def lab() -> Lab:
    lab = Lab("02_lab")
    for id, number in (("02_x", 2), ("02_y", 1)):
        check = lab.add_check(id, "Title", hints=())
        for place in range(number):
            check.requires(f"it holds {place}")(lambda ctx: None)
    return lab


def task_of(lab: Lab, name: str, limits: Limits = Limits(30)) -> Task:
    return Task(Submission(name, Path(name), {}), lab, [], limits)


def test_rows_have_each_requirement(lab: Lab) -> None:
    marks = [Mark("anna", "02_lab", {"02_x": ["met", "unmet"]}, 12.4), Mark("ben", reason="not a notebook")]
    anna, ben = rows(as_csv(marks, {"02_lab": lab}))
    assert anna == {
        "submission": "anna", "lab": "02_lab", "met": "1", "of": "3", "seconds": "12", "reason": "",
        "02_x: it holds 0": "met", "02_x: it holds 1": "unmet", "02_y: it holds 0": "not reached",
    }  # fmt: skip
    assert (ben["reason"], ben["of"], ben["02_x: it holds 0"]) == ("not a notebook", "", "")


def test_no_spreadsheet_takes_a_name_for_a_formula() -> None:
    [row] = rows(as_csv([Mark('=HYPERLINK("x")', reason="-1+1")], {}))
    assert (row["submission"], row["reason"]) == ('\'=HYPERLINK("x")', "'-1+1")


def test_one_that_cannot_be_run_does_not_end_the_others(lab: Lab) -> None:
    def run(task: Task, interrupted: Event) -> Mark:
        if task.submission.name == "ben":
            raise KafkaLabError("no room")
        return Mark(task.submission.name, "02_lab", {"02_x": ["met", "met"]})

    kept: list[list[Mark]] = []
    work = [task_of(lab, "anna"), Mark("x", reason="not a notebook"), task_of(lab, "ben"), task_of(lab, "cleo")]
    marks = grade(work, run, at_once=2, keep=lambda marks: kept.append(list(marks)), done=lambda mark: None)
    assert [mark.submission for mark in marks] == ["anna", "x", "ben", "cleo"]
    assert [mark.reason for mark in marks] == ["", "not a notebook", "it couldn't be run: no room", ""]
    assert [mark.reason for mark in kept[0]][::2] == ["not run: the grading was interrupted"] * 2, "rows from the start"


def test_an_interrupt_keeps_the_rows(lab: Lab) -> None:
    def run(task: Task, interrupted: Event) -> Mark:
        raise KeyboardInterrupt

    kept: list[list[Mark]] = []
    with pytest.raises(KeyboardInterrupt):
        grade([task_of(lab, "anna")], run, at_once=1, keep=lambda marks: kept.append(list(marks)), done=lambda mark: None)
    assert len(kept) == 1


# -- a worker, and its limits -----------------------------------------------------------------------------------------

REPORTS = """
import json, os, signal, subprocess, sys
def tell(**event): print(json.dumps(event), flush=True)
json.loads(sys.stdin.readline())
tell(cell=1, checks=["02_x"])
tell(check="02_x", of=2)
tell(check="02_x", state="met")
"""


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch, lab: Lab) -> Callable[..., Mark]:
    """Run a stand-in for the worker: it reports one requirement as met, then does something."""

    def run(then: str, interrupted: Event = Event(), **limits: float) -> Mark:
        code = REPORTS + textwrap.dedent(then)
        monkeypatch.setattr(Isolation, "command", lambda *_: [sys.executable, "-c", code])
        return run_submission(
            Submission("anna", Path("anna"), {}), lab, [], process_group(), Limits(**{"seconds": 30, **limits}), interrupted
        )

    return run


def test_a_worker_that_ends_well(worker: Callable[..., Mark]) -> None:
    mark = worker('tell(check="02_x", state="unmet"); tell(ended=True)')
    assert (mark.states, mark.met, mark.reason) == ({"02_x": ["met", "unmet"]}, 1, "")


@pytest.mark.parametrize(
    ("then", "limits", "reason"),
    [
        ("while True: pass", {"seconds": 1}, "time limit of 1 s, in cell 1, the check 02_x"),
        ("held = bytearray(200 << 20); signal.pause()", {"memory_bytes": 100 << 20}, "memory limit of 100 MB, in cell 1"),
        ("import threading\nfor _ in range(40): threading.Thread(target=threading.Event().wait).start()", {"tasks": 20},
         "limit of 20 processes and threads"),
        ("for n in range(9):\n  open(f'{n}', 'wb').write(bytes(1 << 20))\nsignal.pause()",
         {"disk_bytes": 4 << 20}, "disk limit of 4 MB"),
        ("tell(cell=5, error='NameError: x'); tell(ended=True)", {}, "cell 5: NameError: x"),
        ("tell(reason='the kernel ended (exit code 1)')", {}, "the kernel ended (exit code 1)"),
        ("sys.exit('no such module')", {}, "its process ended: no such module"),
        ("print('garbage', flush=True); print([1], flush=True); tell(check=3); tell(ended=True)", {}, ""),
    ],
)  # fmt: skip
def test_what_was_reached_counts_and_the_reason_says_what_ended_it(
    worker: Callable[..., Mark], then: str, limits: dict[str, float], reason: str
) -> None:
    before = own_runs()  # a module that this process ran earlier may keep one
    mark = worker(then, **limits)
    assert mark.met == 1
    assert mark.reason.startswith(reason) and bool(mark.reason) == bool(reason)
    assert own_runs() == before


def test_what_is_in_the_channel_when_a_limit_is_exceeded_counts(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit is looked at first here, after the worker has reported and before anybody has read it."""
    look = Guard.look

    def late(guard: Guard, worker: int) -> None:
        wait_until(lambda: (guard.run.directory / "reported").exists(), PATIENCE, "a report")
        look(guard, worker)

    code = REPORTS + "open('big', 'wb').write(bytes(9 << 20)); open('reported', 'w')\nwhile True: tell(cell=2, checks=[])"
    monkeypatch.setattr(Isolation, "command", lambda *_: [sys.executable, "-c", code])
    monkeypatch.setattr(Guard, "look", late)
    limits = Limits(seconds=30, disk_bytes=4 << 20)
    mark = run_submission(Submission("anna", Path("anna"), {}), lab, [], process_group(), limits, Event())
    assert mark.met == 1 and mark.reason.startswith("disk limit of 4 MB")


def test_nothing_is_left_of_a_submission_that_hides_its_processes(worker: Callable[..., Mark], tmp_path: Path) -> None:
    note = tmp_path / "pid"
    mark = worker(
        f"""
        child = subprocess.Popen(["sleep", "600"], start_new_session=True)
        open({str(note)!r}, "w").write(str(child.pid))
        tell(ended=True)
        """
    )
    assert not mark.reason
    assert not os.path.exists(f"/proc/{note.read_text()}/exe") or sys.platform != "linux"


def test_an_interrupt_ends_a_submission_that_runs(worker: Callable[..., Mark]) -> None:
    interrupted = Event()
    interrupted.set()
    assert worker("while True: pass", interrupted).reason.startswith("the grading was interrupted")


def test_the_best_evaluation_of_a_check_counts(worker: Callable[..., Mark]) -> None:
    mark = worker(
        'tell(check="02_x", state="met"); tell(check="02_x", of=2); tell(check="02_x", state="unmet"); tell(ended=True)'
    )
    assert mark.states == {"02_x": ["met", "met"]}


def test_reports_of_checks_that_the_lab_does_not_have_count_for_nothing(worker: Callable[..., Mark]) -> None:
    mark = worker(
        'tell(check="02_z", of=1); tell(check="02_z", state="met"); [tell(check="02_x", state="met") for _ in range(9)]'
    )
    assert mark.met == 2


# -- isolation, and the command ---------------------------------------------------------------------------------------


def test_a_submission_inherits_nothing_but_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    run = Run("grade-x")
    assert "secret" not in " ".join(process_group().environment(run).values())
    assert process_group().environment(run)["HOME"] == str(run.directory / "home")


def test_help_says_what_there_is_and_what_there_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation, "why_no_namespaces", lambda: "only Linux has them")
    assert "only Linux has them" in isolation.describe()
    assert "CAN REACH THE\nNETWORK AND READ AND CHANGE YOUR FILES" in isolation.describe()
    assert isolation.choose(in_container=False) == process_group()
    monkeypatch.setattr(isolation, "why_no_namespaces", lambda: None)
    assert "no network" in isolation.describe()
    assert isolation.choose(in_container=False).kind == "namespaces"


def test_containers_without_docker(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    with pytest.raises(BackendUnavailable, match="(no Docker engine answers|there is no `docker`)"):
        isolation.container()


def test_a_folder_that_is_missing_or_empty(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for folder, said in ((tmp_path / "none", "is no folder"), (tmp_path, "there is no submission in")):
        assert main(["grade", str(folder), "--output", str(tmp_path / "marks.csv")]) == 1
        assert said in capsys.readouterr().err


def test_the_command_writes_a_row_for_each_even_if_none_can_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "all").mkdir()
    (tmp_path / "all/anna.ipynb").touch()
    (tmp_path / "all/ben.pdf").write_bytes(b"%PDF")
    assert main(["grade", str(tmp_path / "all"), "--lab", LAB, "--output", str(tmp_path / "marks.csv")]) == 0
    assert [row["reason"] for row in rows((tmp_path / "marks.csv").read_text())] == [
        "not a notebook: an empty file",
        "not a notebook",
    ]
    assert "anna.ipynb  0 of 8 requirements, 0 s. not a notebook" in capsys.readouterr().out


def test_a_lab_that_there_is_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["grade", str(tmp_path), "--lab", "02_failsave"]) == 1
    assert "there is no lab notebook '02_failsave'" in capsys.readouterr().err


def test_folders_that_only_their_owner_enters_are_opened_for_what_is_in_them(tmp_path: Path) -> None:
    (program := tmp_path / "private/open/program").mkdir(parents=True)
    (tmp_path / "private").chmod(0o700)
    (tmp_path / "private/open").chmod(0o755)
    closed = isolation._closed([str(program)])
    assert tmp_path / "private" in closed and tmp_path / "private/open" not in closed and program not in closed

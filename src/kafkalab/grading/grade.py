"""Grade all submissions, several at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event

from kafkalab.checks.lab import Lab, find_lab
from kafkalab.course import find_course
from kafkalab.course.names import checks_of
from kafkalab.errors import KafkaLabError
from kafkalab.grading.limits import Limits
from kafkalab.grading.marks import Mark
from kafkalab.grading.plan import Step, plan
from kafkalab.grading.submissions import Cell, Submission, Unreadable, lab_meant_by, read_cells

__all__ = ["Runner", "Task", "grade", "prepare", "seconds_for"]

_FACTOR = 3  # the marker's machine may be slower, and run several at once
_FEWEST_SECONDS = 90.0

Runner = Callable[["Task", Event], Mark]
"""Runs a submission, and ends it early once the event is set."""


@dataclass(frozen=True)
class Task:
    """A submission that can be run.

    Attributes
    ----------
    submission, lab
        Whose, and of what.
    steps
        What to run.
    limits
        How far it may go.
    """

    submission: Submission
    lab: Lab
    steps: Sequence[Step]
    limits: Limits


def seconds_for(stem: str) -> float:
    """Return the time limit for a lab: three times as long as its solution ran, and at least 90 s."""
    known = find_course().content.lab_facts(stem).seconds
    return max(_FEWEST_SECONDS, _FACTOR * (known or 0))


def prepare(submission: Submission, lab: Lab | None, seconds: float | None) -> Task | Mark:
    """Return what there is to run for a submission, or its row if nothing can be run.

    Parameters
    ----------
    lab
        Its lab. None to go by the checks that it calls.
    seconds
        The time limit. None for the lab's own.
    """
    stem = lab.stem if lab else ""
    try:
        cells = read_cells(submission.path)
    except Unreadable as reason:
        return Mark(submission.name, stem, reason=str(reason))
    if lab is None:
        meant = lab_meant_by(cells, _labs_by_check())
        if meant is None:
            return Mark(submission.name, reason="it calls no check of a lab; --lab names the one to grade")
        lab = find_lab(meant)
    steps = plan(cells, _cells_of(lab), [check.id for check in lab.checks])
    return Task(submission, lab, steps, Limits(seconds or seconds_for(lab.stem)))


def _labs_by_check() -> Mapping[str, str]:
    files = find_course().content.files()
    labs = [path for name, path in files.items() if name.startswith("labs/") and name.endswith(".ipynb")]
    return {check: path.stem for path in labs for check in checks_of(path)}


def _cells_of(lab: Lab) -> list[Cell]:
    content = find_course().content
    return read_cells(Path(content.root, "labs", content.chapter_of(lab.stem), f"{lab.stem}.ipynb"))


def grade(
    work: Sequence[Task | Mark],
    run: Runner,
    *,
    at_once: int,
    keep: Callable[[Sequence[Mark]], object],
    done: Callable[[Mark], object],
) -> list[Mark]:
    """Run what can be run, and return a mark for each, in order.

    Parameters
    ----------
    run
        Runs a submission. If it fails, that's the reason in the submission's row, and the others go on.
    at_once
        How many run in parallel.
    keep
        Called with all marks each time one is known, so that they can be stored. Those still to come have a reason, too.
    done
        Called with each mark, as soon as it's known.
    """
    marks = [_not_yet(item) if isinstance(item, Task) else item for item in work]
    keep(marks)
    for item in work:
        if isinstance(item, Mark):
            done(item)

    interrupted = Event()

    def run_one(task: Task) -> Mark:
        try:
            return run(task, interrupted)
        except (KafkaLabError, OSError) as error:
            return replace(_not_yet(task), reason=f"it couldn't be run: {error}")

    with ThreadPoolExecutor(at_once) as threads:
        places = {threads.submit(run_one, item): place for place, item in enumerate(work) if isinstance(item, Task)}
        try:
            for future in as_completed(places):
                place = places[future]
                marks[place] = future.result()
                keep(marks)
                done(marks[place])
        except BaseException:
            interrupted.set()
            threads.shutdown(cancel_futures=True)
            raise
    return marks


def _not_yet(task: Task) -> Mark:
    return Mark(task.submission.name, task.lab.stem, reason="not run: the grading was interrupted")

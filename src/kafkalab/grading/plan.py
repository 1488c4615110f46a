"""Decide what runs for a submission: the learner's cells in order, and the marker's own calls of the checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from kafkalab.course.names import CHECK
from kafkalab.grading.submissions import Cell

__all__ = ["Step", "as_payload", "plan"]


@dataclass(frozen=True)
class Step:
    """A cell to run.

    Attributes
    ----------
    source
        Its code.
    number
        Its place among the submission's cells of code, from 1. 0 if it's the marker's.
    may_fail
        Whether an error in it is intended.
    checks
        The checks of the lab that it calls. The marker's evaluation takes the place of `check` in it.
    instead
        The marker's cells, by check, for those that it doesn't call after all.
    """

    source: str
    number: int
    may_fail: bool
    checks: tuple[str, ...]
    instead: dict[str, str]


def plan(submitted: Sequence[Cell], lab: Sequence[Cell], checks: Sequence[str]) -> list[Step]:
    """Return the steps for a submission.

    A learner may have deleted, moved or rewritten a cell that calls a check. Each check of the lab is called all the same:
    where the learner calls it, or else by the lab's own cell, behind the cells that come before it in the lab.

    Parameters
    ----------
    submitted, lab
        The cells of the submission, and of the lab's own notebook.
    checks
        The lab's checks, in order.
    """
    own = {name: cell.source for cell in lab for name in CHECK.findall(cell.source) if name in checks}
    steps = [_step(number, cell, checks, own) for number, cell in enumerate(submitted, 1)]
    called = {name for step in steps for name in step.checks}
    places = {cell.id: number for number, cell in enumerate(submitted) if cell.id}
    added: dict[int, list[Step]] = {}
    for name in checks:
        if name not in called and name in own:
            before = _before(name, lab)
            known = [places[cell.id] for cell in before if cell.id in places]
            place = max(known) if known else _last_before_the_end(submitted)
            added.setdefault(place, []).append(Step(own[name], 0, False, (name,), {}))
    return [*added.get(-1, []), *(more for place, step in enumerate(steps) for more in (step, *added.get(place, [])))]


def _step(number: int, cell: Cell, checks: Sequence[str], own: Mapping[str, str]) -> Step:
    called = tuple(dict.fromkeys(name for name in CHECK.findall(cell.source) if name in checks))
    return Step(cell.source, number, cell.may_fail, called, {name: own[name] for name in called if name in own})


def _before(check: str, lab: Sequence[Cell]) -> list[Cell]:
    """Return the lab's cells before the one that calls a check."""
    for number, cell in enumerate(lab):
        if check in CHECK.findall(cell.source):
            return list(lab[:number])
    return []


def _last_before_the_end(cells: Sequence[Cell]) -> int:
    """Return the place of the last cell that doesn't stop the cluster. After that there is nothing to check."""
    return max((place for place, cell in enumerate(cells) if ".stop()" not in cell.source), default=-1)


def as_payload(steps: Sequence[Step]) -> list[dict[str, Any]]:
    """Return the steps in a form that JSON can hold."""
    return [asdict(step) for step in steps]

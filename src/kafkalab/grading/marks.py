"""What came of the submissions: a row for each, whatever happened."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kafkalab.checks.lab import Lab

__all__ = ["Mark", "as_csv"]

_COLUMNS = ("submission", "lab", "met", "of", "seconds", "reason")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet would run such a text


@dataclass(frozen=True)
class Mark:
    """The result of a submission.

    Attributes
    ----------
    submission
        Its name.
    lab
        The lab's stem, or an empty text if nobody knows.
    states
        By check, the state of each requirement in order: ``met``, ``unmet`` or ``waiting``. The best evaluation of each check
        counts: a requirement that was met stays met.
    seconds
        How long it ran.
    reason
        What went wrong: an empty text if nothing did.
    """

    submission: str
    lab: str = ""
    states: Mapping[str, Sequence[str]] = field(default_factory=dict)
    seconds: float = 0.0
    reason: str = ""

    @property
    def met(self) -> int:
        """How many requirements are met."""
        return sum(state == "met" for states in self.states.values() for state in states)


def as_csv(marks: Sequence[Mark], labs: Mapping[str, Lab]) -> str:
    """Return the marks as CSV: a line each, and a column for each requirement of their labs.

    A requirement that was never looked at is ``not reached``. One of another lab is empty.
    """
    used = [labs[stem] for stem in dict.fromkeys(mark.lab for mark in marks) if stem in labs]
    requirements = [
        (lab, check, place, r) for lab in used for check in lab.checks for place, r in enumerate(check.requirements)
    ]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*_COLUMNS, *(f"{check.id}: {requirement.says}" for _, check, _, requirement in requirements)])
    for mark in marks:
        total = sum(lab.stem == mark.lab for lab, *_ in requirements)
        states = [_state(mark, check.id, place) if lab.stem == mark.lab else "" for lab, check, place, _ in requirements]
        row = (mark.submission, mark.lab, mark.met, total or "", f"{mark.seconds:.0f}", mark.reason, *states)
        writer.writerow([_plain(value) for value in row])
    return text.getvalue()


def _state(mark: Mark, check: str, place: int) -> str:
    states = mark.states.get(check, ())
    return states[place] if place < len(states) else "not reached"


def _plain(value: object) -> object:
    """Learners choose names and messages of errors. No spreadsheet may take one for a formula."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value

"""What a learner calls in a lab: `check` and `hint`."""

from __future__ import annotations

from collections.abc import Callable

from kafkalab import progress, underway
from kafkalab.checks.context import CheckContext
from kafkalab.checks.lab import find_check
from kafkalab.checks.requirements import Check, Report, evaluate
from kafkalab.classroom.presence import current, tell_checked
from kafkalab.cluster import Cluster

__all__ = ["check", "hint", "on_report", "tell_class"]

on_report: list[Callable[[Report, CheckContext], bool]] = []
"""Functions to call with what `check` found. They return whether they show it beside the notebook. Lab cards register here."""


def check(id: str, cluster: Cluster, /, **answers: object) -> Report:
    """Check whether the cluster shows what a lab asks for, print a verdict, and record it in the learner's progress.

    The verdict is one line where the lab's card stands beside the notebook and has the details.

    Parameters
    ----------
    id
        For example ``"02_failsafe"``.
    cluster
        The learner's cluster.
    **answers
        Answers that no cluster can give, such as something you worked out on paper.

    Returns
    -------
    Report
        True if every requirement is met.

    Raises
    ------
    KafkaLabError
        If the check doesn't exist.
    TypeError
        If `cluster` isn't one.
    """
    asked = find_check(id)
    if not hasattr(cluster, "describe"):
        raise TypeError(f"check({id!r}, …) takes your cluster next, such as cluster, not a {type(cluster).__name__}")
    ctx = CheckContext(cluster, answers)
    with underway.task(f"Checking {asked.id}"):
        report = evaluate(asked, ctx)
    progress.record_lab(asked.id, bool(report))
    tell_class(asked, report)
    is_beside = [callback(report, ctx) for callback in on_report]  # each of them, so no generator in any()
    print(report.brief if any(is_beside) else report)
    return report


def tell_class(check: Check, report: Report) -> None:
    """Tell the learner's class, if there is one, what a check has found. Takes no time, and never fails."""
    if current() is None:
        return
    known = progress.load().labs.get(check.id)
    attempt = known.checks if known else 1  # none where the progress can't be kept
    tell_checked(check.id, [result.state for result in report.results], attempt, check.opened)


def hint(id: str) -> None:
    """Print the next hint of a check. After the last one, say so.

    Raises
    ------
    KafkaLabError
        If the check doesn't exist.
    """
    asked = find_check(id)
    if asked.open_hint():
        print(f"Hint {asked.opened} of {len(asked.hints)}: {asked.hints[asked.opened - 1]}")
    else:
        print(f"That was the last hint. `kafkalab solution {asked.id}` in a terminal opens the solution.")

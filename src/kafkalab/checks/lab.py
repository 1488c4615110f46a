"""Labs and their checks: requirements that are checked in the cluster, and hints that open one at a time.

There is a module per notebook, in a package per chapter: ``checks/ch02_cluster_failover/failsafe.py`` checks the
notebook ``02_failsafe``. Its name `notebook` is a `Notebook`, and `Notebook.check` makes the notebook's checks. A
decorator on each probe registers its requirement::

    notebook = Notebook("02_failsafe", difficulty="easy", minutes=30, needs="chapter 02, sections 1 to 4")

    lab = notebook.check("02_describe", "Who leads what", hints=("…", "…"))

    @lab.requires("The table shows every partition's leader")
    def leaders_are_right(ctx: CheckContext) -> None:
        if …:
            raise Unmet("…")
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from typing import Literal

from confluent_kafka import KafkaException

from kafkalab import progress
from kafkalab.checks.context import CheckContext, Unmet
from kafkalab.cluster import Cluster
from kafkalab.errors import KafkaLabError

__all__ = [
    "Difficulty",
    "Lab",
    "Notebook",
    "Probe",
    "Report",
    "Requirement",
    "Result",
    "Unmet",
    "check",
    "evaluate",
    "find_lab",
    "find_notebook",
    "hint",
    "labs",
    "notebooks",
    "on_report",
    "stems",
]

Probe = Callable[[CheckContext], None]
"""Checks one thing, and raises `Unmet` if it isn't so."""

Difficulty = Literal["easy", "medium", "hard"]


@dataclass(frozen=True)
class Requirement:
    """One thing that the cluster must show.

    Attributes
    ----------
    says
        What must be true, as a statement without figures that differ between runs.
    probe
        Checks it, and raises `Unmet` if it isn't true.
    after
        Probes of the same lab that must pass first. Until then this one isn't run, so that nothing passes only because
        there is nothing to look at yet.
    """

    says: str
    probe: Probe
    after: tuple[Probe, ...] = ()


class Lab:
    """One check of a lab.

    Parameters
    ----------
    id
        Its name in `check` and `hint`: ``NN_name``.
    title
        What the learner does.
    hints
        From vague to explicit.

    Attributes
    ----------
    opened
        How many hints the learner has opened, with `hint` or on the card.
    """

    def __init__(self, id: str, title: str, *, hints: Sequence[str] = ()) -> None:
        self.id = id
        self.title = title
        self.hints = tuple(hints)
        self.opened = 0
        self._requirements: list[Requirement] = []

    @property
    def requirements(self) -> tuple[Requirement, ...]:
        """The requirements, in the order in which they are checked."""
        return tuple(self._requirements)

    def requires(self, says: str, *, after: Probe | Sequence[Probe] = ()) -> Callable[[Probe], Probe]:
        """Register a probe as a requirement. This decorator returns the probe unchanged.

        Parameters
        ----------
        says
            What must be true, as a statement.
        after
            Probes registered before that must pass first. Without them, this one would find nothing to look at.
        """
        first = (after,) if callable(after) else tuple(after)
        if unknown := [p for p in first if p not in [r.probe for r in self._requirements]]:
            raise ValueError(f"{self.id}: {says!r} comes after a probe that was not registered before: {unknown[0]}")

        def register(probe: Probe) -> Probe:
            self._requirements.append(Requirement(says, probe, first))
            return probe

        return register

    def open_hint(self) -> bool:
        """Open the next hint. Return False if all were open."""
        more = self.opened < len(self.hints)
        self.opened += more
        return more


class Notebook:
    """A lab's notebook: what its reader wants to know beforehand, and its checks in order.

    Parameters
    ----------
    stem
        The name of its file without the suffix, ``NN_name``.
    difficulty
        How much of it the chapter hasn't shown before.
    minutes
        About how long a learner needs, as its author estimates.
    needs
        What to read or do before.
    """

    def __init__(self, stem: str, *, difficulty: Difficulty, minutes: int, needs: str) -> None:
        self.stem = stem
        self.difficulty = difficulty
        self.minutes = minutes
        self.needs = needs
        self.labs: list[Lab] = []

    def check(self, id: str, title: str, *, hints: Sequence[str]) -> Lab:
        """Add a check."""
        lab = Lab(id, title, hints=hints)
        self.labs.append(lab)
        return lab


@cache
def _modules() -> Mapping[str, str]:
    # By the notebook's stem. A card and a check import their own only: chapter 11's alone take PySpark a second.
    package = importlib.import_module("kafkalab.checks")
    chapters = sorted(m.name for m in pkgutil.iter_modules(package.__path__) if m.ispkg and m.name.startswith("ch"))
    named = {chapter: importlib.import_module(f"kafkalab.checks.{chapter}").NOTEBOOKS for chapter in chapters}
    return {f"{chapter[2:4]}_{name}": f"kafkalab.checks.{chapter}.{name}" for chapter in named for name in named[chapter]}


def stems() -> Sequence[str]:
    """Return the stems of all notebooks of labs, in order of the chapters and as each chapter names them."""
    return list(_modules())


def find_notebook(stem: str) -> Notebook:
    """Return what is known of a lab's notebook.

    Raises
    ------
    KafkaLabError
        If there is none. The message suggests similar names.
    """
    if stem not in _modules():
        near = [other for other in stems() if other[:2] == stem[:2]] or stems()
        raise KafkaLabError(f"there is no lab notebook {stem!r}; did you mean {' or '.join(near)}?")
    notebook: Notebook = importlib.import_module(_modules()[stem]).notebook
    return notebook


def notebooks() -> Mapping[str, Notebook]:
    """Return all notebooks of labs by their stem, in the order of `stems`."""
    return {stem: find_notebook(stem) for stem in stems()}


def labs(chapter: str = "") -> Mapping[str, Lab]:
    """Return the checks of a chapter (``05``), or of all of them, by id, in order."""
    return {lab.id: lab for stem in stems() if stem.startswith(chapter) for lab in find_notebook(stem).labs}


def find_lab(lab_id: str) -> Lab:
    """Return the check with that id. The name of a notebook with only one check works, too.

    Raises
    ------
    KafkaLabError
        If there is none. The message suggests similar names.
    """
    known = labs(lab_id[:2])
    if lab_id in known:
        return known[lab_id]
    if lab_id in stems():
        checks = [lab.id for lab in find_notebook(lab_id).labs]
        if len(checks) == 1:
            return known[checks[0]]
        raise KafkaLabError(f"{lab_id} is a notebook with {len(checks)} checks: {', '.join(checks)}. Name one of them.")
    near = get_close_matches(lab_id, labs(), n=3) or list(known) or list(labs())
    raise KafkaLabError(f"there is no lab {lab_id!r}; did you mean {' or '.join(near[:3])}?")


@dataclass(frozen=True)
class Result:
    """The result of one requirement. `message` is empty if it's met."""

    says: str
    state: Literal["met", "unmet", "waiting"]
    message: str = ""


@dataclass(frozen=True)
class Report:
    """The result of a check. True if all requirements are met. A cell that ends with it shows only what `check` printed."""

    lab: str
    title: str
    results: tuple[Result, ...]

    def __bool__(self) -> bool:
        return all(result.state == "met" for result in self.results)

    def __str__(self) -> str:
        lines = [f"{self.lab}: {self.title}"]
        for result in self.results:
            lines.append(f"  {_SYMBOLS[result.state]} {result.says}")
            if result.message:
                lines.append(f"      {result.message}")
        return "\n".join([*lines, self.summary])

    @property
    def summary(self) -> str:
        """The last line: how many requirements are met."""
        met, total = sum(result.state == "met" for result in self.results), len(self.results)
        if self:
            return f"{'All ' + str(total) + ' requirements are' if total > 1 else 'The requirement is'} met. Lab passed."
        return f"{met} of {total} {'requirements are' if total > 1 else 'requirement is'} met."

    def _ipython_display_(self) -> None:
        """Show nothing, because `check` has printed it."""


_SYMBOLS = {"met": "✓", "unmet": "✗", "waiting": "·"}


def evaluate(lab: Lab, ctx: CheckContext) -> Report:
    """Run every probe of a check.

    A requirement that can't be checked, for example because no broker answers, is unmet. A requirement that depends on
    another isn't checked until that one is met.
    """
    met: set[Probe] = set()
    results = []
    says = {requirement.probe: requirement.says for requirement in lab.requirements}
    for requirement in lab.requirements:
        if missing := [says[probe] for probe in requirement.after if probe not in met]:
            results.append(Result(requirement.says, "waiting", f"Not looked at yet. First: {missing[0]}."))
            continue
        try:
            requirement.probe(ctx)
        except Unmet as unmet:
            results.append(Result(requirement.says, "unmet", str(unmet)))
        except (KafkaLabError, KafkaException, ConnectionError, TimeoutError) as error:
            results.append(Result(requirement.says, "unmet", f"This could not be looked up: {error}"))
        else:
            met.add(requirement.probe)
            results.append(Result(requirement.says, "met"))
    return Report(lab.id, lab.title, tuple(results))


def check(lab_id: str, cluster: Cluster, **answers: object) -> Report:
    """Check whether the cluster shows what a lab asks for, print a verdict, and record it in the learner's progress.

    Parameters
    ----------
    lab_id
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
        If the lab doesn't exist.
    TypeError
        If `cluster` isn't one.
    """
    lab = find_lab(lab_id)
    if not hasattr(cluster, "describe"):
        raise TypeError(f"check({lab_id!r}, …) takes your cluster next, such as cluster, not a {type(cluster).__name__}")
    ctx = CheckContext(cluster, answers)
    report = evaluate(lab, ctx)
    print(report)
    progress.record_lab(lab.id, bool(report))
    for callback in on_report:
        callback(report, ctx)
    return report


on_report: list[Callable[[Report, CheckContext], object]] = []
"""Functions to call with what `check` found. Lab cards register here."""


def hint(lab_id: str) -> None:
    """Print the lab's next hint. After the last one, say so.

    Raises
    ------
    KafkaLabError
        If the lab doesn't exist.
    """
    lab = find_lab(lab_id)
    if lab.open_hint():
        print(f"Hint {lab.opened} of {len(lab.hints)}: {lab.hints[lab.opened - 1]}")
    else:
        print(f"That was the last hint. `kafkalab solution {lab.id}` in a terminal opens the solution.")

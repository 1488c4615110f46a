"""Checks, and what they find: requirements that must hold in the learner's cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from confluent_kafka import KafkaException

from kafkalab.checks.context import CheckContext, NotNow, Unmet
from kafkalab.errors import KafkaLabError

__all__ = ["Check", "Probe", "Report", "Requirement", "Result", "evaluate", "results_of"]

Probe = Callable[[CheckContext], None]
"""Looks at one thing, and raises `Unmet` if it isn't so."""


@dataclass(frozen=True)
class Requirement:
    """One thing that the cluster must show.

    Attributes
    ----------
    says
        What must be true, as a statement without figures that differ between runs.
    probe
        Raises `Unmet` if it isn't true.
    after
        Probes of the same check that must pass first. Until then this one isn't run, so that nothing passes only because
        there is nothing to look at yet.
    """

    says: str
    probe: Probe
    after: tuple[Probe, ...] = ()


class Check:
    """A check of a lab: its requirements, and hints.

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
        """The requirements, in the order in which they are looked at."""
        return tuple(self._requirements)

    def requires(self, says: str, *, after: Probe | Sequence[Probe] = ()) -> Callable[[Probe], Probe]:
        """Register a probe as a requirement. This decorator returns the probe unchanged.

        Parameters
        ----------
        says, after
            See `Requirement`. A single probe may stand for a list of one.

        Raises
        ------
        ValueError
            If a probe in `after` wasn't registered before.
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


@dataclass(frozen=True)
class Result:
    """The result of one requirement. `message` is empty if it's met."""

    says: str
    state: Literal["met", "unmet", "waiting"]
    message: str = ""


@dataclass(frozen=True)
class Report:
    """What a check found. True if all requirements are met. A cell that ends with it shows only what `check` printed.

    Attributes
    ----------
    check, title
        The check's id and title.
    results
        One for each requirement, in order.
    """

    check: str
    title: str
    results: tuple[Result, ...]

    def __bool__(self) -> bool:
        return all(result.state == "met" for result in self.results)

    def __str__(self) -> str:
        lines = [f"{self.check}: {self.title}"]
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

    @property
    def brief(self) -> str:
        """One line, for where the lab's card shows the rest."""
        return f"{self.check}: {self.summary}{'' if self else ' The lab card says what is missing.'}"

    def _ipython_display_(self) -> None:
        """Show nothing, because `check` has printed it."""


_SYMBOLS = {"met": "✓", "unmet": "✗", "waiting": "·"}


def evaluate(check: Check, ctx: CheckContext) -> Report:
    """Run every probe of a check.

    A requirement that can't be checked, for example because no broker answers, is unmet. A requirement that depends on
    another isn't checked until that one is met.
    """
    return Report(check.id, check.title, tuple(results_of(check, ctx)))


def results_of(check: Check, ctx: CheckContext) -> Iterator[Result]:
    """Yield the result of each requirement in order. Each probe runs when its result is asked for. See `evaluate`."""
    met: set[Probe] = set()
    says = {requirement.probe: requirement.says for requirement in check.requirements}
    for requirement in check.requirements:
        if missing := [says[probe] for probe in requirement.after if probe not in met]:
            yield Result(requirement.says, "waiting", f"Not looked at yet. First: {missing[0]}.")
            continue
        try:
            requirement.probe(ctx)
        except Unmet as unmet:
            yield Result(requirement.says, "unmet", str(unmet))
        except NotNow:
            yield Result(requirement.says, "waiting")
        except (KafkaLabError, KafkaException, ConnectionError, TimeoutError) as error:
            yield Result(requirement.says, "unmet", f"This could not be looked up: {error}")
        else:
            met.add(requirement.probe)
            yield Result(requirement.says, "met")

"""What the instructor has released: the running poll, questions that are held back, and results."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Literal, get_args

__all__ = ["KEY", "NOTHING", "Phase", "Poll", "Released", "Results"]

KEY = b"released"
"""Key of the one record that the public topic keeps."""

Phase = Literal["first", "discuss", "second", "run", "revealed"]
"""A poll's phases in order: vote alone, discuss with a neighbour, vote again, run the cell, see both votes."""


@dataclass(frozen=True)
class Poll:
    """The poll that runs now: the question's id, and its phase."""

    question: str
    phase: Phase

    def __post_init__(self) -> None:
        if self.phase not in get_args(Phase):
            raise ValueError(f"a poll has no phase {self.phase!r}")


@dataclass(frozen=True)
class Results:
    """What a revealed poll showed.

    Attributes
    ----------
    first, second
        Votes by option, in the order of the options: one number for each.
    guesses
        What was guessed, where the question asks for a number: the last guess of each seat.
    measured
        What the seats measured.
    """

    first: Sequence[int] = ()
    second: Sequence[int] = ()
    guesses: Sequence[float] = ()
    measured: Sequence[float] = ()

    def __post_init__(self) -> None:
        for name in ("first", "second", "guesses", "measured"):  # JSON gives lists
            object.__setattr__(self, name, tuple(getattr(self, name)))


@dataclass(frozen=True)
class Released:
    """The state of a class, as every seat may know it.

    Attributes
    ----------
    poll
        The poll that runs, or None.
    held
        Ids of the questions whose explanation waits for the instructor. A revealed question is no longer among them.
    revealed
        Results by question.
    ended
        Whether the class is over.
    """

    poll: Poll | None = None
    held: frozenset[str] = frozenset()
    revealed: Mapping[str, Results] = field(default_factory=dict)
    ended: bool = False

    def as_json(self) -> str:
        """Return it as the public topic holds it."""
        return json.dumps({**asdict(self), "held": sorted(self.held)})

    @classmethod
    def from_json(cls, text: str | bytes) -> Released:
        """Read what `as_json` wrote.

        Raises
        ------
        ValueError
            If it's something else.
        """
        try:
            data = json.loads(text)
            poll = Poll(**data["poll"]) if data["poll"] else None
            revealed = {question: Results(**results) for question, results in data["revealed"].items()}
            return cls(poll, frozenset(data["held"]), revealed, bool(data["ended"]))
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"it isn't what a class releases: {error!r}") from error


NOTHING = Released()
"""Nothing released yet, and nothing held back."""

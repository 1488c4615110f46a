"""What a prediction has to do with the learner's class: how votes go out, and whether the explanation waits."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from kafkalab.classroom.presence import current
from kafkalab.classroom.small_numbers import FEWEST
from kafkalab.marks import plain

__all__ = ["ClassQuestion"]

_NUMBER = re.compile(r"[-+]?\d+(?:[.,]\d+)?")


class ClassQuestion:
    """One question in the class that was joined, if one was. Without a class, nothing waits and nothing goes out.

    Parameters
    ----------
    id
        The question's id. Without it, the class never hears of the question.
    options
        Its options, or none.
    is_number
        Whether it asks for a number.
    changed
        Called, from another thread, when the class may have changed what holds here.
    """

    def __init__(self, id: str, options: Sequence[str], is_number: bool, changed: Callable[[], None]) -> None:
        self._id = id
        self._options = list(options)
        self._is_number = is_number
        self._alone = False
        link = current() if id else None
        if link is not None:
            link.follow(changed)

    @property
    def phase(self) -> str:
        """The phase of the poll on this question, or "" while there's none."""
        link = current() if self._id else None
        if link is None or self._alone or not link.reachable:
            return ""
        poll = link.released.poll
        return poll.phase if poll is not None and poll.question == self._id else ""

    @property
    def round(self) -> int:
        """The round in which a vote counts now: 1 alone, 2 after the discussion."""
        return 2 if self.phase in ("second", "run") else 1

    @property
    def takes_votes(self) -> bool:
        """Whether the learner may vote now."""
        return self.phase not in ("discuss", "run")

    @property
    def held(self) -> bool:
        """Whether the explanation waits for the instructor."""
        link = current() if self._id else None
        return link is not None and not self._alone and link.holds(self._id)

    def go_on_alone(self) -> None:
        """Don't wait for the class with this question any more."""
        self._alone = True

    def vote(self, guess: str) -> None:
        """Send a vote: the option's number, or the number that was typed. Text stays here."""
        option = self._options.index(guess) if guess in self._options else None
        number = number_in(guess) if self._is_number else None
        if option is not None or number is not None:
            self._send("voted", round=self.round, option=option, number=number)

    def measured(self, text: str) -> None:
        """Send what was measured, as a number. Without one, it says that the experiment has run."""
        self._send("measured", number=number_in(text))

    @property
    def said_by_class(self) -> str:
        """What the class said, in a sentence, once it's released and enough have voted. Else ""."""
        link = current() if self._id else None
        results = link.released.revealed.get(self._id) if link is not None else None
        if results is None:
            return ""
        if sum(results.first) >= FEWEST and len(results.first) == len(self._options):
            votes = (
                f"{plain(option)}: {first} → {second}"
                for option, first, second in zip(self._options, results.first, results.second, strict=False)
            )
            return f"Your class, before and after the discussion: {'; '.join(votes)}."
        if len(results.measured) >= FEWEST:
            return f"Your class measured {min(results.measured):g} to {max(results.measured):g}."
        return ""

    def _send(self, kind: str, **fields: float | None) -> None:
        link = current() if self._id else None
        if link is not None:
            from kafkalab.classroom.events import Event

            link.send(Event(kind, self._id, **fields))  # type: ignore[arg-type]


def number_in(text: str) -> float | None:
    """Return the first number in a text, or None."""
    found = _NUMBER.search(text)
    return float(found[0].replace(",", ".")) if found else None

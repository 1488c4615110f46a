"""What the instructor does with a class: asks, lets discuss, asks again, reveals, and releases."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from kafkalab.classroom.facts import Facts
from kafkalab.classroom.released import Phase, Poll, Released
from kafkalab.classroom.small_numbers import for_the_class
from kafkalab.course.questions import Question
from kafkalab.errors import KafkaLabError

__all__ = ["MOVES", "Lesson"]

MOVES: Mapping[Phase, tuple[Phase, ...]] = {
    "first": ("discuss", "run"),
    "discuss": ("second", "run"),
    "second": ("run",),
    "run": ("revealed",),
    "revealed": (),
}
"""The phases that may follow each phase. Where most are right at the first vote, nobody has to discuss."""

_WORDS: Mapping[Phase, str] = {
    "first": "the first vote",
    "discuss": "the discussion",
    "second": "the second vote",
    "run": "running the cell",
    "revealed": "the reveal",
}


class Lesson:
    """The instructor's part of a class. Several threads may use it.

    Each change is published before it counts. If that fails, nothing has changed.

    Parameters
    ----------
    questions
        The questions of today. Their explanations wait until they're revealed or released.
    facts
        What the seats have sent.
    seats
        Returns the seats that have joined.
    publish
        Gets each new state. Raises `KafkaLabError` if the class can't get it.
    """

    def __init__(
        self,
        questions: Sequence[Question],
        facts: Facts,
        seats: Callable[[], Collection[str]],
        publish: Callable[[Released], None],
    ) -> None:
        self.questions = {question.id: question for question in questions}
        self._facts = facts
        self._seats = seats
        self._publish = publish
        self._lock = threading.Lock()
        self._released = Released()
        self._followers: list[Callable[[], object]] = []

    @property
    def released(self) -> Released:
        """The state that every seat may know."""
        return self._released

    def on_change(self, follower: Callable[[], object]) -> None:
        """Call a function after each change, from the thread that made it."""
        self._followers.append(follower)

    def begin(self) -> None:
        """Hold back the explanations of today's questions."""
        with self._lock:
            self._change(replace(self._released, held=frozenset(self.questions)))

    def ask(self, question: str) -> None:
        """Open the first vote on a question.

        Raises
        ------
        KafkaLabError
            If it isn't one of today's, was revealed or released, or another poll runs.
        """
        with self._changing():
            if question not in self.questions:
                raise KafkaLabError(f"today's chapters have no question {question!r}: choose one of the list")
            if self._released.poll is not None and self._released.poll.phase != "revealed":
                raise KafkaLabError(f"the poll {self._released.poll.question!r} runs: reveal it, or release it, before you ask")
            if question not in self._released.held:
                raise KafkaLabError(f"the explanation of {question!r} is open already: ask another question")
            self._change(replace(self._released, poll=Poll(question, "first")))

    def move(self, phase: Phase) -> None:
        """Go on to another phase of the poll that runs. ``revealed`` publishes its results and opens the explanation.

        Raises
        ------
        KafkaLabError
            If no poll runs, or this phase doesn't follow the present one.
        """
        with self._changing():
            poll = self._released.poll
            if poll is None:
                raise KafkaLabError("no poll runs: ask a question first")
            if phase not in MOVES[poll.phase]:
                follow = " or ".join(_WORDS[one] for one in MOVES[poll.phase]) or "another question"
                raise KafkaLabError(f"{_WORDS.get(phase, repr(phase))} doesn't follow {_WORDS[poll.phase]}: {follow} does")
            new = replace(self._released, poll=Poll(poll.question, phase))
            self._change(self._revealing(new, poll.question) if phase == "revealed" else new)

    def close(self) -> None:
        """Take a revealed poll off the wall.

        Raises
        ------
        KafkaLabError
            If it isn't revealed yet, or there is none.
        """
        with self._changing():
            if self._released.poll is None or self._released.poll.phase != "revealed":
                raise KafkaLabError("there is no revealed poll to take off the wall: reveal it, or release its question")
            self._change(replace(self._released, poll=None))

    def release(self, questions: Collection[str]) -> None:
        """Open the explanations of questions without a poll. A poll on one of them ends.

        Raises
        ------
        KafkaLabError
            If one of them isn't held back.
        """
        with self._changing():
            if unknown := set(questions) - self._released.held:
                raise KafkaLabError(f"the explanation of {sorted(unknown)[0]!r} isn't held back: nothing to release")
            poll = self._released.poll
            ended = poll is not None and poll.question in questions
            self._change(replace(self._released, held=self._released.held - frozenset(questions), poll=None if ended else poll))

    def end(self) -> None:
        """End the class: nothing is held back any more. Safe to call again."""
        with self._lock:
            if self._released.ended:
                return
            self._change(replace(self._released, poll=None, held=frozenset(), ended=True))

    @contextmanager
    def _changing(self) -> Iterator[None]:
        with self._lock:
            if self._released.ended:
                raise KafkaLabError("the class is over: nothing can be asked or released any more")
            yield

    def _revealing(self, released: Released, question: str) -> Released:
        n_options = len(self.questions[question].options)
        results = for_the_class(self._facts.results(question, n_options, self._seats()))
        return replace(released, held=released.held - {question}, revealed={**released.revealed, question: results})

    def _change(self, new: Released) -> None:
        self._publish(new)
        self._released = new
        for follower in self._followers:
            follower()

"""Read review questions from TOML, validate them, and judge answers."""

from __future__ import annotations

import tomllib
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Literal

from kafkalab.course import find_course

__all__ = ["Option", "Question", "QuizData", "load_quiz", "quiz_names"]

QuestionKind = Literal["one", "many", "open"]


@dataclass(frozen=True)
class Option:
    """An answer to choose."""

    text: str
    right: bool


@dataclass(frozen=True)
class Question:
    """A review question.

    Attributes
    ----------
    ask
        The question.
    kind
        ``one`` option is right, ``many`` are, or it is ``open``: you answer in your own words, without a mark.
    options
        The options in the order shown; empty for an open question.
    explanation
        Shown after the answer.
    """

    ask: str
    kind: QuestionKind
    options: tuple[Option, ...]
    explanation: str

    @property
    def right(self) -> frozenset[int]:
        """Indexes of the right options."""
        return frozenset(i for i, option in enumerate(self.options) if option.right)

    def is_right(self, chosen: Collection[int]) -> bool:
        """Return whether the chosen options are exactly the right ones."""
        return frozenset(chosen) == self.right


@dataclass(frozen=True)
class QuizData:
    """The questions of a chapter."""

    name: str
    title: str
    questions: tuple[Question, ...]

    @property
    def marked(self) -> int:
        """The number of questions that count: all but the open ones."""
        return sum(question.kind != "open" for question in self.questions)


def quiz_names() -> list[str]:
    """Return the names of all quizzes, in order of chapter."""
    return list(find_course().quizzes())


def load_quiz(name: str) -> QuizData:
    """Read a quiz.

    Raises
    ------
    LookupError
        If the quiz doesn't exist. The message lists the existing ones.
    ValueError
        If a question has no right option or no wrong one.
    """
    quizzes = find_course().quizzes()
    if name not in quizzes:
        raise LookupError(f"there is no quiz {name!r}; there are {', '.join(quizzes)}")
    data = tomllib.loads(quizzes[name].read_text(encoding="utf-8"))
    questions = tuple(_question(entry) for entry in data["question"])
    return QuizData(name, data["title"], questions)


def _question(entry: dict[str, Any]) -> Question:
    # An option is a table with one key: {right = "…"} or {wrong = "…"}.
    options = tuple(Option(text, verdict == "right") for option in entry.get("options", ()) for verdict, text in option.items())
    number = sum(option.right for option in options)
    if options and not 0 < number < len(options):
        raise ValueError(f"{entry['ask']!r} needs a right option and a wrong one")
    kind: QuestionKind = "open" if not options else "one" if number == 1 else "many"
    return Question(entry["ask"], kind, options, entry["explanation"].strip())

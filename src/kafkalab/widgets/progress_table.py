"""The table of your progress."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape

from kafkalab.progress import ProgressRecord, load
from kafkalab.widgets.quiz_data import load_quiz, quiz_names

__all__ = ["Progress", "progress_html", "progress_text"]

_PASSED = "#1f883d"


class Progress:
    """A table of the labs of all chapters, which of them passed, and the quiz results.

    Parameters
    ----------
    labs
        Titles of labs by id. By default all labs with checks.
    """

    def __init__(self, labs: Mapping[str, str] | None = None) -> None:
        self._labs = labs

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        record = load()
        labs = _labs_of_course() if self._labs is None else self._labs
        return {"text/html": progress_html(record, labs), "text/plain": progress_text(record, labs)}


def _labs_of_course() -> dict[str, str]:
    from kafkalab import checks  # imported here, because it loads Kafka's client, which no other widget needs

    return {check.id: check.title for check in checks.checks().values()}


@dataclass(frozen=True)
class _Row:
    """A task, how much of it is done, and whether that is all."""

    name: str
    title: str
    words: str
    done: bool


def _rows(record: ProgressRecord, labs: Mapping[str, str]) -> list[_Row]:
    """Return the labs by chapter in the given order, each chapter with its quiz at the end."""
    place = {name: i for i, name in enumerate(labs)}
    rows = []
    for name in {*labs, *record.labs}:
        lab = record.labs.get(name)
        if lab is None:
            words = "not checked yet"
        elif lab.passed_at is None:
            words = f"checked {lab.checks} ×, not passed yet"
        else:
            words = f"passed on {lab.passed_at[:10]}"
        rows.append(
            (name[:2], place.get(name, len(place)), _Row(name, labs.get(name, ""), words, lab is not None and lab.passed))
        )
    for name in quiz_names():
        quiz, number = record.quizzes.get(name), load_quiz(name).marked
        words = "not answered yet" if quiz is None else f"{quiz.right} of {quiz.questions} right"
        done = quiz is not None and quiz.right == number
        rows.append((name[:2], len(place) + 1, _Row(f"{name[:2]} quiz", load_quiz(name).title, words, done)))
    return [row for *_, row in sorted(rows, key=lambda entry: (entry[0], entry[1], entry[2].name))]


def progress_html(record: ProgressRecord, labs: Mapping[str, str]) -> str:
    """Return the table as HTML."""
    rows = _rows(record, labs)
    body = "".join(
        f"<tr>{_cell(row.name)}{_cell(row.title)}{_cell(f'✔ {row.words}' if row.done else f'○ {row.words}', row.done)}</tr>"
        for row in rows
    )
    done = sum(row.done for row in rows)
    return f"<p><b>{done} of {len(rows)} done</b></p><table><tbody>{body}</tbody></table>"


def _cell(content: str, good: bool = False) -> str:
    colour = f";color:{_PASSED};font-weight:600" if good else ""
    return f'<td style="text-align:left{colour}">{escape(content)}</td>'


def progress_text(record: ProgressRecord, labs: Mapping[str, str]) -> str:
    """Return the table as plain text."""
    rows = _rows(record, labs)
    width = max(len(row.name) for row in rows)
    return "\n".join(f"{'x' if row.done else ' '} {row.name:<{width}}  {row.words}" for row in rows)

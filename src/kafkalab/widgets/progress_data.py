"""How far the learner is in each chapter: labs, quiz, predictions, time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kafkalab.course import find_course
from kafkalab.course.predictions import chapters_by_question
from kafkalab.progress import ProgressRecord
from kafkalab.widgets.quiz_data import load_quiz, quiz_names

__all__ = ["ChapterProgress", "Task", "chapters_of", "labs_of_course", "time_in_words"]


@dataclass(frozen=True)
class Task:
    """A task, how much of it is done in words, and whether that is all."""

    name: str
    title: str
    words: str
    done: bool


@dataclass(frozen=True)
class ChapterProgress:
    """A chapter's tasks.

    Attributes
    ----------
    number, title
        ``02``, and the heading of the chapter.
    tasks
        The checks of its labs in the course's order, then its quiz.
    came_true, known
        How many of the learner's predictions came true, of those whose outcome is known.
    seconds
        The time spent with it and its labs.
    """

    number: str
    title: str
    tasks: tuple[Task, ...]
    came_true: int
    known: int
    seconds: int

    @property
    def done(self) -> int:
        """How many of its tasks are done."""
        return sum(task.done for task in self.tasks)


def labs_of_course() -> dict[str, str]:
    """Return the title of each check of the course by its id, in order."""
    from kafkalab import checks  # imported here, because it loads Kafka's client, which no other widget needs

    return {check.id: check.title for check in checks.checks().values()}


def chapters_of(record: ProgressRecord, labs: Mapping[str, str]) -> list[ChapterProgress]:
    """Return all chapters in order, with the learner's progress.

    Parameters
    ----------
    labs
        Titles of checks by id, in order.
    """
    content = find_course().content
    titles = {name[:2]: title for name, title in content.chapter_titles.items()}
    chapter_of = chapters_by_question(content) if record.outcomes else {}
    tasks = _lab_tasks(record, labs) + _quiz_tasks(record)
    outcomes = [(chapter_of.get(question), came_true) for question, came_true in record.outcomes.items()]
    return [
        ChapterProgress(
            number,
            titles.get(number, ""),
            tuple(task for task in tasks if task.name[:2] == number),
            sum(came_true for chapter, came_true in outcomes if chapter == number),
            sum(chapter == number for chapter, _ in outcomes),
            record.times[number].seconds if number in record.times else 0,
        )
        for number in sorted({task.name[:2] for task in tasks})
    ]


def time_in_words(seconds: int) -> str:
    """Return a time: ``1 h 25 min``."""
    hours, minutes = divmod(round(seconds / 60), 60)
    if not hours:
        return f"{minutes} min" if minutes else "under 1 min"
    return f"{hours} h {minutes} min"


def _lab_tasks(record: ProgressRecord, labs: Mapping[str, str]) -> list[Task]:
    tasks = []
    for name in [*labs, *sorted(record.labs.keys() - labs.keys())]:
        lab = record.labs.get(name)
        if lab is None:
            words = "not checked yet"
        elif lab.passed_at is None:
            words = f"checked {lab.checks} ×, not passed yet"
        else:
            words = f"passed on {lab.passed_at[:10]}"
        tasks.append(Task(name, labs.get(name, ""), words, lab is not None and lab.passed))
    return tasks


def _quiz_tasks(record: ProgressRecord) -> list[Task]:
    tasks = []
    for name in quiz_names():
        quiz, data = record.quizzes.get(name), load_quiz(name)
        words = "not answered yet" if quiz is None else f"{quiz.right} of {quiz.questions} right"
        tasks.append(Task(f"{name[:2]} quiz", data.title, words, quiz is not None and quiz.right == data.marked))
    return tasks

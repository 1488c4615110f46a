"""What the board shows: the instructor's view with the seats, and the wall's with counts only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from typing import Any

from kafkalab.classroom.facts import Facts, Seat, Seen
from kafkalab.classroom.lesson import MOVES, Lesson
from kafkalab.classroom.released import Results
from kafkalab.classroom.small_numbers import FEWEST, about, enough
from kafkalab.course.questions import Question

__all__ = ["RequirementWords", "advice", "instructor_view", "wall_view"]

RequirementWords = Callable[[str, int], str]
"""Returns what a requirement says, by the id of its check and its number from 1."""

_MANY = 3  # seats that fail a requirement, from which on it's worth a word to all
_STUCK = 8 * 60.0  # seconds that a requirement is unmet …
_TRIED = 3  # … and attempts, from which on a seat may be stuck
_IN_A_NOTEBOOK = ("alive", "help", "done")


def instructor_view(
    facts: Facts, lesson: Lesson, names: Collection[str], words: RequirementWords, now: float
) -> dict[str, Any]:
    """Return what only the instructor sees, for JSON. Nothing in it compares seats: they come by name, calls by waiting time.

    Parameters
    ----------
    facts, lesson
        The class.
    names
        The seats that have joined.
    words
        The requirements' words.
    now
        In seconds since 1970.
    """
    seats = facts.seats(names)
    return {
        "seats": [_seat_row(name, seat, now) for name, seat in seats.items()],
        "help": _calls(facts, names, now),
        "failing": _failing(seats, words),
        "stuck": [row for name, seat in seats.items() for row in _stuck(name, seat, words, now)],
        "poll": _poll(facts, lesson, names),
        "questions": [_question_row(question, lesson) for question in lesson.questions.values()],
        "ended": lesson.released.ended,
    }


def wall_view(facts: Facts, lesson: Lesson, names: Collection[str], words: RequirementWords) -> dict[str, Any]:
    """Return what the whole class sees, for JSON: counts that point at nobody. No seat, no name, no order.

    See `instructor_view` for the parameters.
    """
    released = lesson.released
    return {
        "joined": len(names),
        "ended": released.ended,
        "poll": _wall_poll(facts, lesson, names),
        "lab": None if released.poll or released.ended else _lab(facts.seats(names), words),
    }


def advice(right: int | None, first: Results) -> str:
    """Return what usually helps after a first vote, by how many are right. Empty if nobody voted or no option is right.

    The bounds are a rule of thumb of those who teach with polls (Vickrey and others 2015).
    """
    votes = sum(first.first)
    if right is None or not votes:
        return ""
    share = first.first[right] / votes
    told = f"{share:.0%} are right. "
    if share < 0.3:
        return told + "Explain again, or ask something simpler."
    return told + ("Let them discuss." if share <= 0.7 else "Explain briefly, and go on.")


# -- the instructor's ---------------------------------------------------------------------------------------------


def _seat_row(name: str, seat: Seat, now: float) -> dict[str, Any]:
    check, done = seat.newest("checked"), seat.newest("done")
    place = seat.newest(*_IN_A_NOTEBOOK) or check  # without JupyterLab, checks alone say where a seat is
    return {
        "seat": name,
        "exercise": place.event.subject if place else "",
        "met": len(check.event.met) if check else None,
        "of": len(check.event.met) + len(check.event.unmet) + len(check.event.waiting) if check else None,
        "check": check.event.subject if check else "",
        "done": done.event.subject if done and done.event.raised else "",
        "minutes": None if seat.last_seen is None else _minutes(seat.last_seen, now),
        "foreign": seat.foreign,
    }


def _calls(facts: Facts, names: Collection[str], now: float) -> list[dict[str, Any]]:
    calls: list[tuple[str, Seen]] = [(name, call) for name in names if (call := facts.call(name)) is not None]
    return [
        {"seat": name, "where": call.event.subject, "minutes": _minutes(call.appended, now)}
        for name, call in sorted(calls, key=lambda one: one[1].appended)
    ]


def _failing(seats: dict[str, Seat], words: RequirementWords) -> list[dict[str, Any]]:
    counted = Counter(key for seat in seats.values() for key in seat.unmet)
    return [
        {"check": check, "number": number, "words": words(check, number), "seats": count}
        for (check, number), count in counted.most_common()
        if count >= _MANY
    ]


def _stuck(name: str, seat: Seat, words: RequirementWords, now: float) -> list[dict[str, Any]]:
    return [
        {
            "seat": name,
            "check": check,
            "number": number,
            "words": words(check, number),
            "minutes": _minutes(struggle.since, now),
            "attempts": struggle.attempts,
            "hints": seat.latest["checked", check, 0].event.hints,
        }
        for (check, number), struggle in seat.unmet.items()
        if now - struggle.since >= _STUCK and struggle.attempts >= _TRIED
    ]


def _poll(facts: Facts, lesson: Lesson, names: Collection[str]) -> dict[str, Any] | None:
    if (poll := lesson.released.poll) is None:
        return None
    question = lesson.questions[poll.question]
    results = facts.results(question.id, len(question.options), names)
    return {
        **_asked(question),
        "right": question.right,
        "phase": poll.phase,
        "next": list(MOVES[poll.phase]),
        "votes": [facts.voters(question.id, number, len(question.options), names) for number in (1, 2)],
        "joined": len(names),
        "ran": facts.ran(question.id, names),
        "advice": advice(question.right, results) if poll.phase == "first" else "",
        **_numbers(results),
    }


def _question_row(question: Question, lesson: Lesson) -> dict[str, Any]:
    released = lesson.released
    if released.poll is not None and released.poll.question == question.id and released.poll.phase != "revealed":
        state = "polling"
    elif question.id in released.held:
        state = "held"
    else:
        state = "revealed" if question.id in released.revealed else "released"
    return {**_asked(question), "notebook": question.notebook, "state": state}


# -- the wall's ---------------------------------------------------------------------------------------------------


def _wall_poll(facts: Facts, lesson: Lesson, names: Collection[str]) -> dict[str, Any] | None:
    if (poll := lesson.released.poll) is None:
        return None
    question = lesson.questions[poll.question]
    shown: dict[str, Any] = {**_asked(question), "phase": poll.phase}
    if poll.phase in ("first", "second"):
        shown["votes"] = enough(facts.voters(question.id, 1 if poll.phase == "first" else 2, len(question.options), names))
    if poll.phase == "run":
        shown["ran"] = enough(facts.ran(question.id, names))
    if poll.phase == "revealed":
        shown |= {"right": question.right, **_numbers(lesson.released.revealed[question.id])}
    return shown


def _lab(seats: dict[str, Seat], words: RequirementWords) -> dict[str, Any] | None:
    """Return how far the class is with the check that most seats ran last. None if fewer than `FEWEST` have run it."""
    last = Counter(seen.event.subject for seat in seats.values() if (seen := seat.newest("checked")) is not None)
    if not last:
        return None
    check = min(last, key=lambda one: (-last[one], one))
    events = [seat.latest["checked", check, 0].event for seat in seats.values() if ("checked", check, 0) in seat.latest]
    if len(events) < FEWEST:
        return None
    met = Counter(number for event in events for number in event.met)
    unmet = Counter(number for event in events for number in event.unmet)
    numbers = Counter(number for event in events for number in {*event.met, *event.unmet, *event.waiting})
    most, failing = unmet.most_common(1)[0] if unmet else (0, 0)
    return {
        "check": check,
        "requirements": [
            {"words": words(check, number), "met": about(met[number], len(seats))}
            for number, told in sorted(numbers.items())
            if told >= FEWEST  # or somebody has made it up
        ],
        "obstacle": words(check, most) if failing >= _MANY else "",
    }


# -- both -----------------------------------------------------------------------------------------------------------


def _asked(question: Question) -> dict[str, Any]:
    return {"id": question.id, "text": question.text, "options": list(question.options), "unit": question.unit}


def _numbers(results: Results) -> dict[str, Any]:
    return {
        "first": list(results.first),
        "second": list(results.second),
        "guesses": list(results.guesses),
        "measured": list(results.measured),
    }


def _minutes(since: float, now: float) -> int:
    return max(0, int((now - since) // 60))

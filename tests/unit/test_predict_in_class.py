"""Predictions in a class: votes go out by numbers, and the explanation waits for the instructor, with four ways out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ipywidgets
import pytest

from kafkalab.classroom.events import Event
from kafkalab.classroom.released import NOTHING, Poll, Released, Results
from kafkalab.progress import load
from kafkalab.widgets import Predict, class_question, class_strip
from kafkalab.widgets.class_question import number_in
from kafkalab.widgets.class_strip import ClassStrip, in_words
from widget_support import WIDGET_VIEW, Shown, find, find_all, html, press, show

ID, OPTIONS = "02-gap", ["no time", "2 s", "a minute"]


class FakeLink:
    """A link to a class that is told what happens."""

    seat = "brave-otter"

    def __init__(self) -> None:
        self.released, self.reachable, self.waiting = NOTHING, True, 0
        self.sent: list[Event] = []
        self.left = False
        self.cells = 0
        self._followers: list[Any] = []

    def send(self, event: Event) -> None:
        self.sent.append(event)

    def holds(self, question: str) -> bool:
        return question in self.released.held and self.reachable and not self.released.ended

    def follow(self, follower: Any) -> None:
        self._followers.append(follower)

    def happens(self, released: Released | None = None, reachable: bool = True) -> None:
        self.released, self.reachable = released or self.released, reachable
        for follower in self._followers:
            follower()

    def leave(self) -> None:
        self.left = True

    def works_here(self) -> None:
        self.cells += 1


@pytest.fixture
def link(monkeypatch: pytest.MonkeyPatch, progress_folder: Path) -> FakeLink:
    link = FakeLink()
    for module in (class_question, class_strip):
        monkeypatch.setattr(module, "current", lambda: None if link.left else link)
    return link


def held(phase: str = "", **more: Any) -> Released:
    return Released(Poll(ID, phase) if phase else None, frozenset([ID]), **more)


def ask() -> Predict:
    return Predict("How long has it no leader?", id=ID, options=OPTIONS)


def choose(prediction: Predict, option: str) -> None:
    find(prediction, ipywidgets.RadioButtons).value = option
    button_of(prediction).click()


def button_of(prediction: Predict) -> ipywidgets.Button:
    return find_all(prediction, ipywidgets.Button)[0]


def waits(shown: Shown) -> bool:
    (forms,) = shown.values()
    return WIDGET_VIEW in forms[-1]


def explained(prediction: Predict) -> Any:
    explanation = prediction.explain("The controller waits.", measured="1.9 s")
    show(explanation)
    return explanation


def test_the_instructor_opens_the_explanation(link: FakeLink, shown: Shown) -> None:
    link.released = held("first")
    prediction = ask()
    choose(prediction, "2 s")
    explanation = explained(prediction)
    assert waits(shown) and "Your instructor opens the explanation" in html(explanation)
    link.happens(Released(held={}, revealed={ID: Results([1, 4, 1], [0, 6, 0], [], [1.9])}))
    assert not waits(shown)
    (forms,) = shown.values()
    assert "before and after the discussion: no time: 1 → 0; 2 s: 4 → 6; a minute: 1 → 0." in forms[-1]["text/plain"]


def test_without_a_class_nothing_waits_and_nothing_goes_out(link: FakeLink, shown: Shown) -> None:
    link.left = True
    prediction = ask()
    choose(prediction, "2 s")
    explained(prediction)
    assert not waits(shown) and link.sent == []


def test_a_class_that_cannot_be_reached_holds_nothing(link: FakeLink, shown: Shown) -> None:
    link.released = held("first")
    prediction = ask()
    choose(prediction, "2 s")
    explained(prediction)
    assert waits(shown)
    link.happens(reachable=False)
    assert not waits(shown)


def test_who_wants_goes_on_without_the_class(link: FakeLink, shown: Shown) -> None:
    link.released = held("discuss")
    prediction = ask()
    explanation = explained(prediction)
    assert waits(shown)
    press(explanation, "Go on without the class")
    assert not waits(shown)


def test_a_class_that_has_ended_holds_nothing(link: FakeLink, shown: Shown) -> None:
    link.released = held()
    prediction = ask()
    choose(prediction, "2 s")
    explained(prediction)
    link.happens(held(ended=True))
    assert not waits(shown)


def test_a_question_that_the_class_does_not_hold_opens_at_once(link: FakeLink, shown: Shown) -> None:
    prediction = ask()
    choose(prediction, "2 s")
    explained(prediction)
    assert not waits(shown)


def test_both_votes_are_kept_and_go_out_as_numbers(link: FakeLink) -> None:
    link.released = held("first")
    prediction = ask()
    choose(prediction, "no time")
    choose(prediction, "2 s")  # until it's closed
    link.happens(held("discuss"))
    assert button_of(prediction).disabled and "Talk to your neighbour" in html(prediction)
    link.happens(held("second"))
    assert button_of(prediction).description == "Vote again" and "You said <b>2 s</b>." in html(prediction)
    choose(prediction, "a minute")
    link.happens(held("run"))
    assert button_of(prediction).disabled and "Now run the cells below" in html(prediction)
    prediction.explain("Because.", measured="1.9 s")
    votes = [(event.kind, event.round, event.option, event.number) for event in link.sent]
    assert votes == [("voted", 1, 0, None), ("voted", 1, 1, None), ("voted", 2, 2, None), ("measured", 0, None, 1.9)]
    assert {event.subject for event in link.sent} == {ID}
    kept = load().votes[ID]
    assert (kept[1].guess, kept[2].guess) == ("2 s", "a minute") and kept[1].at <= kept[2].at
    assert load().predictions == {"How long has it no leader?": "a minute"}


def test_a_vote_before_the_poll_counts_as_the_first(link: FakeLink) -> None:
    link.released = held()
    prediction = ask()
    choose(prediction, "2 s")
    assert link.sent[-1].round == 1
    assert ask().guess == "2 s"  # a reload keeps it


def test_numbers_go_out_and_words_stay(link: FakeLink) -> None:
    number, words = Predict("How long?", id=ID, unit="s"), Predict("What will it say?", id="02-said")
    for prediction, typed in ((number, "1,5"), (words, "my own words")):
        find(prediction, ipywidgets.Text).value = typed
        press(prediction, "Predict")
    assert [(event.subject, event.number) for event in link.sent] == [(ID, 1.5)]


def test_a_question_without_an_id_is_the_learners_own(link: FakeLink, shown: Shown) -> None:
    link.released = held("first")
    prediction = Predict("How long?", options=OPTIONS)
    choose(prediction, "2 s")
    explained(prediction)
    assert not waits(shown) and link.sent == [] and load().votes == {}


def test_few_votes_are_not_shown(link: FakeLink, shown: Shown) -> None:
    link.released = Released(revealed={ID: Results([1, 2, 1], [0, 4, 0])})
    prediction = ask()
    choose(prediction, "2 s")
    explained(prediction)
    assert "Your class" not in next(iter(shown.values()))[-1]["text/plain"]


@pytest.mark.parametrize(("text", "number"), [("1.9 s", 1.9), ("about 12 of 13", 12), ("-3", -3), ("none", None), ("", None)])
def test_a_measurement_is_its_first_number(text: str, number: float | None) -> None:
    assert number_in(text) == number


def test_the_strip_says_what_goes_out_and_leaves(link: FakeLink, shell: Any) -> None:
    strip = ClassStrip(shell)
    assert "Your seat is <b>brave-otter</b>" in html(strip.widget)
    find_all(strip.widget, ipywidgets.ToggleButton)[0].value = True
    find_all(strip.widget, ipywidgets.ToggleButton)[1].value = True
    assert [(event.kind, event.raised) for event in link.sent] == [("help", True), ("done", True)]
    assert "help in notebook: yes" in html(strip.widget)
    link.waiting = 2
    link.happens(reachable=False)
    assert "The class can't be reached. Go on." in html(strip.widget) and "2 of them wait" in html(strip.widget)
    next(one for one in find_all(strip.widget, ipywidgets.Button) if one.description == "Leave the class").click()
    assert link.left and strip.widget.children == ()
    shell.run_cell("1")  # still none
    link.left = False
    shell.run_cell("2")
    assert strip.widget.children and link.cells == 1


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (Event("checked", "02_failsafe", met=[1, 2], unmet=[3]), "02_failsafe was checked: 2 met, 1 not yet"),
        (Event("voted", ID, round=2, option=1), "02-gap: option B, round 2"),
        (Event("voted", ID, round=1, number=1.5), "02-gap: 1.5, round 1"),
        (Event("measured", ID, number=1.9), "02-gap: measured 1.9"),
        (Event("measured", ID), "02-gap: run"),
        (Event("alive", "02_cluster_failover"), "you work in 02_cluster_failover"),
        (Event("help", "02_failsafe"), "help in 02_failsafe: no more"),
    ],
)
def test_an_event_in_words(event: Event, words: str) -> None:
    assert in_words(event) == words

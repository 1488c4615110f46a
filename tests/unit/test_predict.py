"""Predictions and their explanations, as a learner sees them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ipywidgets
import pytest

from kafkalab.progress import load, record_prediction
from kafkalab.widgets import Predict
from widget_support import WIDGET_VIEW, Shown, button, find, html, html_values, press, show


def test_a_prediction_is_kept_and_opens_the_explanation_with_both(shown: Shown, progress_folder: Path) -> None:
    prediction = Predict("How much longer?", options=["the same", "2×", "more than `100`×"])
    explanation = prediction.explain("The *first* one waits.", measured="676×")
    show(explanation)
    ((closed,),) = shown.values()
    assert WIDGET_VIEW in closed
    field = find(prediction, ipywidgets.RadioButtons)
    field.value = "2×"
    press(prediction, "Predict")
    assert load().predictions == {"How much longer?": "2×"}
    ((_, opened),) = shown.values()
    assert opened["text/markdown"] == "**You said 2×. Measured: 676×.** The *first* one waits."
    assert WIDGET_VIEW not in opened
    assert field.disabled and button(prediction, "Predict").disabled  # no more guesses once the answer is in sight


def test_a_prediction_of_another_day_opens_the_explanation_at_once(shown: Shown, progress_folder: Path) -> None:
    record_prediction("How long?", "7 s")
    prediction = Predict("How long?", unit="s")
    assert prediction.guess == "7 s" and find(prediction, ipywidgets.Text).value == "7"
    show(prediction.explain("Because.", measured="1.9 s"))
    ((bundle,),) = shown.values()
    assert bundle["text/plain"] == "You said 7 s. Measured: 1.9 s. Because."
    assert WIDGET_VIEW not in bundle


def test_show_me_opens_the_explanation_without_a_prediction(shown: Shown, progress_folder: Path) -> None:
    prediction = Predict("Which brokers does it know?")
    explanation = prediction.explain("Every broker can answer.", answer="it knows all three")
    show(explanation)
    press(explanation, "Show me")
    ((_, opened),) = shown.values()
    assert opened["text/plain"] == "What happened: it knows all three. Every broker can answer."
    assert load().predictions == {}


def test_what_was_said_shows_code_as_code(progress_folder: Path) -> None:
    prediction = Predict("Which columns differ?", options=["only `Leader`", "`Leader` and `Isr`"])
    find(prediction, ipywidgets.RadioButtons).value = "only `Leader`"
    press(prediction, "Predict")
    assert "<b>only <code>Leader</code></b>" in html(prediction)
    prediction.explain("Because.", answer="`Leader` and `Isr`")
    assert "<b>only <code>Leader</code></b>" in html(prediction)


@pytest.mark.parametrize(
    ("prediction", "typed", "said"),
    [
        ({"unit": "s"}, "long", "Type a number."),
        ({"unit": "s"}, "", "Type a number."),
        ({}, " ", "Type your prediction first."),
        ({"options": ["a", "b"]}, None, "Choose one of the options first."),
    ],
)
def test_what_is_no_prediction_is_not_kept(
    prediction: dict[str, Any], typed: str | None, said: str, progress_folder: Path
) -> None:
    predict = Predict("How long?", **prediction)
    find(predict, ipywidgets.RadioButtons if "options" in prediction else ipywidgets.Text).value = typed
    press(predict, "Predict")
    assert said in html_values(predict)
    assert predict.guess is None and load().predictions == {}


def test_the_stored_question_does_not_tell_what_was_said(shown: Shown, progress_folder: Path) -> None:
    record_prediction("How long?", "7 s")
    show(Predict("How long?", unit="s"))
    show(Predict("Which?", options=["one", "two"]))
    number, choice = (bundle["text/plain"] for (bundle,) in shown.values())
    assert number == "Predict: How long? (s)"
    assert choice == "Predict: Which?\n- one\n- two"


@pytest.mark.parametrize(
    ("guess", "happened", "outcome"),
    [
        ("Only `Leader`", {"answer": "`Leader` and `Isr`"}, False),
        ("`Leader` and `Isr`", {"answer": "`leader` and `isr`"}, True),
        ("`Leader` and `Isr`", {"answer": "`Leader` and `Isr`, after 1.2 s"}, True),
        ("None: all stay", {"answer": "none"}, True),
        ("None: all stay", {"answer": "nonesuch"}, None),  # words, not letters
        ("None: all stay", {"answer": "something else"}, None),
        ("None: all stay", {"measured": "0 columns"}, None),
        ("None: all stay", {"answer": "only `Leader` or `Leader` and `Isr`"}, None),  # two at once
    ],
)
def test_a_prediction_came_true_if_the_answer_names_its_option(
    guess: str, happened: dict[str, str], outcome: bool | None, progress_folder: Path
) -> None:
    prediction = Predict("Which columns differ?", options=["Only `Leader`", "`Leader` and `Isr`", "None: all stay"])
    find(prediction, ipywidgets.RadioButtons).value = guess
    press(prediction, "Predict")
    assert load().outcomes == {}
    prediction.explain("Because.", **happened)
    assert load().outcomes == ({} if outcome is None else {"Which columns differ?": outcome})


def test_no_prediction_has_no_outcome(progress_folder: Path) -> None:
    prediction = Predict("Which?", options=["one", "two"])
    explanation = prediction.explain("Because.", answer="one")
    press(explanation, "Show me")
    assert load().outcomes == {}

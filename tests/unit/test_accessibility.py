"""What people need who can't see a display, or see little of it. The browser's tests look at whole pages with axe."""

from __future__ import annotations

import re

import ipywidgets
import pytest

from kafkalab.checks import labs
from kafkalab.underway import Task
from kafkalab.widgets.lab_card_drawing import check_html
from kafkalab.widgets.palette import LAG, LEADER, STATE_COLOURS, readable
from kafkalab.widgets.predict import Predict
from kafkalab.widgets.quiz import Quiz
from kafkalab.widgets.terminals_drawing import Pane, pane_html
from kafkalab.widgets.underway_lines import line_html
from widget_support import find, find_all, html, press

LIGHT, DARK = ("#ffffff", "#212121"), ("#212121", "#ffffff")
"""Surface and text of JupyterLab's themes."""


def luminance(channels: list[float]) -> float:
    """How bright a colour is (WCAG 2.2, relative luminance), by its channels from 0 to 1."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def channels(colour: str) -> list[float]:
    return [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]


@pytest.mark.parametrize(("surface", "text"), [LIGHT, DARK])
@pytest.mark.parametrize("colour", [*STATE_COLOURS.values(), LEADER, LAG])
def test_coloured_words_can_be_read_in_the_light_and_in_the_dark(colour: str, surface: str, text: str) -> None:
    mixed = re.match(r"color-mix\(in srgb, (#\w{6}) (\d+)%, var", readable(colour))
    part = int(mixed[2]) / 100
    seen = [part * own + (1 - part) * other for own, other in zip(channels(mixed[1]), channels(text), strict=True)]
    darker, lighter = sorted([luminance(seen), luminance(channels(surface))])
    assert (lighter + 0.05) / (darker + 0.05) >= 4.5  # WCAG 2.2, 1.4.3


def test_verdicts_are_coloured_words_that_can_be_read(progress_folder: object) -> None:
    quiz = Quiz("00_start_here")
    find_all(quiz, ipywidgets.Checkbox)[2].value = True
    press(quiz, "Check")
    said = html(quiz)
    assert f'<b style="color:{readable(STATE_COLOURS["dead"])}">Not quite.</b>' in said
    assert '<div role="status"' in said
    check = next(iter(labs().values())).checks[0]
    assert readable(STATE_COLOURS["stopped"]) in check_html(check, None, is_open=True)


def test_the_field_of_a_prediction_has_a_label(progress_folder: object) -> None:
    assert find(Predict("How long?", unit="s"), ipywidgets.Text).description == "Your prediction"


def test_a_bar_says_of_what_it_is() -> None:
    assert 'aria-label="Fetching the &lt;registry&gt;"' in line_html(Task("Fetching the <registry>", 40_000_000, 159_000_000))


def test_a_terminal_can_be_scrolled_with_the_keyboard() -> None:
    assert 'tabindex="0" role="group" aria-label="consumer &lt;1&gt;"' in pane_html(Pane("consumer <1>", ["line"], "running"))

"""Predictions: you guess first, then see your guess beside what was measured."""

from __future__ import annotations

import re
from collections.abc import Sequence

import ipywidgets

from kafkalab import progress
from kafkalab.widgets.live import Live, button, wide_html
from kafkalab.widgets.prose import plain, prose

__all__ = ["Explanation", "Predict"]

_WIDE = ipywidgets.Layout(width="100%")
_STYLE = """<style>
.kl-predict .widget-radio-box { width: 100%; max-width: none; }
.kl-predict .widget-radio { width: auto; height: auto; }
.kl-predict .widget-radio-box label { height: auto; line-height: 1.4; white-space: normal; }
</style>"""


class Predict(Live):
    """A question to answer before the next cell shows what happens.

    You pick an option, type a number or type a line. Your progress keeps the prediction, and you can change it until
    the explanation is open. A stored notebook shows only the question.

    Parameters
    ----------
    question
        The question. Its text must be unique in the course, because it identifies the prediction.
    options
        The options to choose from. Without options, you type an answer.
    unit
        The unit of the number to type. Without a unit and without options, the answer is a line of text.

    Examples
    --------
    >>> gap = Predict("How long has partition 3 no leader?", unit="s")  # doctest: +SKIP
    >>> gap  # doctest: +SKIP
    >>> gap.explain("The controller waits …", measured=f"{seconds:.1f} s")  # in a cell below  # doctest: +SKIP
    """

    def __init__(self, question: str, *, options: Sequence[str] = (), unit: str = "") -> None:
        self.question = question
        self._options = tuple(options)
        self._unit = unit
        self._guess = progress.load().predictions.get(question)
        self._happened: str | None = None  # the option that came true, once it's explained
        self._explanations: list[Explanation] = []
        self._field = self._make_field()
        self._button = button("Predict", self._predict, style="primary")
        self._said = wide_html()
        field = [self._field, ipywidgets.Label(unit)] if unit else [self._field]
        ask = wide_html(f'<div style="line-height:1.4"><b>Predict.</b> {prose(question)}</div>')
        root = ipywidgets.VBox([ipywidgets.HTML(_STYLE), ask, ipywidgets.HBox(field), self._button, self._said])
        root.layout = ipywidgets.Layout(padding="6px 12px", border="1px solid var(--jp-border-color1, #c9d1d9)")
        root.add_class("kl-predict")
        super().__init__(root)
        self._show()

    @property
    def guess(self) -> str | None:
        """The prediction with its unit, or None."""
        return self._guess

    def explain(self, why: str, *, measured: str = "", answer: str = "") -> Explanation:
        """Return the display for a later cell: the prediction, what happened, and why.

        It opens after you have made a prediction, or when you press "Show me".

        Parameters
        ----------
        why
            The explanation, in Markdown.
        measured
            What was measured, with its unit.
        answer
            What happened, if nothing was measured.
        """
        explanation = Explanation(self, why, f"Measured: {measured}." if measured else f"What happened: {answer}.")
        self._happened = _option_in(answer, self._options)
        self._explanations.append(explanation)
        if self._guess is not None:
            explanation.open()
        return explanation

    def _make_field(self) -> ipywidgets.Widget:
        if self._options:
            value = self._guess if self._guess in self._options else None
            return ipywidgets.RadioButtons(options=[(plain(o), o) for o in self._options], value=value, layout=_WIDE)
        value = (self._guess or "").removesuffix(f" {self._unit}")
        return ipywidgets.Text(value=value, layout=ipywidgets.Layout(width="120px" if self._unit else "100%"))

    def _predict(self, _: object) -> None:
        value = str(self._field.value or "").strip()
        if self._unit and not _is_number(value):
            self._said.value = "Type a number."
        elif not value:
            self._said.value = "Choose one of the options first." if self._options else "Type your prediction first."
        else:
            self._guess = f"{value} {self._unit}".strip()
            progress.record_prediction(self.question, self._guess)
            self._show()
            for explanation in self._explanations:
                explanation.open()

    def _show(self) -> None:
        if self._guess is not None:
            self._said.value = f"You said <b>{prose(self._guess)}</b>. Now run the cells below."

    def opened(self) -> None:
        """Accept no more predictions, because an explanation is open."""
        self._field.disabled = self._button.disabled = True
        self._said.value = f"You said <b>{prose(self._guess)}</b>." if self._guess else ""
        if self._guess and self._happened:
            progress.record_outcome(self.question, self._guess == self._happened)

    def _still(self) -> dict[str, str]:
        options = "".join(f"\n- {option}" for option in self._options)
        unit = f" ({self._unit})" if self._unit else ""
        return {
            "text/markdown": f"**Predict.** {self.question}{unit}{options and chr(10)}{options}",
            "text/plain": f"Predict: {self.question}{unit}{options}",
        }


class Explanation(Live):
    """The explanation of a prediction. It stays closed until you have made the prediction or ask to see it.

    `Predict.explain` makes it. A stored notebook shows it open.
    """

    def __init__(self, prediction: Predict, why: str, seen: str) -> None:
        self._prediction = prediction
        self._why = why
        self._seen = seen
        words = ipywidgets.HTML("Make your prediction above first. No idea?")
        super().__init__(ipywidgets.HBox([words, button("Show me", lambda _: self.open())]))

    def open(self) -> None:
        """Show the explanation. Safe to call again."""
        self._prediction.opened()
        self._finish()

    def _still(self) -> dict[str, str]:
        guess = self._prediction.guess
        both = f"You said {guess}. {self._seen}" if guess else self._seen
        return {"text/markdown": f"**{both}** {self._why.strip()}", "text/plain": f"{both} {self._why.strip()}"}


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", ""))
    except ValueError:
        return False
    return True


def _option_in(answer: str, options: Sequence[str]) -> str | None:
    """Return the option that an answer names, whole or with more words around it, or None if it names no single one.

    A number that was measured names none: whether 7 s is near enough to 1.9 s is nothing to count.
    """
    said = plain(answer).casefold()
    texts = {option: plain(option).casefold() for option in options}
    exact = [option for option, text in texts.items() if text == said]
    named = [option for option, text in texts.items() if said and (_has(said, text) or _has(text, said))]
    return (exact or named)[0] if len(exact or named) == 1 else None


def _has(text: str, words: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(words)}(?!\w)", text) is not None

"""Predictions: the learner guesses first, and sees the guess again beside what was measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import ipywidgets

from kafkalab import progress
from kafkalab.widgets.live import Live
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

    The learner picks an option, types a number or types a line. The prediction is kept in their progress, and can be
    changed until the explanation is open. A stored notebook shows the question alone.

    Parameters
    ----------
    question
        The question, the same text in no other cell of the course: predictions are kept by it.
    options
        What to choose from. Without options the learner types.
    unit
        The unit of the number to type. Without it, and without options, the answer is a line of text.

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
        self._explanations: list[Explanation] = []
        self._field = self._make_field()
        self._button = _button("Predict", self._predict, style="primary")
        self._button.layout.align_self = "flex-start"  # as wide as its word
        self._said = ipywidgets.HTML(layout=_WIDE)
        field = [self._field, ipywidgets.Label(unit)] if unit else [self._field]
        ask = ipywidgets.HTML(f'<div style="line-height:1.4"><b>Predict.</b> {prose(question)}</div>', layout=_WIDE)
        root = ipywidgets.VBox([ipywidgets.HTML(_STYLE), ask, ipywidgets.HBox(field), self._button, self._said])
        root.layout = ipywidgets.Layout(padding="6px 12px", border="1px solid var(--jp-border-color1, #c9d1d9)")
        root.add_class("kl-predict")
        super().__init__(root)
        self._show()

    @property
    def guess(self) -> str | None:
        """What the learner said, with its unit; None so far."""
        return self._guess

    def explain(self, why: str, *, measured: str = "", answer: str = "") -> Explanation:
        """What the last line of a cell below shows: the prediction, what was seen, and why.

        It opens once there is a prediction, or when the learner presses "Show me".

        Parameters
        ----------
        why
            The explanation, in Markdown.
        measured
            What was measured, with its unit.
        answer
            What happened, where nothing was measured.
        """
        explanation = Explanation(self, why, f"Measured: {measured}." if measured else f"What happened: {answer}.")
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
        """Take no more predictions: an explanation is open."""
        self._field.disabled = self._button.disabled = True
        self._said.value = f"You said <b>{prose(self._guess)}</b>." if self._guess else ""

    def _still(self) -> dict[str, str]:
        options = "".join(f"\n- {option}" for option in self._options)
        unit = f" ({self._unit})" if self._unit else ""
        return {
            "text/markdown": f"**Predict.** {self.question}{unit}{options and chr(10)}{options}",
            "text/plain": f"Predict: {self.question}{unit}{options}",
        }


class Explanation(Live):
    """What became of a prediction; closed until the learner has made it or asks to see it.

    Made by `Predict.explain`. A stored notebook shows it open.
    """

    def __init__(self, prediction: Predict, why: str, seen: str) -> None:
        self._prediction = prediction
        self._why = why
        self._seen = seen
        words = ipywidgets.HTML("Make your prediction above first. No idea?")
        super().__init__(ipywidgets.HBox([words, _button("Show me", lambda _: self.open())]))

    def open(self) -> None:
        """Show it. Safe to call again."""
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


def _button(label: str, action: Callable[[object], None], style: str = "") -> ipywidgets.Button:
    button = ipywidgets.Button(description=label, button_style=style, layout=ipywidgets.Layout(width="auto"))
    button.on_click(action)
    return button

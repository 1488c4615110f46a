"""Predictions: you guess first, then see your guess beside what was measured."""

from __future__ import annotations

from collections.abc import Sequence

import ipywidgets

from kafkalab import progress
from kafkalab.course.questions import option_in
from kafkalab.marks import plain
from kafkalab.widgets.class_question import ClassQuestion
from kafkalab.widgets.live import Live, button, wide_html
from kafkalab.widgets.prose import prose

__all__ = ["Explanation", "Predict"]

_WIDE = ipywidgets.Layout(width="100%")
# What the phases of a class's poll ask for.
_IN_CLASS = {
    "first": "Your class votes now, everybody alone. You can change your vote until your instructor closes it.",
    "discuss": "Talk to your neighbour. Then you vote again.",
    "second": "Vote again, the same or another option.",
    "run": "Now run the cells below.",
}
_STYLE = """<style>
.kl-predict .widget-radio-box { width: 100%; max-width: none; }
.kl-predict .widget-radio { width: auto; height: auto; }
.kl-predict .widget-radio-box label { height: auto; line-height: 1.4; white-space: normal; }
</style>"""


class Predict(Live):
    """A question to answer before the next cell shows what happens.

    You pick an option, type a number or type a line. Your progress keeps the prediction, and you can change it until
    the explanation is open. A stored notebook shows only the question.

    Where a class was joined, the vote goes out by the question's id, never its text. The explanation of a question that the
    class discusses waits until the instructor releases it, the class can't be reached for 20 s, or you go on without it.

    Parameters
    ----------
    question
        The question. Its text must be unique in the course, because it identifies the prediction.
    id
        A short name of the question, unique in the course: ``02-gap``. A class knows it by this.
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

    def __init__(self, question: str, *, id: str = "", options: Sequence[str] = (), unit: str = "") -> None:
        self.question = question
        self.id = id
        self._options = tuple(options)
        self._unit = unit
        self._is_open = False
        self.in_class = ClassQuestion(id, self._options, bool(unit), self._class_changed)
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
        self._happened = option_in(answer, self._options)
        self._explanations.append(explanation)
        self.in_class.measured(measured)
        self._open_what_may_open()
        return explanation

    def _open_what_may_open(self) -> None:
        for explanation in self._explanations:
            if self._guess is not None and not self.in_class.held:
                explanation.open()
            else:
                explanation.wait()

    def _make_field(self) -> ipywidgets.Widget:
        if self._options:
            value = self._guess if self._guess in self._options else None
            return ipywidgets.RadioButtons(options=[(plain(o), o) for o in self._options], value=value, layout=_WIDE)
        value = (self._guess or "").removesuffix(f" {self._unit}")
        return ipywidgets.Text(
            value=value,
            description="Your prediction",
            style={"description_width": "initial"},
            layout=ipywidgets.Layout(width="220px" if self._unit else "100%"),
        )

    def _predict(self, _: object) -> None:
        value = str(self._field.value or "").strip()
        if self._unit and not _is_number(value):
            self._said.value = "Type a number."
        elif not value:
            self._said.value = "Choose one of the options first." if self._options else "Type your prediction first."
        else:
            self._guess = f"{value} {self._unit}".strip()
            progress.record_prediction(self.question, self._guess, self.id, self.in_class.round)
            self.in_class.vote(value)
            self._show()
            self._open_what_may_open()

    def _class_changed(self) -> None:
        if not self._is_open:
            self._show()
            self._open_what_may_open()

    def _show(self) -> None:
        phase = self.in_class.phase
        self._field.disabled = self._button.disabled = not self.in_class.takes_votes
        self._button.description = "Vote again" if phase == "second" else "Predict"
        said = f"You said <b>{prose(self._guess)}</b>." if self._guess is not None else ""
        if phase or said:
            self._said.value = f"{said} {_IN_CLASS.get(phase, 'Now run the cells below.')}"

    def opened(self) -> None:
        """Accept no more predictions, because an explanation is open."""
        self._is_open = True
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
        self._words = ipywidgets.HTML()
        self._button = button("Show me", lambda _: self._show_me())
        super().__init__(ipywidgets.HBox([self._words, self._button]))
        self.wait()

    def wait(self) -> None:
        """Say what the explanation waits for. Does nothing once it's open."""
        if self._prediction.in_class.held:
            self._words.value = "Your instructor opens the explanation for the whole class."
            self._button.description = "Go on without the class"
        else:
            self._words.value, self._button.description = "Make your prediction above first. No idea?", "Show me"

    def _show_me(self) -> None:
        self._prediction.in_class.go_on_alone()
        self.open()

    def open(self) -> None:
        """Show the explanation. Safe to call again."""
        self._prediction.opened()
        self._finish()

    def _still(self) -> dict[str, str]:
        guess = self._prediction.guess
        both = f"You said {guess}. {self._seen}" if guess else self._seen
        why = " ".join(filter(None, (self._why.strip(), self._prediction.in_class.said_by_class)))
        return {"text/markdown": f"**{both}** {why}", "text/plain": f"{both} {why}"}


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", ""))
    except ValueError:
        return False
    return True

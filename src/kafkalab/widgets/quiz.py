"""The quiz at the end of a chapter."""

from __future__ import annotations

from collections.abc import Callable
from html import escape

import ipywidgets

from kafkalab.marks import plain
from kafkalab.progress import record_quiz
from kafkalab.widgets.live import Live, button, wide_html
from kafkalab.widgets.palette import LEADER, STATE_COLOURS, readable
from kafkalab.widgets.prose import prose
from kafkalab.widgets.quiz_data import Option, Question, QuizData, load_quiz

__all__ = ["Quiz", "quiz_html", "quiz_text"]

# JupyterLab gives a widget's options one line each. Ours may be longer.
_STYLE = """<style>
.kl-quiz .widget-radio-box label, .kl-quiz .jupyter-widget-radio-box label
  { display: flex; height: auto; min-height: 22px; line-height: 1.4; white-space: normal; margin: 3px 0;
    align-items: flex-start; max-width: none; }
.kl-quiz .widget-radio-box input, .kl-quiz .jupyter-widget-radio-box input
  { order: -1; float: none; margin: 2px 8px 0 1px; flex: none; }
.kl-quiz .widget-radio, .kl-quiz .widget-checkbox, .kl-quiz .jupyter-widget-radio, .kl-quiz .jupyter-widget-checkbox
  { height: auto; width: auto; max-width: none; margin: 0; }
.kl-quiz .widget-radio-box { width: 100%; max-width: none; }
.kl-quiz .widget-label-basic { height: auto; line-height: 1.4; white-space: normal; margin: 3px 0; align-items: flex-start; }
.kl-quiz .widget-label-basic input { margin: 2px 8px 0 1px; flex: none; }
.kl-quiz .widget-label-basic span { white-space: normal; }
</style>"""

_RIGHT, _WRONG, _OPEN = STATE_COLOURS["up"], STATE_COLOURS["dead"], LEADER


class Quiz(Live):
    """Review questions with instant feedback, one after another.

    Each answer is explained at once, and you can answer again. Your progress keeps the best result. A stored notebook
    shows all questions, with the answers folded.

    Parameters
    ----------
    name
        Name of a chapter: ``"02_cluster_failover"``.
    """

    def __init__(self, name: str) -> None:
        self._quiz = load_quiz(name)
        number = len(self._quiz.questions)
        self._results: list[bool | None] = [None] * number
        self._at = 0
        self._head, self._body = ipywidgets.HTML(), ipywidgets.VBox()
        self._back, self._next = button("Back", self._step(-1)), button("Next", self._step(1))
        self._forms = [_Form(question, self._answered(i)) for i, question in enumerate(self._quiz.questions)]
        root = ipywidgets.VBox(
            [ipywidgets.HTML(_STYLE), self._head, self._body, ipywidgets.HBox([self._back, self._next])],
            layout=ipywidgets.Layout(
                max_width="820px", padding="8px 12px", border="1px solid var(--jp-border-color1, #c9d1d9)"
            ),
        )
        root.add_class("kl-quiz")
        super().__init__(root)
        self._show()

    @property
    def result(self) -> tuple[int, int]:
        """The number of right answers so far, and of questions that count."""
        marked = [r for q, r in zip(self._quiz.questions, self._results, strict=True) if q.kind != "open"]
        return sum(bool(result) for result in marked), len(marked)

    def _answered(self, i: int) -> Callable[[bool], None]:
        def answered(right: bool) -> None:
            self._results[i] = right
            record_quiz(self._quiz.name, *self.result)
            self._show()

        return answered

    def _step(self, by: int) -> Callable[[object], None]:
        def step(_: object) -> None:
            self._at = max(0, min(self._at + by, len(self._forms) - 1))
            self._show()

        return step

    def _show(self) -> None:
        marks = " ".join(_mark(result, here=i == self._at) for i, result in enumerate(self._results))
        place = f"question {self._at + 1} of {len(self._forms)}"
        if self._quiz.questions[self._at].kind == "open":
            place += ", which doesn't count"
        self._head.value = (
            '<div style="display:flex;justify-content:space-between;gap:12px;flex-wrap:wrap;line-height:1.6">'
            f"<b>{escape(self._quiz.title)}</b>"
            f"<span>{place} · <b>{self._verdict()}</b></span></div>"
            f'<div style="line-height:1.4">{marks}</div>'
        )
        self._body.children = [self._forms[self._at].widget]
        self._back.disabled = self._at == 0
        self._next.disabled = self._at == len(self._forms) - 1

    def _verdict(self) -> str:
        right, of = self.result
        if all(result is None for result in self._results):
            return f"{of} count" if of < len(self._results) else "none answered yet"
        if None in self._results:
            return f"{right} of {of} right so far"
        return f"Finished: {right} of {of} right"

    def _still(self) -> dict[str, str]:
        return {"text/html": quiz_html(self._quiz), "text/plain": quiz_text(self._quiz)}


class _Form:
    """One question with its options and the feedback on the answer."""

    def __init__(self, question: Question, answered: Callable[[bool], None]) -> None:
        self._question = question
        self._answered = answered
        self._feedback = wide_html()
        self._choice = _choice(question)
        label = "Show an answer" if question.kind == "open" else "Check"
        check = button(label, self._check, style="primary")
        hint = "" if question.kind != "many" else " <i>(more than one is right)</i>"
        ask = wide_html(f'<div style="line-height:1.45;margin-top:6px"><b>{prose(question.ask)}</b>{hint}</div>')
        self.widget = ipywidgets.VBox([ask, self._choice, check, self._feedback])

    def _check(self, _: object) -> None:
        question = self._question
        if question.kind == "open":
            self._say(_OPEN, "One possible answer.")
            self._answered(True)
            return
        chosen = self._chosen()
        if not chosen:
            self._feedback.value = "Choose an answer first."
            return
        right = question.is_right(chosen)
        self._mark_options(chosen)
        if right:
            self._say(_RIGHT, "Right.")
        else:
            self._say(_WRONG, "Not quite.", f"<b>{_right_options(question)}.</b>")
        self._answered(right)

    def _mark_options(self, chosen: set[int]) -> None:
        """Write at each option that is right, or that was chosen, what it is."""
        texts = [_marked(option, is_chosen=i in chosen) for i, option in enumerate(self._question.options)]
        if isinstance(self._choice, ipywidgets.RadioButtons):
            with self._choice.hold_sync():  # other options choose the first one
                self._choice.options = texts
                (self._choice.index,) = chosen
        else:
            for box, text in zip(self._choice.children, texts, strict=True):
                box.description = text

    def _say(self, colour: str, verdict: str, answer: str = "") -> None:
        self._feedback.value = (
            f'<div role="status" style="border-left:4px solid {colour};padding:2px 10px;line-height:1.45">'
            f'<b style="color:{readable(colour)}">{verdict}</b> {answer} {prose(self._question.explanation)}</div>'
        )

    def _chosen(self) -> set[int]:
        if isinstance(self._choice, ipywidgets.RadioButtons):
            return set() if self._choice.index is None else {self._choice.index}
        return {i for i, box in enumerate(self._choice.children) if box.value}


def _choice(question: Question) -> ipywidgets.Widget:
    texts = [plain(option.text) for option in question.options]
    wide = ipywidgets.Layout(width="100%")
    if question.kind == "one":
        return ipywidgets.RadioButtons(options=texts, value=None, layout=wide)
    if question.kind == "many":
        return ipywidgets.VBox(
            [ipywidgets.Checkbox(description=text, indent=False, layout=wide) for text in texts], layout=wide
        )
    return ipywidgets.Textarea(
        placeholder="Your own words (kept nowhere)", layout=ipywidgets.Layout(width="100%", height="70px")
    )


def _marked(option: Option, *, is_chosen: bool) -> str:
    text = plain(option.text)
    if option.right:
        return f"✓ {text} ({'right' if is_chosen else 'right, but you left it out'})"
    return f"✗ {text} (not right)" if is_chosen else text


def _mark(result: bool | None, *, here: bool) -> str:
    sign, words, colour = {
        None: ("○", "to do", "inherit"),
        True: ("✓", "right", readable(_RIGHT)),
        False: ("✗", "not right", readable(_WRONG)),
    }[result]
    style = f"color:{colour};font-weight:700{';text-decoration:underline' * here}"
    return f'<span role="img" aria-label="{words}{", this question" * here}" style="{style}">{sign}</span>'


def quiz_html(quiz: QuizData) -> str:
    """Return all questions of a quiz as still HTML, with the answers folded."""
    items = []
    for question in quiz.questions:
        options = "".join(f"<li>{prose(option.text)}</li>" for option in question.options)
        answer = f"<p><b>{_right_options(question)}</b></p>" if question.options else ""
        items.append(
            f"<li><b>{prose(question.ask)}</b>{f'<ul>{options}</ul>' if options else ''}"
            f"<details><summary>Answer</summary>{answer}<p>{prose(question.explanation)}</p></details></li>"
        )
    return f"<h4>{escape(quiz.title)}</h4><ol>{''.join(items)}</ol>"


def quiz_text(quiz: QuizData) -> str:
    """Return all questions of a quiz as plain text, without answers."""
    lines = [quiz.title]
    for number, question in enumerate(quiz.questions, 1):
        lines += [f"{number}. {plain(question.ask)}", *(f"   [ ] {plain(option.text)}" for option in question.options)]
    return "\n".join(lines)


def _right_options(question: Question) -> str:
    return " · ".join(prose(option.text) for option in question.options if option.right)

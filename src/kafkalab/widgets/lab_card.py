"""The card of a lab: its checks and what has passed, hints, a fresh copy, the solution."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Mapping
from html import escape
from pathlib import Path
from typing import ClassVar

import ipywidgets
from IPython.core.getipython import get_ipython

from kafkalab import course, progress
from kafkalab.checks.context import CheckContext
from kafkalab.checks.lab import Lab, find_lab
from kafkalab.checks.learner import on_report
from kafkalab.checks.requirements import Check, Report, Result, evaluate
from kafkalab.errors import KafkaLabError
from kafkalab.running import OnStop, clusters
from kafkalab.widgets.live import Live, button, wide_html
from kafkalab.widgets.notebook_links import course_folder, notebook_link
from kafkalab.widgets.prose import prose

__all__ = ["LabCard"]

_COLOURS = {"met": "#1f883d", "unmet": "#d1242f", "waiting": "#6e7781"}
_SYMBOLS = {"met": "✓", "unmet": "✗", "waiting": "·"}


class LabCard(Live):
    """What a lab asks for and how far you are, with buttons: Check, Next hint, Reset, Solution.

    Check uses the cluster that the notebook's variable holds now: the variable of the last `check` call, or `cluster`
    before the first. It takes the answers from the variables of the same names. If there is no such variable, it uses
    the last `check` call's answer. A `check` in a cell updates the card, too. If the cluster panel is open, the card
    appears there. What it says about a cluster goes when another one starts. A stored notebook shows it as text.

    Parameters
    ----------
    name
        The notebook of the lab: ``"02_failsafe"``.
    """

    _newest: ClassVar[dict[str, LabCard]] = {}  # by notebook, because running a cell again makes another card

    def __init__(self, name: str) -> None:
        self._lab = find_lab(name)
        self._facts = course.find_course().content.lab_facts(name)
        self._reports: dict[str, Report] = {}
        self._contexts: dict[str, CheckContext] = {}
        self._variables: dict[str, str] = {}  # the names of the variables that hold the clusters
        self._seen: dict[str, object] = {}  # the cluster that each report is about
        self._stopped: list[object] = []
        self._busy = self._is_beside = False
        self._lock = threading.RLock()
        self._list, self._said, self._opened = (wide_html() for _ in range(3))
        self._check = button("Check", self._check_now, "primary")
        self._hint = button("Next hint", self._next_hint)
        self._reset = button("Reset", self._ask("Start this notebook again? Your copy is kept beside it.", "reset"))
        self._solution = button("Solution", self._ask("Show the solution? A hint often helps more.", "solution"))
        self._asking = ipywidgets.VBox()
        buttons = ipywidgets.HBox(
            [self._check, self._hint, self._reset, self._solution], layout=ipywidgets.Layout(flex_flow="row wrap")
        )
        root = ipywidgets.VBox([wide_html(self._head()), self._list, buttons, self._asking, self._said, self._opened])
        root.layout = ipywidgets.Layout(padding="6px 10px", border="1px solid var(--jp-border-color1, #c9d1d9)")
        super().__init__(root)
        self._older = LabCard._newest.get(name)
        LabCard._newest[name] = self
        on_report.append(self._reported)
        self._show()
        _follow_clusters()

    @property
    def current(self) -> Check:
        """The first check that hasn't passed, or the last one if all have."""
        checks = self._lab.checks
        return next((check for check in checks if not self._reports.get(check.id)), checks[-1])

    def _head(self) -> str:
        facts = self._facts
        runs = f" (all cells of its solution run in {facts.seconds} s)" if facts.seconds else ""
        takes = f"{facts.difficulty} · about {facts.minutes} minutes{runs} · needs {escape(facts.needs)}"
        name = escape(self._lab.stem)
        if _is_solution():
            name = f'<span style="background:#8250df;color:#fff;border-radius:4px;padding:1px 6px">Solution</span> of {name}'
        return f'<div style="line-height:1.4"><b>{name}</b><br>{takes}</div>'

    def _reported(self, report: Report, ctx: CheckContext) -> bool:
        """Take over what a `check` in a cell found. Return whether the card shows it beside the notebook."""
        if is_own := report.check in [check.id for check in self._lab.checks]:
            with self._lock:
                self._contexts[report.check] = ctx
                self._take(report, ctx)
                holding = (name for name, value in _notebook_variables().items() if value is ctx.cluster)
                self._variables[report.check] = next((name for name in holding if not name.startswith("_")), "")
                if report and not self._busy:
                    self._said.value = ""
                self._show()
        return is_own and self._is_beside

    def _take(self, report: Report, ctx: CheckContext) -> None:
        self._reports[report.check], self._seen[report.check] = report, ctx.cluster

    def cluster_started(self) -> None:
        """Take back what was said about no cluster, or about one that has stopped since. What passed has passed."""
        with self._lock:
            for name, cluster in self._seen.items():
                if not self._reports.get(name) and any(cluster is stopped for stopped in self._stopped):
                    self._reports.pop(name, None)
            self._stopped.clear()
            if not self._busy:
                self._said.value = ""
            self._show()

    def cluster_stopped(self, cluster: object) -> None:
        """Remember it until the next one starts: until then, what was found there is still of use."""
        with self._lock:
            self._stopped.append(cluster)

    def _check_now(self, _: object) -> None:
        """Run the current check in a separate thread, because it takes seconds."""
        with self._lock:
            if self._busy:
                return
            check, known = self.current, self._contexts.get(self.current.id)
            variables = _notebook_variables()
            cluster = variables.get(self._variables.get(check.id, "cluster"), known.cluster if known else None)
            if cluster is None:
                self._said.value = "There's no cluster yet. Run the cell that starts it."
                return
            self._busy = self._check.disabled = True
            self._said.value = f"Checking {check.id} …"
        ctx = CheckContext(cluster, {**(known.answers if known else {}), **variables})
        threading.Thread(target=self._evaluate, args=(check, ctx), name="kafkalab-check", daemon=True).start()

    def _evaluate(self, check: Check, ctx: CheckContext) -> None:
        said = ""
        try:
            report = evaluate(check, ctx)
            progress.record_lab(check.id, bool(report))
            self._take(report, ctx)
        except Exception as error:  # shown in the card, because no cell can raise it
            said = f"The check itself failed: {escape(str(error) or type(error).__name__)}"
        with self._lock:
            self._busy = self._check.disabled = False
            self._said.value = said
            self._show()

    def _next_hint(self, _: object) -> None:
        self.current.open_hint()
        self._show()

    def _ask(self, question: str, action: str) -> Callable[[object], None]:
        def ask(_: object) -> None:
            yes = button("Yes", lambda _: self._answer(action))
            no = button("No", lambda _: self._answer(None))
            self._asking.children = [wide_html(escape(question)), ipywidgets.HBox([yes, no])]

        return ask

    def _answer(self, action: str | None) -> None:
        self._asking.children = []
        try:
            if action == "reset":
                course.reset(self._lab.stem)
                said = "The notebook is fresh again. Choose File → Reload Notebook from Disk."
            elif action == "solution":
                said = f"The solution: {notebook_link(course.solution(self._lab.stem))}"
            else:
                return
        except KafkaLabError as error:
            said = escape(str(error))
        self._said.value = said

    def _show(self) -> None:
        checks = self._lab.checks
        passed = sum(bool(self._reports.get(check.id)) for check in checks)
        all_passed = passed == len(checks)
        parts = [_passed_html(_next_of(self._lab))] if all_passed else []
        parts += [f"<b>{passed} of {len(checks)} passed</b>"] if len(checks) > 1 else []
        for check in checks:
            parts.append(_check_html(check, self._reports.get(check.id), is_open=check is self.current and not all_passed))
        self._list.value = f'<div style="line-height:1.4">{"".join(parts)}</div>'
        check = self.current
        self._opened.value = "".join(
            f'<div style="line-height:1.4;margin-top:4px"><b>Hint {number} of {len(check.hints)}.</b> {prose(text)}</div>'
            for number, text in enumerate(check.hints[: check.opened], 1)
        )
        self._hint.disabled = check.opened == len(check.hints)

    def _in_cell(self) -> ipywidgets.Widget:
        shown = self._show_beside("The lab card")
        self._is_beside = self.beside is not None
        if self._older is not None:  # not earlier: the panel showed it until now
            on_report.remove(self._older._reported)
            self._older._finish()
            self._older = None
        return shown

    def _still(self) -> dict[str, str]:
        facts = self._facts
        lines = [f"{self._lab.stem}: {facts.difficulty}, {facts.minutes} minutes, needs {facts.needs}"]
        for check in self._lab.checks:
            lines.append(f"{check.id}: {check.title}")
            lines += [f"  · {requirement.says}" for requirement in check.requirements]
        return {"text/plain": "\n".join(lines)}


def _notebook_variables() -> Mapping[str, object]:
    return getattr(get_ipython(), "user_ns", {})


def _next_of(lab: Lab) -> Path | None:
    """Return the learner's copy of the next lab, or None after the last one."""
    root, content = course_folder(), course.find_course().content
    stems = content.lab_stems()
    following = stems[stems.index(lab.stem) + 1 :][:1]
    copies = [root / "labs" / content.chapter_of(stem) / f"{stem}.ipynb" for stem in following if root is not None]
    return next((copy for copy in copies if copy.exists()), None)


def _is_solution() -> bool:
    """Return whether this notebook is a lab's solution, by the folder that it is in."""
    root = course_folder()
    return root is not None and Path.cwd().is_relative_to(root / course.SOLUTIONS)


@functools.cache
def _follow_clusters() -> None:
    """Tell the newest cards of each cluster that starts or stops. Once, because nobody can stop following."""

    def started(cluster: object, on_stop: OnStop) -> None:
        for card in list(LabCard._newest.values()):
            card.cluster_started()
        on_stop(lambda: stopped(cluster))

    def stopped(cluster: object) -> None:
        for card in list(LabCard._newest.values()):
            card.cluster_stopped(cluster)

    clusters.for_each(started)


def _passed_html(following: Path | None) -> str:
    link = f" {notebook_link(following, 'Next lab →')}" if following else ""
    box = "border:1px solid #2da44e;border-left-width:5px;border-radius:4px;padding:6px 10px;margin:4px 0"
    return f'<div style="{box};font-size:1.2em;font-weight:700" role="status">✓ Lab passed{link and " · "}{link}</div>'


def _check_html(check: Check, report: Report | None, *, is_open: bool) -> str:
    results = report.results if report is not None else tuple(Result(r.says, "waiting") for r in check.requirements)
    first = next((result for result in results if result.state == "unmet"), None)
    met = sum(result.state == "met" for result in results)
    state = "met" if report else "unmet" if first else "waiting"
    rows = "".join(_result_html(result, result.message if result is first else "") for result in results)
    # What waits has only its sign: a sentence that says so stood there as often as something waits.
    others = "".join(
        f"<li>{escape(result.says)}: {prose(result.message)}</li>"
        for result in results
        if result.state == "unmet" and result is not first
    )
    more = (
        f'<details style="margin-left:14px"><summary>More about the others</summary><ul>{others}</ul></details>'
        if others
        else ""
    )
    title = f"{_mark(state)} {escape(check.title)} <small>{escape(check.id)}, {met} of {len(results)} met</small>"
    return f"<details{' open' if is_open else ''}><summary>{title}</summary>{rows}{more}</details>"


def _result_html(result: Result, message: str) -> str:
    detail = f"<div>{prose(message)}</div>" if message else ""
    columns = "display:grid;grid-template-columns:18px minmax(0,1fr);margin-left:14px"
    return f'<div style="{columns}">{_mark(result.state)}<div>{prose(result.says)}{detail}</div></div>'


def _mark(state: str) -> str:
    words = {"met": "met", "unmet": "not met", "waiting": "to do"}[state]
    return f'<span style="color:{_COLOURS[state]};font-weight:700" role="img" aria-label="{words}">{_SYMBOLS[state]}</span>'

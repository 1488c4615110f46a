"""The card of a lab: its checks and what has passed, hints, a fresh copy, the solution."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Mapping
from html import escape
from pathlib import Path
from typing import Any, ClassVar
from weakref import WeakSet

import ipywidgets
from IPython.core.getipython import get_ipython

from kafkalab import course, progress
from kafkalab.checks.context import CheckContext
from kafkalab.checks.lab import Lab, find_lab
from kafkalab.checks.learner import on_report, tell_class
from kafkalab.checks.requirements import Check, Report, Result, evaluate, results_of
from kafkalab.errors import KafkaLabError
from kafkalab.preferences import checks_as_you_go, choose_checks_as_you_go
from kafkalab.running import OnStop, clusters
from kafkalab.widgets.after_cells import AfterCells
from kafkalab.widgets.lab_card_drawing import check_html, passed_html
from kafkalab.widgets.live import Live, button, wide_html
from kafkalab.widgets.notebook_links import course_folder, notebook_link
from kafkalab.widgets.prose import prose

__all__ = ["LabCard"]


class LabCard(Live):
    """What a lab asks for and how far you are, with buttons: Check, Next hint, Reset, Solution.

    Check uses the cluster that the notebook's variable holds now: the variable of the last `check` call, or `cluster`
    before the first. It takes the answers from the variables of the same names. If there is no such variable, it uses
    the last `check` call's answer. A `check` in a cell updates the card, too. If the cluster panel is open, the card
    appears there. What it says about a cluster goes when another one starts. A stored notebook shows it as text.

    If you choose so, the card looks at the current check after each cell, without a `check`. That records nothing, and
    calls none of your functions.

    Parameters
    ----------
    name
        The notebook of the lab: ``"02_failsafe"``.
    """

    _newest: ClassVar[dict[str, LabCard]] = {}  # by notebook, because running a cell again makes another card

    def __init__(self, name: str) -> None:
        self._lab = find_lab(name)
        if not self._lab.checks:
            raise KafkaLabError(
                f"{name} has no checks, so it has no card. Its author puts them into {name}.py, beside the notebook."
            )
        self._facts = course.find_course().content.lab_facts(name)
        self._reports: dict[str, Report] = {}
        self._contexts: dict[str, CheckContext] = {}
        self._variables: dict[str, str] = {}  # the names of the variables that hold the clusters
        self._seen: dict[str, object] = {}  # the cluster that each report is about
        self._looked: dict[str, Report] = {}  # what was found after a cell, since the last check
        self._stopped: WeakSet[Any] = WeakSet()
        self._checking = threading.Lock()  # held while something is evaluated here
        self._busy = self._is_beside = False
        self._lock = threading.RLock()
        self._list, self._said, self._opened = (wide_html() for _ in range(3))
        self._check = button("Check", self._check_now, "primary")
        self._hint = button("Next hint", self._next_hint)
        self._reset = button("Reset", self._ask("Start this notebook again? Your copy is kept beside it.", "reset"))
        self._solution = button("Solution", self._ask("Show the solution? A hint often helps more.", "solution"))
        self._asking = ipywidgets.VBox()
        self._as_you_go = ipywidgets.Checkbox(description="Check after each cell", indent=False, value=checks_as_you_go())
        self._as_you_go.observe(self._choose, "value")
        self._after_cells: AfterCells | None = None
        buttons = ipywidgets.HBox(
            [self._check, self._hint, self._reset, self._solution], layout=ipywidgets.Layout(flex_flow="row wrap")
        )
        parts = [wide_html(self._head()), self._list, buttons, self._as_you_go, self._asking, self._said, self._opened]
        root = ipywidgets.VBox(parts)
        root.layout = ipywidgets.Layout(padding="6px 10px", border="1px solid var(--jp-border-color1, #c9d1d9)")
        super().__init__(root)
        self._older = LabCard._newest.get(name)
        LabCard._newest[name] = self
        on_report.append(self._reported)
        self._show()
        _follow_clusters()
        self._follow_cells()

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
        self._looked.pop(report.check, None)

    def cluster_started(self) -> None:
        """Take back what was said about no cluster, or about one that has stopped since. What passed has passed."""
        with self._lock:
            self._looked.clear()
            for name, cluster in self._seen.items():
                if not self._reports.get(name) and cluster in self._stopped:
                    self._reports.pop(name, None)
            if not self._busy:
                self._said.value = ""
            self._show()

    def cluster_stopped(self, cluster: object) -> None:
        """Remember it until the next one starts: until then, what was found there is still of use."""
        with self._lock:
            self._stopped.add(cluster)

    def _check_now(self, _: object) -> None:
        """Run the current check in a separate thread, because it takes seconds."""
        with self._lock:
            if self._busy:
                return
            check = self.current
            ctx = self._context(check)
            if ctx is None:
                self._said.value = "There's no cluster yet. Run the cell that starts it."
                return
            self._busy = self._check.disabled = True
            self._said.value = f"Checking {check.id} …"
        threading.Thread(target=self._evaluate, args=(check, ctx), name="kafkalab-check", daemon=True).start()

    def _context(self, check: Check) -> CheckContext | None:
        """Return what to check with now: the notebook's variables. None without a cluster."""
        known, variables = self._contexts.get(check.id), dict(_notebook_variables())
        cluster = variables.get(self._variables.get(check.id, "cluster"), known.cluster if known else None)
        return None if cluster is None else CheckContext(cluster, {**(known.answers if known else {}), **variables})

    def _choose(self, _: object) -> None:
        try:
            choose_checks_as_you_go(self._as_you_go.value)
        except OSError as error:
            self._said.value = f"This choice holds here only: {escape(str(error.strerror))}, {escape(str(error.filename))}"
        self._follow_cells()

    def _follow_cells(self) -> None:
        """Look after each cell from now on, or no more, as chosen."""
        if self._after_cells is not None:
            self._after_cells.stop()
        shell = get_ipython() if self._as_you_go.value and not self._finished else None
        self._after_cells = None if shell is None else AfterCells(shell, self._look)

    def _look(self, interrupted: Callable[[], bool]) -> None:
        """Show what the current check would find, and record nothing. Leave off when a cell or a check begins."""
        check = self.current
        ctx = self._context(check)
        if ctx is None or ctx.cluster in self._stopped or self._reports.get(check.id):
            return
        ctx.may_call = False
        found: list[Result] = []
        with self._checking:
            try:
                results = results_of(check, ctx)
                while len(found) < len(check.requirements):
                    if interrupted() or self._busy:
                        return
                    found.append(next(results))
            except Exception:  # of the learner's objects, perhaps half made: a check that's asked for shows it
                return
        with self._lock:
            self._looked[check.id] = Report(check.id, check.title, tuple(found))
            self._show()

    def _finish(self) -> None:
        super()._finish()
        self._follow_cells()

    def _evaluate(self, check: Check, ctx: CheckContext) -> None:
        said = ""
        try:
            with self._checking:
                report = evaluate(check, ctx)
            progress.record_lab(check.id, bool(report))
            tell_class(check, report)
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
        parts = [passed_html(_next_of(self._lab))] if all_passed else []
        parts += [f"<b>{passed} of {len(checks)} passed</b>"] if len(checks) > 1 else []
        for check in checks:
            looked = self._looked.get(check.id)
            report = self._reports.get(check.id) if looked is None else looked
            parts.append(check_html(check, report, is_open=check is self.current and not all_passed))
            if looked is not None and not any(result.state == "unmet" for result in looked.results):
                words = "All requirements are met" if looked else "What's left calls your code"
                parts.append(f"<div><b>{words}. Press Check.</b></div>")
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

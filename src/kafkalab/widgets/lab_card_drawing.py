"""What the lab card shows: its checks with their requirements, and that the lab has passed."""

from __future__ import annotations

from html import escape
from pathlib import Path

from kafkalab.checks.requirements import Check, Report, Result
from kafkalab.widgets.notebook_links import notebook_link
from kafkalab.widgets.palette import STATE_COLOURS, readable
from kafkalab.widgets.prose import prose

__all__ = ["check_html", "passed_html"]

_COLOURS = {"met": STATE_COLOURS["up"], "unmet": STATE_COLOURS["dead"], "waiting": STATE_COLOURS["stopped"]}
_SYMBOLS = {"met": "✓", "unmet": "✗", "waiting": "·"}


def passed_html(following: Path | None) -> str:
    """Return that the lab has passed, with a link to the next one's notebook."""
    link = f" {notebook_link(following, 'Next lab →')}" if following else ""
    box = "border:1px solid #2da44e;border-left-width:5px;border-radius:4px;padding:6px 10px;margin:4px 0"
    return f'<div style="{box};font-size:1.2em;font-weight:700" role="status">✓ Lab passed{link and " · "}{link}</div>'


def check_html(check: Check, report: Report | None, *, is_open: bool) -> str:
    """Return a check that unfolds to its requirements, by what was found last."""
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
    style = f"color:{readable(_COLOURS[state])};font-weight:700"
    return f'<span style="{style}" role="img" aria-label="{words}">{_SYMBOLS[state]}</span>'

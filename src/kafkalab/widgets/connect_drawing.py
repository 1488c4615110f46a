"""The state of Connect as a table: in HTML that follows the page's theme, and in plain text."""

from __future__ import annotations

from html import escape

from kafkalab.services.connect_view import ConnectorView, ConnectView, PartView
from kafkalab.widgets.card import CELL, card, heading, process
from kafkalab.widgets.palette import LAG, STATE_COLOURS, THEMED, readable
from kafkalab.widgets.scrub import scrub

__all__ = ["connect_html", "connect_text"]

_COLOURS = {
    "RUNNING": readable(STATE_COLOURS["up"]),
    "FAILED": readable(STATE_COLOURS["dead"]),
    "PAUSED": readable(STATE_COLOURS["paused"]),
}
_OTHER_COLOUR = readable(STATE_COLOURS["stopped"])
_SILENT = "No worker answers."
_NOTHING = "There is no connector."
_HEADINGS = ("connector", "", "state", "tasks", "lag")


def connect_html(view: ConnectView) -> str:
    """All of it as one card."""
    workers = " ".join(process(f"worker {worker.number}", worker.alive) for worker in view.workers)
    if view.connectors:
        rows = "".join(_rows_html(connector) for connector in view.connectors)
        head = heading(*_HEADINGS)
        body = f'<table style="border-collapse:collapse;margin:4px 0 0;font-size:13px">{head}{rows}</table>'
    else:
        body = f'<div style="color:{THEMED.muted};margin-top:4px">{_NOTHING if view.connectors is not None else _SILENT}</div>'
    return card(workers + body)


def _rows_html(connector: ConnectorView) -> str:
    lag = "" if connector.lag is None else str(connector.lag)
    cells = (
        f"<b>{escape(connector.name)}</b>",
        f'<span style="color:{THEMED.muted}">{escape(connector.kind)}</span>',
        _state_html(connector.itself.state),
        "<br>".join(f"{number} {_state_html(task.state)}{_place(task)}" for number, task in connector.tasks.items()) or "none",
        f'<span style="color:{readable(LAG)}">{lag}</span>' if connector.lag else lag,
    )
    rows = "<tr>" + "".join(f'<td style="{CELL}">{cell}</td>' for cell in cells) + "</tr>"
    for error in connector.errors:
        rows += f'<tr><td colspan="{len(cells)}" style="{CELL};color:{_COLOURS["FAILED"]}">{escape(_said(error))}</td></tr>'
    return rows


def _state_html(state: str) -> str:
    return f'<span style="color:{_COLOURS.get(state, _OTHER_COLOUR)}">{escape(state)}</span>'


def _place(task: PartView) -> str:
    return "" if task.worker is None else f" on worker {task.worker}"


def _said(error: str) -> str:
    return scrub(error, "<address>")  # the table is stored, too


def connect_text(view: ConnectView) -> str:
    """The same in plain text."""
    lines = [f"worker {worker.number}: {'running' if worker.alive else 'not running'}" for worker in view.workers]
    for connector in view.connectors or ():
        tasks = ", ".join(f"task {number} {task.state}{_place(task)}" for number, task in connector.tasks.items()) or "no task"
        lag = "" if connector.lag is None else f"; lag {connector.lag}"
        lines.append(f"{connector.name} ({connector.kind}) {connector.itself.state}: {tasks}{lag}")
        lines += [f"  {_said(error)}" for error in connector.errors]
    if not view.connectors:
        lines.append(_SILENT if view.connectors is None else _NOTHING)
    return "\n".join(lines)

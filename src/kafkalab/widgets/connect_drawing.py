"""The state of Connect as a table: in HTML that follows the page's theme, and in plain text."""

from __future__ import annotations

from html import escape

from kafkalab.services.connect_view import ConnectorView, ConnectView, PartView
from kafkalab.widgets.palette import LAG, STATE_COLOURS, THEMED
from kafkalab.widgets.scrub import scrub

__all__ = ["connect_html", "connect_text"]

_COLOURS = {"RUNNING": STATE_COLOURS["up"], "FAILED": STATE_COLOURS["dead"], "PAUSED": STATE_COLOURS["paused"]}
_OTHER_COLOUR = STATE_COLOURS["stopped"]
_SILENT = "No worker answers."
_NOTHING = "There is no connector."
_HEADINGS = ("connector", "", "state", "tasks", "lag")


def connect_html(view: ConnectView) -> str:
    """All of it as one card."""
    workers = " ".join(_worker_html(f"worker {worker.number}", worker.alive) for worker in view.workers)
    if view.connectors:
        head = "".join(f'<th style="{_cell()};color:{THEMED.muted};font-weight:400">{heading}</th>' for heading in _HEADINGS)
        rows = "".join(_rows_html(connector) for connector in view.connectors)
        body = f'<table style="border-collapse:collapse;margin:4px 0 0;font-size:13px"><tr>{head}</tr>{rows}</table>'
    else:
        body = f'<div style="color:{THEMED.muted};margin-top:4px">{_NOTHING if view.connectors is not None else _SILENT}</div>'
    card = (
        f"background:{THEMED.background};color:{THEMED.text};border:1px solid {THEMED.border};border-radius:6px;"
        "padding:8px 12px;font:13px/20px system-ui,sans-serif;overflow-x:auto"
    )
    return f'<div style="{card}">{workers}{body}</div>'


def _worker_html(name: str, alive: bool) -> str:
    colour = STATE_COLOURS["up" if alive else "dead"]
    return (
        f'<span style="background:{THEMED.panel};border:1px solid {THEMED.border};border-radius:10px;padding:1px 8px">'
        f'<span style="color:{colour}">{"●" if alive else "✖"}</span> {name}{"" if alive else ", not running"}</span>'
    )


def _rows_html(connector: ConnectorView) -> str:
    lag = "" if connector.lag is None else str(connector.lag)
    cells = (
        f"<b>{escape(connector.name)}</b>",
        f'<span style="color:{THEMED.muted}">{escape(connector.kind)}</span>',
        _state_html(connector.itself.state),
        "<br>".join(f"{number} {_state_html(task.state)}{_place(task)}" for number, task in connector.tasks.items()) or "none",
        f'<span style="color:{LAG}">{lag}</span>' if connector.lag else lag,
    )
    rows = "<tr>" + "".join(f'<td style="{_cell()}">{cell}</td>' for cell in cells) + "</tr>"
    for error in connector.errors:
        rows += f'<tr><td colspan="{len(cells)}" style="{_cell()};color:{_COLOURS["FAILED"]}">{escape(_said(error))}</td></tr>'
    return rows


def _cell() -> str:
    # Also against the stripes and the alignment that a notebook gives its tables.
    return f"text-align:left;vertical-align:top;padding:2px 14px 2px 0;background:{THEMED.background}"


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

"""What cards of processes have in common, in HTML that follows the page's theme."""

from __future__ import annotations

from kafkalab.widgets.palette import STATE_COLOURS, THEMED, readable

__all__ = ["CELL", "card", "heading", "process"]

# Also against the stripes and the alignment that a notebook gives its tables.
CELL = f"text-align:left;vertical-align:top;padding:2px 14px 2px 0;background:{THEMED.background}"
"""Style of a cell of a table."""


def card(body: str) -> str:
    """A card with a border."""
    style = (
        f"background:{THEMED.background};color:{THEMED.text};border:1px solid {THEMED.border};border-radius:6px;"
        "padding:8px 12px;font:13px/20px system-ui,sans-serif;overflow-x:auto"
    )
    return f'<div style="{style}">{body}</div>'


def heading(*columns: str) -> str:
    """The first row of a table."""
    cells = (f'<th style="{CELL};color:{THEMED.muted};font-weight:400">{column}</th>' for column in columns)
    return f"<tr>{''.join(cells)}</tr>"


def process(name: str, alive: bool, inside: str = "") -> str:
    """A process and whether it runs, with something inside of it."""
    colour = readable(STATE_COLOURS["up" if alive else "dead"])
    return (
        f'<span style="display:inline-block;vertical-align:top;background:{THEMED.panel};border:1px solid {THEMED.border};'
        f'border-radius:10px;padding:1px 8px"><span style="color:{colour}">{"●" if alive else "✖"}</span> '
        f"{name}{'' if alive else ', not running'}{inside}</span>"
    )

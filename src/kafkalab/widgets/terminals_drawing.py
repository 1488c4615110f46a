"""Draw terminals as HTML: lines in, markup out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal

from kafkalab.widgets.scrub import CODES, scrub

__all__ = ["GAP", "Pane", "grid_columns", "pane_html", "panes_html", "panes_text"]

PaneState = Literal["running", "ended", "killed"]

_COLOURS: dict[PaneState, str] = {"running": "#3fb950", "ended": "#b1bac4", "killed": "#ff7b72"}
GAP = 8  # pixels between two panes
_HEIGHT = 190
_NARROWEST = 240  # pixels: some 30 characters
_LIVE_LINES = 300
_STILL_LINES = 25


@dataclass(frozen=True)
class Pane:
    """The content of one pane."""

    title: str
    lines: Sequence[str]
    state: PaneState


def pane_html(pane: Pane) -> str:
    """Return one live pane. Its end stays visible."""
    return _pane(pane, pane.lines[-_LIVE_LINES:])


def panes_html(panes: Sequence[Pane], columns: int) -> str:
    """Return all panes as a still grid, without this machine's addresses and folders."""
    cells = "".join(f"<div>{_pane(pane, _still_lines(pane))}</div>" for pane in panes)
    grid = f"display:grid;grid-template-columns:{grid_columns(columns)};gap:{GAP}px;max-width:1100px"
    return f'<div style="{grid}">{cells}</div>'


def grid_columns(most: int) -> str:
    """Return the columns of a grid of panes: at most so many, and each wide enough to read."""
    share = f"(100% - {GAP * (most - 1)}px) / {most}"
    return f"repeat(auto-fill, minmax(max({_NARROWEST}px, {share}), 1fr))"


def panes_text(panes: Sequence[Pane]) -> str:
    """Return all panes as plain text, scrubbed like `panes_html`."""
    return "\n\n".join("\n".join([f"[{pane.title}: {pane.state}]", *_still_lines(pane)]) for pane in panes)


def _still_lines(pane: Pane) -> list[str]:
    left_out = len(pane.lines) - _STILL_LINES
    cut = [f"… {left_out} lines before"] if left_out > 0 else []
    return cut + [scrub(line) for line in pane.lines[-_STILL_LINES:]]


def _pane(pane: Pane, lines: Sequence[str]) -> str:
    colour = _COLOURS[pane.state]
    shown = escape(CODES.sub("", "\n".join(lines))) or " "
    head = (
        '<div style="display:flex;justify-content:space-between;background:#30363d;color:#e6edf3;padding:3px 8px;'
        f'font:600 12px/18px system-ui,sans-serif"><span>{escape(pane.title)}</span>'
        f'<span style="color:{colour}">{"●" if pane.state == "running" else "■"} {pane.state}</span></div>'
    )
    # A reversed column keeps its end visible without any script.
    column = (
        f"display:flex;flex-direction:column-reverse;overflow:auto;height:{_HEIGHT}px;padding:4px 8px;box-sizing:border-box"
    )
    lines_style = (
        "margin:0 0 auto;padding:0;flex:none;overflow:visible;background:transparent;color:#e6edf3;text-align:left;"
        "font:12px/16px ui-monospace,Menlo,Consolas,monospace;white-space:pre-wrap;overflow-wrap:anywhere"
    )
    scrolls = f'tabindex="0" role="group" aria-label="{escape(pane.title)}"'
    body = f'<div style="{column}" {scrolls}><pre style="{lines_style}">{shown}</pre></div>'
    return f'<div style="background:#0d1117;border:1px solid #30363d;border-radius:6px;overflow:hidden">{head}{body}</div>'

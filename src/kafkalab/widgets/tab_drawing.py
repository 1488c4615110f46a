"""The pieces of the panel's pages, in HTML that follows the page's theme, and their style sheet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from kafkalab.widgets.palette import LAG, STATE_COLOURS, THEMED, readable

__all__ = ["STYLE", "bar", "heading", "muted", "state", "table", "trouble"]

_STATES = {  # by how it goes: a form and a colour
    "good": ("●", STATE_COLOURS["up"]),
    "bad": ("✕", STATE_COLOURS["dead"]),
    "waits": ("‖", STATE_COLOURS["paused"]),
    "moves": ("◌", STATE_COLOURS["starting"]),
}
_GOOD = ("RUNNING", "STABLE", "UP")
_BAD = ("FAILED", "ERROR", "DEAD", "KILLED", "ENDED", "REFUSED", "NOT RUNNING")
_WAITS = ("PAUSED", "STOPPED", "EMPTY")

_LONGEST = 300  # characters of a reason

STYLE = f"""<style>
.kafkalab-tab, .kafkalab-tab .widget-html-content {{ color: {THEMED.text}; line-height: 1.4; height: auto;
  font: 13px/1.4 var(--jp-ui-font-family, system-ui, sans-serif); }}
.kafkalab-tab .widget-html-content {{ min-width: 0; width: 100%; }}
.kafkalab-tab .muted {{ color: {THEMED.muted}; }}
.kafkalab-tab .bad {{ color: {readable(STATE_COLOURS["dead"])}; overflow-wrap: anywhere; margin: 2px 0; }}
.kafkalab-tab .behind {{ color: {readable(LAG)}; font-weight: 600; }}
.kafkalab-tab .item {{ display: flex; flex-wrap: wrap; gap: 0 10px; align-items: baseline; margin-top: 8px; padding-top: 6px;
  border-top: 1px solid {THEMED.border}; }}
.kafkalab-tab .kafkalab-title + .item {{ margin-top: 0; padding-top: 2px; border-top: none; }}
.kafkalab-tab .item b {{ overflow-wrap: anywhere; }}
.kafkalab-tab .rows {{ overflow-x: auto; }}
.kafkalab-tab table {{ border-collapse: collapse; margin: 2px 0 0; font-size: 12px; font-variant-numeric: tabular-nums; }}
.kafkalab-tab th, .kafkalab-tab td {{ text-align: left; vertical-align: top; padding: 1px 12px 1px 0; font-weight: 400;
  white-space: nowrap; background: none; }}
.kafkalab-tab th {{ color: {THEMED.muted}; }}
.kafkalab-tab progress {{ width: 110px; height: 12px; vertical-align: middle; accent-color: {STATE_COLOURS["starting"]}; }}
</style>"""


def heading(name: str, *facts: str) -> str:
    """Return the line above the rows of one thing. The facts are HTML."""
    return f'<div class="item"><b>{escape(name)}</b>{"".join(f"<span>{fact}</span>" for fact in facts if fact)}</div>'


def muted(words: str) -> str:
    """Return words that say less than others. Nothing for none."""
    return words and f'<span class="muted">{escape(words)}</span>'


def trouble(reason: str) -> str:
    """Return the first line of a reason why something went wrong."""
    line = next(iter(reason.strip().splitlines()), "")
    return f'<div class="bad">{escape(line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…")}</div>'


def state(word: str) -> str:
    """Return a state in its own word, with a form and a colour."""
    known = word.upper()
    kind = "good" if known in _GOOD else "waits" if known in _WAITS else "bad" if known.startswith(_BAD) else "moves"
    form, colour = _STATES[kind]
    return f'<span style="color:{readable(colour)}"><span aria-hidden="true">{form}</span> {escape(word)}</span>'


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table. The cells are HTML."""
    head = "".join(f'<th scope="col">{column}</th>' for column in columns)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f'<div class="rows"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def bar(done: int, total: int, what: str) -> str:
    """Return a bar that says how much is done."""
    return f'<progress max="{max(1, total)}" value="{done}" aria-label="{escape(what)}"></progress> {done:,} of {total:,}'

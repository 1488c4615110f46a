"""The events of the live map in words. What a fault brings about stands below it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape

from kafkalab.widgets.events import Event

__all__ = ["Line", "log_html", "log_lines"]

_SHOWN = 200
_NAMED = 8  # more partitions than this are counted

# What a fault's words already say of the broker's state.
_IMPLIED = {"killed": "dead", "stopped": "stopped", "paused": "paused", "isolated": "isolated"}


@dataclass(frozen=True)
class Line:
    """One line of the log.

    Attributes
    ----------
    time
        The time of day; empty if the line says what the fault above it brought about.
    words
        What happened.
    bad
        Whether it's a fault or an error.
    """

    time: str
    words: str
    bad: bool


def log_html(events: Sequence[Event], *, name_topics: bool) -> str:
    """Return the log, with the newest line last."""
    lines = "".join(_line_html(line) for line in log_lines(events[-_SHOWN:], name_topics=name_topics))
    # The browser replaces it with each event, so a screen reader would read all of it: the panel says what is new.
    return f'<div role="log" aria-label="Events" aria-live="off">{lines or "Nothing has happened yet."}</div>'


def log_lines(events: Sequence[Event], *, name_topics: bool) -> list[Line]:
    """Return a line for each event, and one for events that differ in their topic only.

    Parameters
    ----------
    events
        The events, in order.
    name_topics
        Whether to name the topics: there's more than one.
    """
    lines: list[Line] = []
    below_fault = False
    implied = ""
    for event, topics in _together(events):
        if event.says == implied and implied:
            continue
        words = _words(event, topics, name_topics)
        if event.kind == "fault":
            broker, _, done = event.says.rpartition(" ")
            implied = f"{broker} is {_IMPLIED[done]}" if done in _IMPLIED else ""
        below_fault = event.kind == "fault" or (below_fault and event.after is not None)
        if event.after is not None:
            words += f" after {event.after:.1f} s"
        is_consequence = below_fault and event.after is not None
        at = "" if is_consequence else time.strftime("%H:%M:%S", time.localtime(event.at))
        lines.append(Line(at, f"→ {words}" if is_consequence else words, event.kind in ("fault", "error")))
    return lines


def _together(events: Sequence[Event]) -> Iterator[tuple[Event, set[str]]]:
    """Join events of one moment that say the same of several topics."""
    joined: dict[tuple[float, str], tuple[Event, set[str]]] = {}
    for number, event in enumerate(events):
        key = (event.at, event.says if event.partitions else f"{number}")
        known, topics = joined.get(key, (replace(event, partitions=()), set()))
        together = replace(known, partitions=known.partitions + event.partitions)
        joined[key] = together, topics | ({event.topic} if event.topic else set())
    yield from joined.values()


def _words(event: Event, topics: set[str], name_topics: bool) -> str:
    if not event.partitions:
        return event.says or event.text
    if len(topics) > 1:
        which = f"{len(event.partitions)} partitions of {len(topics)} topics"
    else:
        numbers = ", ".join(f"p{number}" for number in event.partitions)
        which = numbers if len(event.partitions) <= _NAMED else f"{len(event.partitions)} partitions"
        if name_topics:
            which = f"{event.topic} {which}" if which == numbers else f"{which} of {event.topic}"
    return event.says.replace("{}", which)


def _line_html(line: Line) -> str:
    words = f'<b class="bad">{escape(line.words)}</b>' if line.bad else escape(line.words)
    return f'<div class="event"><time>{line.time}</time><span>{words}</span></div>'

"""Draw a space-time diagram: a verdict in, SVG out."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import cast

from kafkalab.cluster.view import Fault
from kafkalab.history.records import Send
from kafkalab.history.verdict import Kind, Verdict, counted
from kafkalab.widgets.palette import LAG, LEADER, LIGHT, STATE_COLOURS, THEMED, Palette
from kafkalab.widgets.space_time_layout import Arrow, Lane, Run, SpaceTimeLayout, Status
from kafkalab.widgets.svg import WIDTH, Drawing, Strip, fit, line, path, rect, text, text_width

__all__ = ["draw_space_time", "title"]

_COLOURS: dict[Status, str] = {
    "lost write": STATE_COLOURS["dead"],
    "aborted read": "#bf3989",
    "duplicate": LAG,
    "inconsistent offset": STATE_COLOURS["isolated"],
    "non-monotonic send": "#0b7f8c",
    "non-monotonic poll": "#bc4c00",
    "poll skip": STATE_COLOURS["isolated"],
    "unseen": STATE_COLOURS["stopped"],
    "not acknowledged": STATE_COLOURS["stopped"],
    "folded": LEADER,
    "right": LEADER,
}


_LEFT, _RIGHT = 118, 18
_TOP = 38  # for fault names, and values below them
_APART = {("producer", "partition"): 92, ("partition", "consumer"): 92, ("producer", "consumer"): 92}
_BESIDE = 44  # between two lines of one kind
_STEP, _NARROWEST_STEP = 44.0, 22.0  # between two events
_FIRST = 22.0  # x of the first event
_FOLD = 4.0  # steps that a fold takes


def title(verdict: Verdict) -> list[tuple[str, str]]:
    """Return what was sent and what is wrong, as phrases with their colours."""
    anomalies = [(counted(count, kind), _COLOURS[kind]) for kind, count in verdict.counts.items()]
    return [(verdict.summary, THEMED.text), *(anomalies or [("no anomaly", STATE_COLOURS["up"])])]


def draw_space_time(layout: SpaceTimeLayout, faults: Iterable[Fault] = (), palette: Palette = LIGHT) -> Strip | None:
    """Draw a line per producer, partition and consumer, and an arrow per record from its send to the log and its polls.

    It's as wide as its events need. Without any record there's nothing to draw.

    Parameters
    ----------
    layout
        The layout to draw. Offending records are coloured, the others pale.
    faults
        Faults of the cluster. They are marked if their time is known.
    palette
        Colours.
    """
    return _Diagram(layout, palette).draw(faults) if layout.runs else None


class _Diagram:
    """A layout with positions on the page."""

    def __init__(self, layout: SpaceTimeLayout, palette: Palette) -> None:
        self._layout = layout
        self._palette = palette
        self._y: dict[Lane, float] = {}
        y, before = float(_TOP), None
        for lane in layout.lanes:
            if before is not None:
                y += _BESIDE if before[0] == lane[0] else _APART[before[0], lane[0]]
            self._y[lane], before = y, lane
        self._bottom = y
        self._columns, self._width = _columns(layout.runs)
        self._places = [place for place, _ in self._columns]
        self._lanes = Counter(kind for kind, _ in layout.lanes)
        self._taken: list[tuple[float, float, float]] = []  # left, right and baseline of the words already placed

    def draw(self, faults: Iterable[Fault]) -> Strip:
        pale = [run for run in self._layout.runs if not run.offending]
        offending = [run for run in self._layout.runs if run.offending]
        body = self._lines() + self._faults(faults)
        body += "".join(map(self._run, pale)) + "".join(map(self._run, offending))  # offending records are drawn last, on top
        body += "".join(map(self._label, offending)) + "".join(map(self._label, pale))  # and place their words first
        body += "".join(self._offsets(run) for run in (*offending, *pale))
        height = self._bottom + 46
        return Strip(Drawing(self._names(), height, _LEFT), Drawing(body + self._seconds(), height, self._width))

    def _x(self, place: float) -> float:
        """Return an event's x, proportional between two shown events."""
        after = bisect_right(self._places, place)
        if after == 0 or after == len(self._places):
            return self._columns[max(after - 1, 0)][1]
        (a, left), (b, right) = self._columns[after - 1], self._columns[after]
        return round(left + (place - a) / (b - a) * (right - left), 1)

    def _ends(self, arrow: Arrow) -> tuple[float, float, float, float]:
        return self._x(arrow.start), self._y[arrow.source], self._x(arrow.end), self._y[arrow.target]

    def _lines(self) -> str:
        body = ""
        for (kind, _), y in self._y.items():
            log = kind == "partition"
            colour = self._palette.muted if log else self._palette.border
            body += line(0, y, self._width, y, stroke=colour, width=2 if log else 1)
        return body

    def _names(self) -> str:
        body = ""
        for (kind, name), y in self._y.items():
            number = re.search(r"-\d+$", name)  # of the partition
            shown = fit(name, _LEFT - 12, 12, ending=number[0] if number else "")
            body += text(0, y + 1, shown, fill=self._palette.text, weight="600", title=name)
            body += text(0, y + 15, kind, fill=self._palette.muted)
        seconds = text(0, self._bottom + 42, "seconds", fill=self._palette.muted) if self._layout.clock else ""
        return body + seconds

    def _run(self, run: Run) -> str:
        band = self._band(run.arrows[0], run.arrows[-1], run) if run.folded else ""
        return band + "".join(self._arrow(arrow) for arrow in run.shown)

    def _band(self, first: Arrow, last: Arrow, run: Run) -> str:
        (x1, y1, x2, y2), (x3, _, x4, _) = self._ends(first), self._ends(last)
        colour, strength = _COLOURS[run.status], 0.24 if run.offending else 0.14
        if first.source == first.target:
            return rect(x1, y1 - 4, x3 - x1, 8, fill=colour, opacity=strength, radius=4)
        return path(f"M{x1:g} {y1:g} L{x3:g} {y1:g} L{x4:g} {y2:g} L{x2:g} {y2:g} Z", fill=colour, opacity=strength)

    def _arrow(self, arrow: Arrow) -> str:
        x1, y1, x2, y2 = self._ends(arrow)
        colour, wrong = _COLOURS[arrow.status], arrow.status != "right"
        opacity = None if wrong else 0.7
        title = f"{arrow.record.value}: {arrow.record.where}"
        body = ""
        if arrow.source != arrow.target:
            body += line(
                x1,
                y1,
                x2,
                y2,
                stroke=colour,
                width=1.8 if wrong else 1.2,
                dash=None if arrow.arrives else "5 3",
                opacity=opacity,
            )
            if arrow.arrives:
                body += _head(x1, y1, x2, y2, colour, opacity)
        if not arrow.arrives:
            return body + _cross(x2, y2, colour)
        return body + rect(x2 - 3, y2 - 3, 6, 6, fill=colour, radius=3, title=title)

    def _label(self, run: Run) -> str:
        """Return a run's label: in its middle, or if many arrows cross, at the line that only this run uses."""
        words = _words_for(run)
        if not words:
            return ""
        (x1, y1, x2, y2), (x3, _, x4, _) = self._ends(run.arrows[0]), self._ends(run.arrows[-1])
        source, target = run.arrows[0].source[0], run.arrows[0].target[0]
        if source == "partition" != target and self._lanes[source] > 1 and not run.offending:
            return ""  # the bands of several partitions cross
        if source == target:
            x, y = (x1 + x3) / 2, y1 - 10
        elif self._lanes[target] > 1:
            x, y = (x2 + x4) / 2, y2 - 10
        elif self._lanes[source] > 1:
            x, y = (x1 + x3) / 2, y1 + 30
        else:
            x, y = (x1 + x2 + x3 + x4) / 4, (y1 + y2) / 2 + 4
        colour = _COLOURS[run.status] if run.offending else self._palette.muted
        return self._words(x, y, words, colour, bold=run.offending)

    def _offsets(self, run: Run) -> str:
        """Draw an arrow's value at the producer's line and its offset below the others."""
        body, colour = "", _COLOURS[run.status] if run.offending else self._palette.muted
        for arrow in run.shown:
            x1, y1, x2, y2 = self._ends(arrow)
            offset, value = arrow.record.offset, arrow.record.value
            if isinstance(arrow.record, Send):
                body += self._words(x1, y1 - 7, str(value), colour, moves=False)
            if arrow.target[0] == "partition" or arrow.arrives:
                again = "" if isinstance(arrow.record, Send) else str(value)
                body += self._words(x2, y2 + 15, again if offset is None else str(offset), colour, moves=False)
        return body

    def _words(self, x: float, y: float, words: str, colour: str, *, bold: bool = False, moves: bool = True) -> str:
        """Place words, one or two lines lower if the place is taken. Leave them out if there is no room."""
        half = text_width(words, 13 if bold else 12) / 2
        x = min(max(x, half), self._width - half)
        for lower in (0, 15, -15, 30, -30) if moves else (0,):
            if not any(
                x - half < right + 4 and left < x + half + 4 and abs(y + lower - at) < 13 for left, right, at in self._taken
            ):
                self._taken.append((x - half, x + half, y + lower))
                return text(
                    round(x, 1), round(y + lower, 1), words, fill=colour, anchor="middle",
                    weight="600" if bold else None, halo=self._palette.background,
                )  # fmt: skip
        return ""

    def _faults(self, faults: Iterable[Fault]) -> str:
        body, colour = "", STATE_COLOURS["dead"]
        for fault in faults:
            place = self._layout.order_at(fault.at)
            if place is not None:
                x = self._x(place)
                body += line(x, 12, x, self._bottom + 8, stroke=colour, dash="2 3")
                body += self._words(x, 11, f"{fault.verb} {fault.broker}", colour, moves=False)
        return body

    def _seconds(self) -> str:
        """Draw the seconds since the first send at some of the events."""
        y = self._bottom + 42
        if not self._layout.clock:
            return text(self._width - 8, y, "in order of time →", fill=self._palette.muted, anchor="end")
        body, free, before, began = "", 0.0, "", self._layout.clock[0][1]
        times = dict(self._layout.clock)
        for place, x in self._columns:
            words = f"{times[place] - began:.2f}" if place in times else ""
            half = text_width(words, 12) / 2
            if words and words != before and x - half >= free:
                body += text(x, y, words, fill=self._palette.muted, anchor="middle")
                free, before = x + half + 6, words
        return body


def _columns(runs: Sequence[Run]) -> tuple[list[tuple[float, float]], float]:
    """Return a column for each shown event, with its place in the order and its x, and the width of all."""
    width: dict[float, float] = {}
    for run in runs:
        for arrow in run.shown:
            width.setdefault(arrow.start, 1.0)
            width.setdefault(arrow.end, 1.0)
        if run.folded:
            width[run.arrows[-1].start] = _FOLD
            width[run.arrows[-1].end] = max(width[run.arrows[-1].end], 2.0)
    places = sorted(width)
    whole = sum(width[place] for place in places[1:]) or 1.0
    room = WIDTH - _LEFT
    step = min(max((room - _FIRST - _RIGHT) / whole, _NARROWEST_STEP), _STEP)
    columns: list[tuple[float, float]] = []
    x = _FIRST
    for place in places:
        x += width[place] * step if columns else 0.0
        columns.append((place, round(x, 1)))
    return columns, max(room, x + _RIGHT)


def _words_for(run: Run) -> str:
    count, first = len(run.arrows), run.arrows[0]
    if run.status == "folded":
        return f"{count:,} records, some of them offending"
    if run.status == "poll skip":
        return f"poll skip: {count:,} record{'s' if count > 1 else ''}"
    if run.status == "aborted read" and isinstance(first.record, Send):
        return first.record.outcome
    if run.offending:
        return run.status if count == 1 else counted(count, cast(Kind, run.status))
    return f"{count:,} records" if run.folded else ""


def _head(x1: float, y1: float, x2: float, y2: float, colour: str, opacity: float | None) -> str:
    """Draw an arrowhead just before the arrow's end."""
    length = math.hypot(x2 - x1, y2 - y1) or 1.0
    dx, dy = (x2 - x1) / length, (y2 - y1) / length
    tip, back = (x2 - 3 * dx, y2 - 3 * dy), (x2 - 11 * dx, y2 - 11 * dy)
    a, b = (back[0] - 3.5 * dy, back[1] + 3.5 * dx), (back[0] + 3.5 * dy, back[1] - 3.5 * dx)
    return path(
        " ".join(f"{move}{x:.1f} {y:.1f}" for move, (x, y) in zip("MLL", (tip, a, b), strict=True)) + " Z",
        fill=colour,
        opacity=opacity,
    )


def _cross(x: float, y: float, colour: str) -> str:
    return "".join(line(x - 4.5, y - 4.5 * way, x + 4.5, y + 4.5 * way, stroke=colour, width=2.2) for way in (1, -1))

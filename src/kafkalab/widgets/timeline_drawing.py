"""Draw acknowledged messages over time: acknowledgements in, SVG out."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Literal

from kafkalab.widgets.palette import LEADER, LIGHT, STATE_COLOURS, Palette
from kafkalab.widgets.svg import WIDTH, Drawing, Strip, line, path, rect, stack, text, text_width

__all__ = ["MARGINS", "Ack", "Gap", "Mark", "describe_gaps", "draw_timeline", "longest_gap", "partition_gaps"]

_LEFT, _RIGHT, _HEIGHT = 62, 12, 150
_INDENT = 5  # room for half of the axis' first number
MARGINS = (_INDENT, _RIGHT)
"""Pixels before the first moment and after the last in what scrolls of a drawing."""

_SECOND = 8  # pixels: a second is at least so wide, and the drawing scrolls if need be
_WIDEST = 4000  # pixels
_SLICE = 6  # pixels: the approximate width of a time slice in the curve
_LANE = 14
_LABEL_ROWS = 4
_LABEL_ROW = 15
_SPIKE = 4  # times the usual rate; higher peaks (after an outage, all arrive at once) are cut off
_WORTH_TELLING = 0.3  # seconds; shorter gaps are the producer's own rhythm
_RED = STATE_COLOURS["dead"]


@dataclass(frozen=True)
class Ack:
    """A message that was acknowledged `at` (seconds since the epoch), and its partition."""

    at: float
    partition: int


@dataclass(frozen=True)
class Mark:
    """An event in the cluster: a fault, or a leader change."""

    at: float
    kind: Literal["fault", "leader"]
    text: str


@dataclass(frozen=True)
class Gap:
    """A time without an acknowledgement, from `start` to `end` (seconds since the epoch)."""

    start: float
    end: float

    @property
    def seconds(self) -> float:
        """Its length."""
        return self.end - self.start


def longest_gap(times: Iterable[float]) -> Gap | None:
    """Return the longest time between two consecutive `times`, or None with fewer than two."""
    ordered = sorted(times)
    return max((Gap(a, b) for a, b in pairwise(ordered)), key=lambda gap: gap.seconds, default=None)


def partition_gaps(acks: Iterable[Ack], until: float | None = None) -> dict[int, Gap]:
    """Return the longest gap of each partition, including the one up to `until`. One acknowledgement alone has no gap."""
    times = defaultdict(list)
    for ack in acks:
        times[ack.partition].append(ack.at)
    gaps = {}
    for partition, at in sorted(times.items()):
        gap = longest_gap([*at, until] if until is not None else at)
        if gap is not None:
            gaps[partition] = gap
    return gaps


def describe_gaps(acks: Sequence[Ack], until: float | None = None) -> str:
    """Describe the gaps in one line."""
    whole = longest_gap([ack.at for ack in acks] + ([] if until is None or not acks else [until]))
    if whole is None:
        return "nothing acknowledged yet"
    words = f"no acknowledgement for {whole.seconds:.1f} s" if whole.seconds >= 0.1 else "acknowledged without a gap"
    gaps = partition_gaps(acks, until)
    if len(gaps) > 1:
        partition, gap = max(gaps.items(), key=lambda item: item[1].seconds)
        words += f"; longest in one partition ({partition}): {gap.seconds:.1f} s"
    return words


def draw_timeline(acks: Sequence[Ack], marks: Sequence[Mark], palette: Palette = LIGHT, until: float | None = None) -> Strip:
    """Draw messages per second, a lane per partition, and marks.

    Parameters
    ----------
    acks
        Acknowledged messages, in any order.
    marks
        Faults and leader changes. Those outside the shown time are left out.
    palette
        Colours.
    until
        Where the shown time ends while messages are still expected. By default at the last one.
    """
    if not acks:
        words = "No message has been acknowledged yet."
        return Strip(Drawing("", 20, 0), Drawing(text(0, 14, words, fill=palette.muted), 20))
    times = [ack.at for ack in acks]
    start, end = min(times), max(max(times), until or 0.0)
    axis = _Axis(start, max(end, start + 1))
    shown = [mark for mark in marks if start <= mark.at <= end]
    lines, labels, top = _marks(shown, axis, palette)
    scale, curve, spike = _curve(times, axis, palette)
    # Words last, so that no line crosses them.
    plot = f'<g transform="translate(0 {top:g})">{curve}</g>{lines}<g transform="translate(0 {top:g})">'
    plot += f"{_gap_band(times, until, axis, palette)}{spike}</g>{labels}"
    lane_names, lanes = _lanes(acks, axis, shown, palette)
    second_name, seconds = _seconds(axis, palette)
    return Strip(
        stack(
            Drawing(f'<g transform="translate(0 {top:g})">{scale}</g>', top + _HEIGHT, _LEFT), lane_names, second_name, gap=4
        ),
        stack(Drawing(plot, top + _HEIGHT, axis.width), lanes, seconds, gap=4),
    )


@dataclass(frozen=True)
class _Axis:
    start: float
    end: float

    @property
    def width(self) -> float:
        """Pixels from the start of the time to the right edge of the drawing."""
        return min(max(WIDTH - _LEFT, (self.end - self.start) * _SECOND + _RIGHT), _WIDEST)

    def x(self, at: float) -> float:
        share = (at - self.start) / (self.end - self.start)
        return round(_INDENT + share * (self.width - _INDENT - _RIGHT), 1)


def _nice(value: float) -> float:
    """Return the smallest of 1, 2, 5, 10, 20 … (and their tenths) that isn't below `value`."""
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= value * (1 - 1e-9))


def _curve(times: Sequence[float], axis: _Axis, palette: Palette) -> tuple[str, str, str]:
    """Draw the scale, the curve, and the figure for a peak that is cut off."""
    right_edge = axis.width - _RIGHT
    step = _nice(max((axis.end - axis.start) / right_edge * _SLICE, 0.05))
    counts = Counter(int((at - axis.start) / step) for at in times)
    slices = int((axis.end - axis.start) / step) + 1
    highest, usual = max(counts.values()) / step, median(counts.values()) / step
    top = _nice(min(highest, _SPIKE * usual))
    points = []
    for i in range(slices):
        y = round(_HEIGHT - min(counts[i] / step / top, 1.0) * _HEIGHT, 1)
        left, right = axis.x(axis.start + i * step), axis.x(min(axis.start + (i + 1) * step, axis.end))
        points += [f"{left:g} {y:g}", f"{right:g} {y:g}"]
    area = f"M{_INDENT} {_HEIGHT} L" + " L".join(points) + f" L{axis.x(axis.end):g} {_HEIGHT} Z"
    scale, body = text(0, -6, "per s", fill=palette.muted), ""
    for share in (0.0, 0.5, 1.0):
        y = _HEIGHT - share * _HEIGHT
        body += line(_INDENT, y, right_edge, y, stroke=palette.border)
        scale += text(_LEFT - 6, y + 4, f"{share * top:g}", fill=palette.muted, anchor="end")
    body += path(area, fill=LEADER, opacity=0.35, stroke=LEADER)
    if highest <= top:
        return scale, body, ""
    words = f"▲ {highest:,.0f}"
    half = text_width(words, 12) / 2
    at = axis.x(axis.start + (max(counts, key=counts.__getitem__) + 0.5) * step)
    at = min(max(at, half), axis.width - half)
    return scale, body, text(at, 12, words, fill=palette.text, anchor="middle", halo=palette.background)


def _gap_band(times: Sequence[float], until: float | None, axis: _Axis, palette: Palette) -> str:
    gap = longest_gap([*times, until] if until is not None else times)
    if gap is None or gap.seconds < _WORTH_TELLING:
        return ""
    left, right = axis.x(gap.start), axis.x(gap.end)
    words = f"no acknowledgement for {gap.seconds:.1f} s"
    half = text_width(words, 13) / 2  # bold, with its halo
    middle = min(max((left + right) / 2, half), axis.width - half)
    return rect(left, 0, right - left, _HEIGHT, fill=_RED, opacity=0.12) + text(
        middle, _HEIGHT / 2, words, fill=_RED, size=12, anchor="middle", weight="600", halo=palette.background
    )


def _marks(marks: Sequence[Mark], axis: _Axis, palette: Palette) -> tuple[str, str, float]:
    """Draw the lines and labels of marks, and return where the curve begins below them."""
    placed: list[tuple[float, int, Mark]] = []
    free = [0.0] * _LABEL_ROWS
    for mark in sorted(marks, key=lambda m: m.at):
        width = text_width(mark.text, 13)  # bold
        left = max(0.0, min(axis.x(mark.at) + 3, axis.width - width))
        # A label that would cover another stands below it. If there's no row left, only its line stays.
        row = next((row for row, end in enumerate(free) if left >= end), _LABEL_ROWS)
        if row < _LABEL_ROWS:
            free[row] = left + width + 6
        placed.append((left, row, mark))
    used = sum(end > 0 for end in free)
    top = used * _LABEL_ROW + 18.0
    lines, labels = "", ""
    for left, row, mark in placed:
        fault = mark.kind == "fault"
        colour = _RED if fault else STATE_COLOURS["isolated"]
        x = axis.x(mark.at)
        lines += line(x, min(row, used) * _LABEL_ROW, x, top + _HEIGHT, stroke=colour, width=1.5, dash=None if fault else "4 3")
        if row < _LABEL_ROWS:
            labels += text(left, row * _LABEL_ROW + 12, mark.text, fill=colour, weight="600", halo=palette.background)
    return lines, labels, top


def _lanes(acks: Sequence[Ack], axis: _Axis, marks: Sequence[Mark], palette: Palette) -> tuple[Drawing, Drawing]:
    """Draw the partitions' numbers, and beside them when each got messages."""
    times = defaultdict(list)
    for ack in acks:
        times[ack.partition].append(ack.at)
    if len(times) < 2:
        return Drawing("", 0), Drawing("", 0)
    names, body = text(0, 11, "partition", fill=palette.muted), ""
    for row, (partition, at) in enumerate(sorted(times.items())):
        y = row * _LANE + 16
        names += text(_LEFT - 6, y + 11, str(partition), fill=palette.muted, anchor="end")
        for first, last in _stretches(sorted(at)):
            left = axis.x(first)
            body += rect(left, y + 2, max(axis.x(last) - left, 1.5), _LANE - 4, fill=LEADER, opacity=0.75)
    height = len(times) * _LANE + 16
    for mark in marks:
        if mark.kind == "fault":
            body += line(axis.x(mark.at), 14, axis.x(mark.at), height, stroke=_RED)
    return Drawing(names, height, _LEFT), Drawing(body, height, axis.width)


def _stretches(times: Sequence[float]) -> list[tuple[float, float]]:
    """Return the times without an interruption worth showing."""
    spans = [(times[0], times[0])]
    for at in times[1:]:
        if at - spans[-1][1] > _WORTH_TELLING:
            spans.append((at, at))
        else:
            spans[-1] = (spans[-1][0], at)
    return spans


def _seconds(axis: _Axis, palette: Palette) -> tuple[Drawing, Drawing]:
    length = axis.end - axis.start
    step = _nice(length / (axis.width / 50))
    body = "".join(
        line(axis.x(axis.start + i * step), 0, axis.x(axis.start + i * step), 4, stroke=palette.muted)
        + text(axis.x(axis.start + i * step), 16, f"{i * step:g}", fill=palette.muted, anchor="middle")
        for i in range(int(length / step) + 1)
    )
    return Drawing(text(0, 16, "seconds", fill=palette.muted), 20, _LEFT), Drawing(body, 20, axis.width)

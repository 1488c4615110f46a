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
from kafkalab.widgets.svg import WIDTH, Drawing, line, path, rect, stack, text, text_width

__all__ = ["Ack", "Gap", "Mark", "describe_gaps", "draw_timeline", "longest_gap", "partition_gaps"]

_LEFT, _RIGHT, _TOP, _HEIGHT = 52, 10, 46, 150
_SLICES = 80  # the approximate number of time slices in the curve
_LANE = 9
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


def draw_timeline(acks: Sequence[Ack], marks: Sequence[Mark], palette: Palette = LIGHT, until: float | None = None) -> Drawing:
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
        return Drawing(text(0, 14, "No message has been acknowledged yet.", fill=palette.muted), 20)
    times = [ack.at for ack in acks]
    start, end = min(times), max(max(times), until or 0.0)
    end = max(end, start + 1)
    axis = _Axis(start, end)
    shown = [mark for mark in marks if start <= mark.at <= end]
    curve, spike = _curve(times, axis, palette)
    lines, labels = _marks(shown, axis, palette)
    plot = curve + lines + _gap_band(times, until, axis, palette) + labels + spike  # words last, so that no line crosses them
    title = text(0, 12, f"{len(acks)} messages: {describe_gaps(acks, until)}", fill=palette.text, size=13, weight="600")
    return stack(Drawing(title + plot, _TOP + _HEIGHT), _lanes(acks, axis, shown, palette), _seconds(axis, palette), gap=4)


@dataclass(frozen=True)
class _Axis:
    start: float
    end: float

    def x(self, at: float) -> float:
        return round(_LEFT + (at - self.start) / (self.end - self.start) * (WIDTH - _LEFT - _RIGHT), 1)


def _nice(value: float) -> float:
    """Return the smallest of 1, 2, 5, 10, 20 … (and their tenths) that isn't below `value`."""
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= value * (1 - 1e-9))


def _curve(times: Sequence[float], axis: _Axis, palette: Palette) -> tuple[str, str]:
    """Draw the curve, and the figure for a peak that is cut off."""
    step = _nice(max((axis.end - axis.start) / _SLICES, 0.05))
    counts = Counter(int((at - axis.start) / step) for at in times)
    slices = int((axis.end - axis.start) / step) + 1
    highest, usual = max(counts.values()) / step, median(counts.values()) / step
    top = _nice(min(highest, _SPIKE * usual))
    base = _TOP + _HEIGHT
    points = []
    for i in range(slices):
        y = round(base - min(counts[i] / step / top, 1.0) * _HEIGHT, 1)
        left, right = axis.x(axis.start + i * step), axis.x(min(axis.start + (i + 1) * step, axis.end))
        points += [f"{left:g} {y:g}", f"{right:g} {y:g}"]
    area = f"M{_LEFT} {base} L" + " L".join(points) + f" L{axis.x(axis.end):g} {base} Z"
    body = ""
    for share in (0.0, 0.5, 1.0):
        y = base - share * _HEIGHT
        body += line(_LEFT, y, WIDTH - _RIGHT, y, stroke=palette.border)
        body += text(_LEFT - 6, y + 4, f"{share * top:g}", fill=palette.muted, size=11, anchor="end")
    body += text(0, _TOP - 8, "per s", fill=palette.muted, size=11)
    body += path(area, fill=LEADER, opacity=0.35, stroke=LEADER)
    if highest <= top:
        return body, ""
    at = axis.x(axis.start + (max(counts, key=counts.__getitem__) + 0.5) * step)
    return body, text(at, _TOP + 12, f"▲ {highest:,.0f}", fill=palette.text, size=11, anchor="middle", halo=palette.background)


def _gap_band(times: Sequence[float], until: float | None, axis: _Axis, palette: Palette) -> str:
    gap = longest_gap([*times, until] if until is not None else times)
    if gap is None or gap.seconds < _WORTH_TELLING:
        return ""
    left, right = axis.x(gap.start), axis.x(gap.end)
    words = f"no acknowledgement for {gap.seconds:.1f} s"
    half = text_width(words, 12) / 2
    middle = min(max((left + right) / 2, _LEFT + half), WIDTH - _RIGHT - half)
    return rect(left, _TOP, right - left, _HEIGHT, fill=_RED, opacity=0.12) + text(
        middle, _TOP + _HEIGHT / 2, words, fill=_RED, size=12, anchor="middle", weight="600", halo=palette.background
    )


def _marks(marks: Sequence[Mark], axis: _Axis, palette: Palette) -> tuple[str, str]:
    """Draw the lines and labels of marks."""
    lines, labels = "", ""
    free = {14.0: 0.0, 27.0: 0.0}  # two rows of labels: the upper for faults, the lower for leaders
    for mark in sorted(marks, key=lambda m: m.at):
        fault = mark.kind == "fault"
        x, y = axis.x(mark.at), 14.0 if fault else 27.0
        colour = _RED if fault else STATE_COLOURS["isolated"]
        lines += line(x, y + 4, x, _TOP + _HEIGHT, stroke=colour, width=1.5, dash=None if fault else "4 3")
        width = text_width(mark.text, 11)
        left = min(x + 3, WIDTH - width)
        if left >= free[y]:  # a label that would cover another is left out, but its line stays
            labels += text(left, y + 13, mark.text, fill=colour, size=11, weight="600", halo=palette.background)
            free[y] = left + width + 6
    return lines, labels


def _lanes(acks: Sequence[Ack], axis: _Axis, marks: Sequence[Mark], palette: Palette) -> Drawing:
    times = defaultdict(list)
    for ack in acks:
        times[ack.partition].append(ack.at)
    if len(times) < 2:
        return Drawing("", 0)
    body = text(0, 9, "partition", fill=palette.muted, size=10)
    for row, (partition, at) in enumerate(sorted(times.items())):
        y = row * _LANE + 14
        body += text(_LEFT - 6, y + 7, str(partition), fill=palette.muted, size=9, anchor="end")
        for first, last in _stretches(sorted(at)):
            left = axis.x(first)
            body += rect(left, y + 1, max(axis.x(last) - left, 1.5), _LANE - 2, fill=LEADER, opacity=0.75)
    height = len(times) * _LANE + 14
    for mark in marks:
        if mark.kind == "fault":
            body += line(axis.x(mark.at), 12, axis.x(mark.at), height, stroke=_RED)
    return Drawing(body, height)


def _stretches(times: Sequence[float]) -> list[tuple[float, float]]:
    """Return the times without an interruption worth showing."""
    spans = [(times[0], times[0])]
    for at in times[1:]:
        if at - spans[-1][1] > _WORTH_TELLING:
            spans.append((at, at))
        else:
            spans[-1] = (spans[-1][0], at)
    return spans


def _seconds(axis: _Axis, palette: Palette) -> Drawing:
    length = axis.end - axis.start
    step = _nice(length / 12)
    body = "".join(
        line(axis.x(axis.start + i * step), 0, axis.x(axis.start + i * step), 4, stroke=palette.muted)
        + text(axis.x(axis.start + i * step), 16, f"{i * step:g}", fill=palette.muted, size=11, anchor="middle")
        for i in range(int(length / step) + 1)
    )
    return Drawing(body + text(0, 16, "seconds", fill=palette.muted, size=11), 20)

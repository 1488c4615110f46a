"""Draw a log's offsets along one axis, and a key of the colours."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from kafkalab.cluster.log_files import LogFiles, Segment
from kafkalab.cluster.log_reader import LogView
from kafkalab.widgets.log_style import CARD, GAP, KINDS, PAD, REMOTE, SEGMENT_COLOURS, card, ranged, segment_title
from kafkalab.widgets.palette import LAG, LEADER, LIGHT, STATE_COLOURS, Palette
from kafkalab.widgets.svg import Drawing, fit, line, path, rect, text

__all__ = ["axis_card", "key_card", "marks"]

_NUMBER = 192  # right edge of the numbers
_TRACK, _TRACK_END = 200, CARD - PAD
_ROW = 17
_CLEAN, _DIRTY, _FOLLOWER = STATE_COLOURS["up"], LAG, "#8b949e"
_UNSEEN = (
    "segment files, and what of them was deleted",
    "index entries and the leader-epoch checkpoint",
    "how far the cleaner came",
)
_MARKS = {"log start": "#8b949e", "last stable": LAG, "high watermark": STATE_COLOURS["up"]}


def marks(view: LogView) -> list[tuple[str, int | None]]:
    """Return log start, last stable offset and high watermark, as a broker reports them or else from the files."""
    offsets, files = view.offsets, view.files
    start, high = offsets.start, offsets.high_watermark
    if start is None and files is not None:
        start = files.start if files.start is not None else min((s.base_offset for s in files.live), default=None)
    if high is None and files is not None:
        high = files.high_watermark
    return [("log start", start), ("last stable", offsets.last_stable), ("high watermark", high)]


@dataclass(frozen=True)
class _Axis:
    start: int
    end: int

    def x(self, offset: float) -> float:
        share = (offset - self.start) / (self.end - self.start)
        return round(_TRACK + min(max(share, 0.0), 1.0) * (_TRACK_END - _TRACK), 1)


def _axis(view: LogView) -> _Axis:
    offsets = [offset for _, offset in marks(view) if offset is not None] + list(view.offsets.ends.values())
    for segment in view.remote + (view.files.segments if view.files else ()):
        offsets += [segment.base_offset, segment.next_offset]
    start, end = min(offsets, default=0), max(offsets, default=0)
    return _Axis(start, max(end, start + 1))


def axis_card(view: LogView, palette: Palette = LIGHT) -> Drawing:
    """Draw segments, records, the clean and the dirty part, and every replica's log end along one axis of offsets."""
    axis = _axis(view)
    marked_offsets = marks(view)
    start = dict(marked_offsets)["log start"] or 0
    rows: list[tuple[str, int | str | None, str]] = []
    if view.files is not None:
        rows.append(("segments", len(view.files.live), _segment_bars(view.files.live, axis)))
    if view.segments:
        rows.append(("records", sum(s.count for s in view.segments), _record_bars(view.segments, axis)))
    if view.files is not None and (view.offsets.compacted or view.files.clean_until is not None):
        rows += _cleaner_rows(view.files, axis)
    if view.offsets.tiered is not None:
        tiered = view.offsets.tiered
        bars = _segment_bars(view.remote, axis) if view.remote else _bar(axis, start, tiered + 1, REMOTE)
        rows.append(("in remote tier", f"≤ {tiered}" if tiered >= 0 else "none", bars))
        if view.offsets.local_start is not None:
            local = view.offsets.local_start
            rows.append(("on disk from", local, _bar(axis, local, axis.end, LEADER)))
    below = []
    for broker in view.replicas:
        end = view.offsets.ends.get(broker)
        colour = LEADER if broker == view.leader else _FOLLOWER
        role = ", leads" if broker == view.leader else "" if broker in view.isr else ", out of ISR"
        below.append((f"broker {broker}{role}", "?" if end is None else end, _bar(axis, start, end or start, colour)))
    body = text(PAD, 20, f"Offsets {axis.start} to {axis.end}", fill=palette.text, size=13, weight="600")
    y = 30.0
    top = y
    drawn, y = _rows(rows, y, palette)
    body += drawn
    body += text(PAD, y + 13, "log end offset of each replica", fill=palette.muted, size=12)
    drawn, y = _rows(below, y + _ROW, palette)
    body += drawn
    lines = ""
    for name, offset in marked_offsets:
        if offset is None:
            continue
        colour = _MARKS[name]
        x = axis.x(offset)
        lines += line(x, top, x, y + 6, stroke=colour, width=1.5, dash="3 2")
        body += path(f"M{x:g} {y + 4:g} l4 8 h-8 z", fill=colour)
        body += text(PAD, y + 13, name, fill=colour, size=12, weight="600")
        body += text(_NUMBER, y + 13, str(offset), fill=palette.text, size=12, anchor="end", mono=True)
        y += _ROW
    return card(lines + body, y + 4, palette)


def _rows(rows: Iterable[tuple[str, int | str | None, str]], y: float, palette: Palette) -> tuple[str, float]:
    body = ""
    for label, number, bars in rows:
        body += text(PAD, y + 12, fit(label, _NUMBER - PAD - 42, 12), fill=palette.text, size=12)
        if number is not None:
            body += text(_NUMBER, y + 12, str(number), fill=palette.text, size=12, anchor="end", mono=True)
        body += rect(_TRACK, y + 3, _TRACK_END - _TRACK, 10, fill=palette.border, opacity=0.35)
        body += f'<g transform="translate(0 {y:g})">{bars}</g>'
        y += _ROW
    return body, y


def _bar(axis: _Axis, first: int, end: int, colour: str, title: str = "") -> str:
    left, right = axis.x(first), axis.x(end)
    return rect(left, 3, right - left, 10, fill=colour, title=title) if right > left else ""


def _segment_bars(segments: Sequence[Segment], axis: _Axis) -> str:
    body = ""
    for segment, after in zip(segments, [*segments[1:], None], strict=False):
        end = after.base_offset if after is not None else max(segment.next_offset, segment.base_offset)
        left, right = axis.x(segment.base_offset), axis.x(end)
        width = max(right - left - 1, 1.0)  # the active segment may be empty, but must still show
        body += rect(min(left, _TRACK_END - 1), 2, width, 12, fill=SEGMENT_COLOURS[segment.state], title=segment_title(segment))
    return body


def _record_bars(segments: Sequence[Segment], axis: _Axis) -> str:
    """Draw where there are records. Records within one pixel share a bar."""
    bars: list[list[float]] = []
    for segment in segments:
        for first, end in _stretches(segment):
            left, right = axis.x(first), axis.x(end)
            if bars and left - bars[-1][1] < 0.5:
                bars[-1][1] = max(right, bars[-1][1])
            else:
                bars.append([left, max(right, left + 0.5)])
    return path("".join(f"M{a:g} 3H{b:g}V13H{a:g}z" for a, b in bars), fill=LEADER) if bars else ""


def _stretches(segment: Segment) -> Iterator[tuple[int, int]]:
    for batch in segment.batches:
        if batch.records is None:
            if batch.count:
                yield batch.base_offset, batch.last_offset + 1
        else:
            for record in batch.records:
                yield record.offset, record.offset + 1


def _cleaner_rows(files: LogFiles, axis: _Axis) -> Iterator[tuple[str, int | str | None, str]]:
    live = files.live
    start = live[0].base_offset if live else axis.start
    active = live[-1].base_offset if live else axis.start
    clean = files.clean_until if files.clean_until is not None else start
    yield "clean up to", clean, _bar(axis, start, clean, _CLEAN, "the cleaner was here")
    yield (
        "dirty up to",
        max(active, clean),
        _bar(axis, clean, active, _DIRTY, "the cleaner has yet to come; never to the active one"),
    )


def key_card(view: LogView, palette: Palette = LIGHT) -> Drawing:
    """Draw what the colours mean, and where each leader epoch began. Without files, say what can't be seen."""
    if view.files is None:
        body = text(PAD, 20, "What can't be seen from here", fill=palette.text, size=13, weight="600")
        for i, words in enumerate(_UNSEEN):
            body += text(PAD, 40 + 16 * i, words, fill=palette.text, size=12)
        return card(body, 36 + 16 * len(_UNSEEN), palette)
    body = text(PAD, 20, "Records", fill=palette.text, size=13, weight="600")
    y = 30.0
    for i, (colour, name) in enumerate(KINDS.values()):
        x = PAD + i % 2 * 200
        body += rect(x, y + i // 2 * 16 + 2, 8, 8, fill=colour)
        body += text(x + 14, y + i // 2 * 16 + 10, name, fill=palette.text, size=12)
    y += -(-len(KINDS) // 2) * 16
    if view.files is not None:
        epochs = [f"{epoch} from offset {start}" for epoch, start in view.files.leader_epochs]
        body += text(PAD, y + 16, "Leader epochs", fill=palette.text, size=13, weight="600")
        y += 16
        for words in ["none yet"] if not epochs else epochs[-4:]:
            body += text(PAD, y + 16, words, fill=palette.text, size=12)
            y += 15
        if view.files.gaps():
            y += 4
            body += text(PAD, y + 16, "Offsets without a record", fill=palette.text, size=13, weight="600")
            shown = ", ".join(ranged(*gap) for gap in view.files.gaps())
            body += text(PAD, y + 32, fit(shown, CARD - 2 * PAD, 12), fill=GAP, size=12)
            y += 31
    return card(body, y + 12, palette)

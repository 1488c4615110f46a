"""Draw a partition's whole log: a view in, words and a picture out."""

from __future__ import annotations

from collections.abc import Sequence

from kafkalab.cluster.log_reader import LogView
from kafkalab.widgets.log_axis import axis_card, key_card, marks
from kafkalab.widgets.log_segments import segment_cards
from kafkalab.widgets.log_style import GONE, REMOTE, SEGMENT_WORDS, ranged, sized
from kafkalab.widgets.palette import LIGHT, STATE_COLOURS, THEMED, Palette
from kafkalab.widgets.picture import Picture, flow, phrases
from kafkalab.widgets.prose import counted
from kafkalab.widgets.svg import Drawing

__all__ = ["log_picture", "log_status", "log_summary", "overview_html", "segments_html"]

_GROWTH = 1.2  # a card alone in its row is at most so much larger


def log_status(view: LogView, palette: Palette) -> list[tuple[str, str]]:
    """Return the partition, broker and state that are shown, as phrases with their colours."""
    role = "the leader" if view.broker == view.leader else "a follower" if view.leader is not None else "no leader"
    parts = [(f"{view.topic}-{view.partition} on broker {view.broker}, {role}", palette.text)]
    if view.state != "up":
        parts.append((view.state, STATE_COLOURS[view.state]))
    if view.files is not None:
        live = view.files.live
        size, count = sum(s.size for s in live), sum(s.count for s in live)
        parts += [(counted(len(live), "segment"), palette.muted), (counted(count, "record"), palette.muted)]
        parts.append((sized(size), palette.muted))
        if view.remote:
            parts.append((f"{len(view.remote)} in the remote tier", REMOTE))
    elif view.fetched is not None:
        parts.append((f"{counted(view.fetched.count, 'record')} as the leader sends them", palette.muted))
    if view.unseen:
        parts.append((view.unseen, GONE))
    return parts


def log_summary(view: LogView) -> str:
    """Describe the log in words, for places that show no picture."""
    lines = [" · ".join(words for words, _ in log_status(view, LIGHT))]
    mark_texts = [f"{name} {offset}" for name, offset in marks(view) if offset is not None]
    ends = [f"broker {broker} {end}" for broker, end in sorted(view.offsets.ends.items())]
    lines += [", ".join(mark_texts)] if mark_texts else []
    lines += [f"log end offset: {', '.join(ends)}"] if ends else []
    if view.offsets.tiered is not None and view.offsets.tiered >= 0:
        lines.append(f"in the remote tier up to {view.offsets.tiered}, on disk from {view.offsets.local_start}")
    if view.files is not None:
        gaps = view.files.gaps()
        if gaps:
            shown = ", ".join(ranged(*gap) for gap in gaps[:20])
            lines.append(f"offsets without a record: {shown}{' …' if len(gaps) > 20 else ''}")
        for segment in (view.only_remote + view.files.segments)[-20:]:
            where = ranged(segment.base_offset, segment.next_offset - 1) if segment.batches else str(segment.base_offset)
            lines.append(f"segment {where}: {SEGMENT_WORDS[segment.state]}, {counted(segment.count, 'record')}")
    return "\n".join(lines)


def overview_html(view: LogView, palette: Palette = LIGHT) -> str:
    """Return the status, the axis of offsets, and the key of the colours as HTML."""
    return phrases(log_status(view, THEMED)) + _cards(
        [axis_card(view, palette), key_card(view, palette)], log_summary(view), palette
    )


def segments_html(view: LogView, until: int | None = None, palette: Palette = LIGHT) -> str:
    """Return the segments as HTML, side by side as far as they fit."""
    return _cards(segment_cards(view, until, palette), "segments of the log", palette)


def _cards(drawings: Sequence[Drawing], words: str, palette: Palette) -> str:
    return flow(drawings, words, palette, cards=False, growth=_GROWTH)


def log_picture(view: LogView, until: int | None = None) -> Picture:
    """Return a still picture of the whole log."""
    return Picture(f"<div>{overview_html(view)}{segments_html(view, until)}</div>", log_summary(view))

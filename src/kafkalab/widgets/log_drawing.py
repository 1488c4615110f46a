"""Draw a partition's whole log: a view in, words and a picture out."""

from __future__ import annotations

from kafkalab.cluster.log_reader import LogView
from kafkalab.widgets.log_axis import axis_card, key_card, marks
from kafkalab.widgets.log_segments import segment_cards
from kafkalab.widgets.log_style import CARD, GONE, REMOTE, SEGMENT_WORDS, ranged, sized
from kafkalab.widgets.palette import LIGHT, STATE_COLOURS, Palette
from kafkalab.widgets.prose import counted
from kafkalab.widgets.svg import WIDTH, Drawing, Picture, document, phrases, stack

__all__ = ["log_picture", "log_status", "log_summary"]


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


def log_picture(view: LogView, until: int | None = None) -> Picture:
    """Return a still picture of the whole log, two cards side by side."""
    columns, gap = 2, 12
    side = (WIDTH - gap) / columns
    scale = side / CARD
    cards = [axis_card(view), key_card(view), *segment_cards(view, until)]
    rows = [Drawing(phrases(0, 14, log_status(view, LIGHT), size=13), 20)]
    for left, right in zip(cards[::2], [*cards[1::2], None], strict=False):
        body = f'<g transform="scale({scale:.4f})">{left.body}</g>'
        if right is not None:
            body += f'<g transform="translate({side + gap:g} 0) scale({scale:.4f})">{right.body}</g>'
        rows.append(Drawing(body, max(left.height, right.height if right else 0) * scale))
    words = log_summary(view)
    return Picture(document(stack(*rows, gap=gap), words), words)

"""What all drawings of a log share: sizes, colours, words."""

from __future__ import annotations

from kafkalab.cluster.log_files import Segment, SegmentState
from kafkalab.widgets.log_records import Kind
from kafkalab.widgets.palette import LAG, LEADER, STATE_COLOURS, Palette
from kafkalab.widgets.prose import counted
from kafkalab.widgets.svg import Drawing, rect

__all__ = [
    "CARD",
    "GAP",
    "GONE",
    "KINDS",
    "PAD",
    "REMOTE",
    "SEGMENT_COLOURS",
    "SEGMENT_WORDS",
    "card",
    "ranged",
    "segment_title",
    "sized",
]

CARD = 416  # pixels: two cards fit into a column of 840
PAD = 8

KINDS: dict[Kind, tuple[str, str]] = {
    "record": (LEADER, "record"),
    "tombstone": ("#6e7781", "tombstone"),
    "committed": ("#8250df", "committed record"),
    "aborted": ("#bf3989", "aborted record"),
    "open": (LAG, "record in an open transaction"),
    "commit": (STATE_COLOURS["up"], "commit marker"),
    "abort": (STATE_COLOURS["dead"], "abort marker"),
}
"""Colour and name of each kind of record."""

GAP = LAG
GONE = STATE_COLOURS["dead"]
REMOTE = STATE_COLOURS["isolated"]

SEGMENT_COLOURS: dict[SegmentState, str] = {
    "active": STATE_COLOURS["up"],
    "closed": LEADER,
    "cleaned": STATE_COLOURS["isolated"],
    "swap": STATE_COLOURS["isolated"],
    "deleted": GONE,
    "remote": REMOTE,
    "fetched": STATE_COLOURS["stopped"],
}
SEGMENT_WORDS: dict[SegmentState, str] = {
    "active": "active",
    "closed": "closed",
    "cleaned": "being cleaned",
    "swap": "cleaned, taking over",
    "deleted": "deleted",
    "remote": "in the remote tier only",
    "fetched": "sent by the leader",
}


def card(body: str, height: float, palette: Palette, *, leaving: bool = False) -> Drawing:
    """Draw a card of the usual width, with a red frame if its content is being deleted."""
    frame = rect(1, 1, CARD - 2, height - 2, fill=palette.panel, stroke=GONE if leaving else palette.border, radius=6)
    return Drawing(frame + body, height, CARD)


def segment_title(segment: Segment) -> str:
    """Describe a segment in one line."""
    return f"segment {segment.base_offset}: {SEGMENT_WORDS[segment.state]}, {counted(segment.count, 'record')}"


def ranged(first: int, last: int) -> str:
    """Return a range of offsets in words."""
    return str(first) if first >= last else f"{first}–{last}"


def sized(size: int) -> str:
    """Return a size with a suitable unit."""
    return f"{size:,} B" if size < 10_000 else f"{size / 1024:,.0f} KiB" if size < 10 << 20 else f"{size / (1 << 20):,.0f} MiB"

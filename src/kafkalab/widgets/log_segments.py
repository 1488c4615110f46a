"""Draw a log's segments, with their batches and records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kafkalab.cluster.log_files import Segment
from kafkalab.cluster.log_reader import LogView
from kafkalab.cluster.record_batches import Record, RecordBatch
from kafkalab.widgets.log_records import Kind, Lens, batch_words, kind_of, lens, outcomes, record_words, time_of_day
from kafkalab.widgets.log_style import (
    CARD,
    GAP,
    KINDS,
    PAD,
    REMOTE,
    SEGMENT_COLOURS,
    SEGMENT_WORDS,
    card,
    ranged,
    sized,
)
from kafkalab.widgets.palette import LIGHT, Palette
from kafkalab.widgets.prose import counted
from kafkalab.widgets.svg import Drawing, fit, line, path, rect, stack, text, text_width

__all__ = ["segment_cards"]

_STEPS = ((1_000, 7), (1 << 62, 4))  # up to this many squares in a card, one takes this many pixels with its gap
_CARDS = 40  # segments with their own card
_INDEX_ENTRIES = 2  # entries of an index in its line
_TITLED_ENTRIES = 40  # entries of an index in its line's tooltip
_TITLED = 300  # squares of one card with a tooltip


@dataclass(frozen=True)
class _Scene:
    """What the cards of a drawing share: the records shown in full, transaction outcomes, the tier's last offset."""

    lens: Lens
    ended: Mapping[int, Kind]
    tiered: int | None
    palette: Palette


def segment_cards(view: LogView, until: int | None = None, palette: Palette = LIGHT) -> list[Drawing]:
    """Draw a card for each segment, with its batches and records. If there are many, draw those around the lens.

    Parameters
    ----------
    view
        The log to draw. Without files there is one card, for what the leader sent.
    until
        The last offset whose record is shown in full. By default the newest.
    palette
        Colours.
    """
    segments = view.only_remote + (view.files.segments if view.files is not None else view.segments)
    seen = lens(segments, until)
    last = max((i for i, s in enumerate(segments) if s.base_offset <= seen.last), default=len(segments) - 1)
    if until is None:
        last = len(segments) - 1
    first = max(0, last + 1 - _CARDS)
    scene = _Scene(seen, outcomes(view), view.offsets.tiered, palette)
    cards = [_segment_card(segment, end, scene) for segment, end in _with_ends(segments)[first : last + 1]]
    before, after = segments[:first], segments[last + 1 :]
    return [*_remote(view, palette), *_folded(before, "older", palette), *cards, *_folded(after, "newer", palette)]


def _remote(view: LogView, palette: Palette) -> list[Drawing]:
    """Draw what is only in the remote tier, if its files there can't be read."""
    start, local = view.offsets.start, view.offsets.local_start
    if view.remote or start is None or local is None or local <= start:
        return []
    body = text(PAD, 20, f"Offsets {ranged(start, local - 1)}", fill=palette.text, size=13, weight="600")
    return [card(body + text(PAD, 37, "only in the remote tier, no longer on this disk", fill=REMOTE, size=12), 46, palette)]


def _folded(segments: Sequence[Segment], which: str, palette: Palette) -> list[Drawing]:
    if not segments:
        return []
    words = f"{counted(len(segments), f'{which} segment')}, folded"
    more = (
        f"offsets {ranged(segments[0].base_offset, segments[-1].next_offset - 1)} · "
        f"{counted(sum(s.count for s in segments), 'record')} · {sized(sum(s.size for s in segments))}"
    )
    body = text(PAD, 20, words, fill=palette.text, size=13, weight="600")
    return [card(body + text(PAD, 37, more, fill=palette.muted, size=12), 46, palette)]


def _with_ends(segments: Sequence[Segment]) -> list[tuple[Segment, int]]:
    """Return each segment with the offset where the log's next one begins."""
    segment_ends, after = [], -1
    for segment in reversed(segments):
        segment_ends.append((segment, after if segment.live and after >= 0 else segment.next_offset))
        if segment.live:
            after = segment.base_offset
    return segment_ends[::-1]


def _segment_card(segment: Segment, end: int, scene: _Scene) -> Drawing:
    colour = SEGMENT_COLOURS[segment.state]
    words = SEGMENT_WORDS[segment.state]
    name = f"From offset {segment.base_offset}" if segment.state == "fetched" else f"{segment.base_offset:020d}"
    head = text(PAD, 20, name, fill=scene.palette.text, size=13, mono=True, weight="600")
    if segment.live and segment.batches and scene.tiered is not None and segment.next_offset <= scene.tiered + 1:
        words += ", in remote tier"
    head += text(CARD - PAD, 20, words, fill=colour, size=12, anchor="end", weight="600")
    batches = counted(len(segment.batches), "batch", "batches")
    lines = [(f"{counted(segment.count, 'record')} in {batches} · {sized(segment.size)}", "")]
    if segment.torn:
        lines.append((f"the last {segment.torn:,} B aren't a whole batch yet", ""))
    if segment.offset_index:
        lines.append(_index_line("offset index", [f"{o} at byte {p:,}" for o, p in segment.offset_index]))
    if segment.time_index:
        lines.append(_index_line("time index", [f"{time_of_day(at)} → {offset}" for at, offset in segment.time_index]))
    y = 36.0
    for words, title in lines:
        head += text(PAD, y, fit(words, CARD - 2 * PAD, 12), fill=scene.palette.muted, size=12, title=title)
        y += 15
    pieces = [Drawing(head, y - 8), *_contents(segment, end, scene)]
    whole = stack(*pieces, gap=4)
    return card(whole.body, whole.height + 6, scene.palette, leaving=segment.state == "deleted")


def _index_line(name: str, entries: Sequence[str]) -> tuple[str, str]:
    """Return what a card says of an index, and a tooltip with the last entries if the card leaves some out."""
    if len(entries) <= _INDEX_ENTRIES:
        return f"{name}: {', '.join(entries)}", ""
    listed = entries[-_TITLED_ENTRIES:]
    which = f"{name}, the last {len(listed)} of {len(entries):,} entries" if len(listed) < len(entries) else name
    return f"{name}: {len(entries):,} entries, the last {entries[-1]}", "\n".join([f"{which}:", *listed])


def _contents(segment: Segment, end: int, scene: _Scene) -> Iterator[Drawing]:
    """Draw batch by batch: records in the lens as lines, other runs as squares, and packed batches as a count."""
    squares: list[tuple[RecordBatch, Record]] = []
    folded: list[RecordBatch] = []
    expected = segment.base_offset

    def flush() -> Iterator[Drawing]:
        if folded:
            yield _folded_batches(folded, scene.palette)
            folded.clear()
        if squares:
            yield _squares(squares, scene)
            squares.clear()

    for batch in segment.batches:
        if batch.records is None and not batch.damage:
            if squares:
                yield from flush()
            folded.append(batch)
            expected = batch.last_offset + 1
            continue
        if folded:
            yield from flush()
        written = [record for record in batch.records or () if scene.lens.holds(record.offset)]
        if not written and (batch.records or not scene.lens.holds(batch.base_offset)):
            squares += [(batch, record) for record in batch.records or ()]
            expected = batch.last_offset + 1
            continue
        squares += [(batch, record) for record in batch.records or () if record.offset < scene.lens.first]
        yield from flush()
        if batch.base_offset > expected:
            yield _gap(expected, batch.base_offset - 1)
        yield _batch_head(batch, scene)
        at = written[0].offset if written and len(written) < batch.count else batch.base_offset
        for record in written:
            if record.offset > at:
                yield _gap(at, record.offset - 1)
            yield _record(batch, record, scene)
            at = record.offset + 1
        if written and at <= batch.last_offset and batch.records and written[-1] == batch.records[-1]:
            yield _gap(at, batch.last_offset)
        squares += [(batch, record) for record in batch.records or () if record.offset > scene.lens.last]
        expected = batch.last_offset + 1
    yield from flush()
    if end > expected:
        yield _gap(expected, end - 1)


def _batch_head(batch: RecordBatch, scene: _Scene) -> Drawing:
    lines = batch_words(batch, scene.ended)
    body = line(PAD, 1, CARD - PAD, 1, stroke=scene.palette.border)
    for i, words in enumerate(lines):
        body += text(PAD, 14 + 14 * i, fit(words, CARD - 2 * PAD, 12), fill=scene.palette.muted, size=12)
    return Drawing(body, 14 * len(lines) + 3, CARD)


def _record(batch: RecordBatch, record: Record, scene: _Scene) -> Drawing:
    kind = kind_of(batch, record, scene.ended)
    colour, _ = KINDS[kind]
    plain, muted = scene.palette.text, scene.palette.muted
    ink = plain if kind in ("record", "committed") else muted if kind == "tombstone" else colour
    body = rect(PAD, 3, 8, 8, fill=colour, title=_described(batch, record, scene))
    body += text(PAD + 14, 11, str(record.offset), fill=scene.palette.text, size=12, mono=True, weight="600")
    left = PAD + 14 + max(46.0, text_width(str(record.offset), 12.5) + 10)
    at = time_of_day(record.timestamp)
    right = CARD - PAD
    words = record_words(record)
    body += text(left, 11, fit(words, right - text_width(at, 12.5) - left - 4, 12.5), fill=ink, size=12, mono=True)
    return Drawing(body + text(right, 11, at, fill=scene.palette.muted, size=12, anchor="end", mono=True), 13, CARD)


def _gap(first: int, last: int) -> Drawing:
    words = f"{ranged(first, last)} gone"
    left = PAD + 14
    end = left + text_width(words, 12) + 8
    return Drawing(text(left, 11, words, fill=GAP, size=12) + line(end, 7, CARD - PAD, 7, stroke=GAP, dash="3 3"), 13, CARD)


def _folded_batches(batches: Sequence[RecordBatch], palette: Palette) -> Drawing:
    count = sum(batch.count for batch in batches)
    words = f"{counted(count, 'older record')} in {counted(len(batches), 'batch', 'batches')}, folded"
    return Drawing(text(PAD, 12, words, fill=palette.muted, size=12), 15, CARD)


def _squares(records: Sequence[tuple[RecordBatch, Record]], scene: _Scene) -> Drawing:
    """Draw a square for each record, light and dark in turn from batch to batch."""
    step = next(step for most, step in _STEPS if len(records) <= most)
    side, columns = step - 1, (CARD - 2 * PAD) // step
    height = -(-len(records) // columns) * step + 2
    if len(records) <= _TITLED:
        body = "".join(
            rect(PAD + i % columns * step, 2 + i // columns * step, side, side,
                 fill=KINDS[kind_of(b, r, scene.ended)][0], title=_described(b, r, scene))
            for i, (b, r) in enumerate(records)
        )  # fmt: skip
        return Drawing(body, height, CARD)
    paths: dict[tuple[Kind, bool], list[str]] = {}
    dark, before = False, -1
    for i, (batch, record) in enumerate(records):
        if batch.base_offset != before:
            dark, before = not dark, batch.base_offset
        corner = f"M{PAD + i % columns * step} {2 + i // columns * step}h{side}v{side}h-{side}z"
        paths.setdefault((kind_of(batch, record, scene.ended), dark), []).append(corner)
    body = "".join(path("".join(d), fill=KINDS[kind][0], opacity=1 if dark else 0.6) for (kind, dark), d in paths.items())
    return Drawing(body, height, CARD)


def _described(batch: RecordBatch, record: Record, scene: _Scene) -> str:
    name = KINDS[kind_of(batch, record, scene.ended)][1]
    words = [f"offset {record.offset}: {name}", record_words(record)[:200], time_of_day(record.timestamp)]
    if record.sequence >= 0:
        words.append(f"sequence {record.sequence}")
    return ", ".join(words)

"""Lay drawings out on a page: side by side as far as there's room, and wide ones in a box that scrolls.

Nothing here is ever scaled down, so text keeps its size in a narrow column.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from kafkalab.widgets.palette import LIGHT, THEMED, Palette
from kafkalab.widgets.svg import WIDTH, Drawing, Strip, document

__all__ = ["COLUMN", "GAP", "Picture", "flow", "phrases", "spoken"]

COLUMN = 520  # pixels: the narrowest column of text
GAP = 8  # pixels between two drawings
_MARGIN = 10  # within a card


@dataclass(frozen=True)
class Picture:
    """A still picture that a notebook shows and stores.

    Attributes
    ----------
    html
        It as HTML, without any script. Its drawings are images: an HTML sanitizer removes SVG from a notebook that nobody
        has trusted yet, but lets images pass.
    summary
        The same in words, for places that show no picture.
    """

    html: str
    summary: str

    def bundle(self) -> dict[str, str]:
        """Return the picture by media type."""
        return {"text/html": self.html, "text/plain": self.summary}

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        return self.bundle()


def spoken(words: str) -> str:
    """Return words as a screen reader is to say them: each line of theirs as a sentence."""
    lines = (" ".join(line.split()) for line in words.splitlines())
    return " ".join(line if line.endswith((".", "!", "?", "…", ":")) else f"{line}." for line in lines if line)


def phrases(parts: Sequence[tuple[str, str]]) -> str:
    """Return phrases in one bold line that wraps, separated by dots. Each is a pair of its words and its colour."""
    spans = " · ".join(f'<span style="color:{colour}">{escape(words)}</span>' for words, colour in parts)
    return f'<div style="font:600 13px/1.5 system-ui,sans-serif;color:{THEMED.muted}">{spans}</div>'


def flow(
    drawings: Iterable[Drawing | Strip], words: str, palette: Palette = LIGHT, *, cards: bool = True, growth: float = 1.0
) -> str:
    """Return drawings side by side as far as they fit, and those that don't in further rows.

    Parameters
    ----------
    drawings
        What to show. One that is wider than a narrow column scrolls by itself.
    words
        What they show, for screen readers, which say each line as a sentence.
    palette
        `LIGHT` makes images with a light background, to store. Otherwise SVG elements that follow the page's theme.
    cards
        Whether each drawing gets a margin and a border. False if it brings its own.
    growth
        How much larger a drawing becomes at most, to use a column's width.
    """
    pieces = []
    for number, drawing in enumerate(drawings):
        said = spoken(words) if number == 0 else ""
        if isinstance(drawing, Strip):
            pieces.append(_strip(drawing, said, palette))
        elif cards:
            shown = _shown(drawing, said, palette, (_MARGIN,) * 4, palette.background)
            pieces.append(_box(shown, drawing.width > WIDTH, f"border:1px solid {palette.border};border-radius:6px"))
        elif growth > 1:
            widths = f"flex:1 1 {drawing.width:g}px;min-width:{drawing.width:g}px;max-width:{drawing.width * growth:g}px"
            pieces.append(f'<div style="{widths}">{_shown(drawing, said, palette, grows=True)}</div>')
        else:
            pieces.append(_box(_shown(drawing, said, palette), drawing.width > COLUMN))
    style = f"display:flex;flex-wrap:wrap;gap:{GAP}px;align-items:flex-start;padding:4px 0;overflow-x:auto"
    return f'<div style="{style}">{"".join(pieces)}</div>'


def _strip(strip: Strip, words: str, palette: Palette) -> str:
    left = _shown(strip.names, words, palette, (_MARGIN, 0, _MARGIN, _MARGIN), palette.background, stays=True)
    right = _shown(strip.drawing, "", palette, (_MARGIN, _MARGIN, _MARGIN, 0), palette.background)
    wide = strip.names.width + strip.drawing.width > WIDTH
    return _box(left + right, wide, f"border:1px solid {palette.border};border-radius:6px")


def _box(content: str, wide: bool, frame: str = "") -> str:
    """Return a box that is never wider than its column. A keyboard scrolls only what can have the focus."""
    keys = ' tabindex="0" role="group" aria-label="scrolls sideways"' if wide else ""
    return f'<div style="display:flex;overflow-x:auto;box-sizing:border-box;max-width:100%;{frame}"{keys}>{content}</div>'


def _shown(
    drawing: Drawing,
    words: str,
    palette: Palette,
    around: Sequence[float] = (0, 0, 0, 0),
    background: str = "none",
    *,
    stays: bool = False,
    grows: bool = False,
) -> str:
    """Return a drawing as an image, or as an SVG element that follows the page's theme."""
    size = "width:100%;height:auto;" if grows else "flex:none;"
    style = f"display:block;margin:0;max-width:none;{size}{'position:sticky;left:0;z-index:1' if stays else ''}"
    if palette is THEMED:
        return document(drawing, words, around=around, background=background, style=style)
    # Readable, not in base64, so that a search for what a stored notebook must not hold finds it. All quotation marks in texts
    # are escaped, so these are those around attributes.
    svg = document(drawing, "", around=around, background=background).replace('"', "'")
    for mark, code in (("%", "%25"), ("#", "%23"), ("<", "%3C"), (">", "%3E")):
        svg = svg.replace(mark, code)
    source = f"data:image/svg+xml;charset=utf-8,{escape(svg, quote=False)}"
    return f'<img alt="{escape(words)}" style="{style}" src="{source}">'

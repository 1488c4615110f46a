"""The few SVG elements that kafkalab draws with. This module escapes all text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from kafkalab.widgets.palette import LIGHT, Palette

__all__ = ["WIDTH", "Drawing", "Picture", "document", "fit", "line", "path", "phrases", "rect", "stack", "text", "text_width"]

WIDTH = 900  # a JupyterLab cell's usual width in pixels
_STORED_WIDTH = 840  # JupyterLab cuts off wider pictures; this is a cell's width in a window of 1280 pixels

_FONT = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif"
_MONO = "ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace"


@dataclass(frozen=True)
class Drawing:
    """Elements with their origin at the top left, and the space they take."""

    body: str
    height: float
    width: float = WIDTH


@dataclass(frozen=True)
class Picture:
    """A still picture that a notebook shows and stores.

    Attributes
    ----------
    svg
        A complete SVG document.
    summary
        The same in words, for places that show no picture.
    """

    svg: str
    summary: str

    def bundle(self) -> dict[str, str]:
        """Return the picture by media type."""
        return {"image/svg+xml": self.svg, "text/plain": self.summary}

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        return self.bundle()


def _attributes(**values: object) -> str:
    return "".join(f' {name.replace("_", "-")}="{escape(str(value))}"' for name, value in values.items() if value is not None)


def rect(
    x: float,
    y: float,
    width: float,
    height: float,
    *,
    fill: str,
    opacity: float | None = None,
    stroke: str | None = None,
    stroke_width: float | None = None,
    radius: float | None = None,
    title: str = "",
) -> str:
    """Draw a rectangle. `title` is its tooltip."""
    attributes = _attributes(
        x=f"{x:g}", y=f"{y:g}", width=f"{width:g}", height=f"{height:g}", rx=radius,
        fill=fill, fill_opacity=opacity, stroke=stroke, stroke_width=stroke_width,
    )  # fmt: skip
    return f"<rect{attributes}><title>{escape(title)}</title></rect>" if title else f"<rect{attributes}/>"


def line(
    x1: float,
    y1: float,
    x2: float,
    y2: float,
    *,
    stroke: str,
    width: float = 1,
    dash: str | None = None,
    opacity: float | None = None,
) -> str:
    """Draw a straight line."""
    ends = _attributes(x1=f"{x1:g}", y1=f"{y1:g}", x2=f"{x2:g}", y2=f"{y2:g}")
    return f"<line{ends}{_attributes(stroke=stroke, stroke_width=width, stroke_dasharray=dash, stroke_opacity=opacity)}/>"


def path(d: str, *, fill: str, opacity: float | None = None, stroke: str | None = None) -> str:
    """Draw a path."""
    return f"<path{_attributes(d=d, fill=fill, fill_opacity=opacity, stroke=stroke)}/>"


def text(
    x: float,
    y: float,
    content: str,
    *,
    fill: str,
    size: float = 12,
    anchor: str | None = None,
    weight: str | None = None,
    mono: bool = False,
    halo: str | None = None,
    title: str = "",
) -> str:
    """Draw one line of text with its baseline at `y`.

    A `halo` in the background's colour sets it off from lines. `title` is its tooltip.
    """
    attributes = _attributes(
        x=f"{x:g}", y=f"{y:g}", fill=fill, font_size=size, text_anchor=anchor, font_weight=weight,
        font_family=_MONO if mono else None, stroke=halo, stroke_width=halo and 4, paint_order=halo and "stroke",
    )  # fmt: skip
    tooltip = f"<title>{escape(title)}</title>" if title else ""
    return f"<text{attributes}>{escape(content)}{tooltip}</text>"


def phrases(x: float, y: float, parts: Sequence[tuple[str, str]], *, size: float = 12) -> str:
    """Draw phrases in one bold line, separated by dots. Each is a pair of its words and its colour."""
    spans = " · ".join(f"<tspan{_attributes(fill=colour)}>{escape(words)}</tspan>" for words, colour in parts)
    return f"<text{_attributes(x=f'{x:g}', y=f'{y:g}', font_size=size, font_weight='600', fill='#8b949e')}>{spans}</text>"


def text_width(content: str, size: float) -> float:
    """Estimate the width of a line of text, because SVG made in Python can't ask the font."""
    return 0.58 * size * len(content)


def fit(content: str, width: float, size: float, *, ending: str = "") -> str:
    """Return `content`, cut with an ellipsis if it would be wider than `width`. Its `ending` stays."""
    room = max(1, int(width / (0.58 * size)))
    if len(content) <= room:
        return content
    return content[: max(0, room - 1 - len(ending))] + "…" + ending


def stack(*drawings: Drawing, gap: float = 6) -> Drawing:
    """Stack drawings vertically. Empty ones take no space."""
    body, y = [], 0.0
    for drawing in drawings:
        if drawing.height:
            body.append(f'<g transform="translate(0 {y:g})">{drawing.body}</g>')
            y += drawing.height + gap
    return Drawing("".join(body), max(0.0, y - gap))


def document(drawing: Drawing, title: str, *, palette: Palette = LIGHT, live: bool = False) -> str:
    """Return a complete SVG document.

    Parameters
    ----------
    drawing
        The drawing.
    title
        A description of it, for screen readers.
    palette
        Its background.
    live
        True inside a widget: it takes the place's width and background. False for a stored picture: it has a fixed size
        that fits into a cell on a small screen, and a background card.
    """
    if live:
        size, margin, card = 'width="100%" style="display:block"', 0, ""
    else:
        margin = 10
        height = round((drawing.height + 2 * margin) * _STORED_WIDTH / (drawing.width + 2 * margin))
        size = f'width="{_STORED_WIDTH}" height="{height}"'
        card = rect(
            -margin,
            -margin,
            drawing.width + 2 * margin,
            drawing.height + 2 * margin,
            fill=palette.background,
            stroke=palette.border,
            radius=6,
        )
    box = f"{-margin} {-margin} {drawing.width + 2 * margin:g} {drawing.height + 2 * margin:g}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box}" {size} role="img" font-family="{escape(_FONT)}">'
        f"<title>{escape(title)}</title>{card}{drawing.body}</svg>"
    )

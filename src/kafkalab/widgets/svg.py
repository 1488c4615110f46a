"""The few SVG elements that kafkalab draws with. This module escapes all text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

__all__ = ["WIDTH", "Drawing", "Strip", "document", "fit", "line", "path", "rect", "stack", "text", "text_width"]

WIDTH = 498  # with its card, such a drawing fits into a column of 520 pixels

_FONT = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif"
_MONO = "ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace"


@dataclass(frozen=True)
class Drawing:
    """Elements with their origin at the top left, and the space they take, in pixels of the page: no drawing is scaled down."""

    body: str
    height: float
    width: float = WIDTH


@dataclass(frozen=True)
class Strip:
    """A drawing as wide as its content needs, and the names at its left, which stay in sight when it scrolls.

    Attributes
    ----------
    names
        What stays.
    drawing
        What scrolls, of the same height. Its origin is at its own left edge.
    """

    names: Drawing
    drawing: Drawing


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
    body, y, width = [], 0.0, 0.0
    for drawing in drawings:
        if drawing.height:
            body.append(f'<g transform="translate(0 {y:g})">{drawing.body}</g>')
            y += drawing.height + gap
            width = max(width, drawing.width)
    return Drawing("".join(body), max(0.0, y - gap), width)


def document(
    drawing: Drawing,
    title: str,
    *,
    around: Sequence[float] = (0, 0, 0, 0),
    background: str = "none",
    style: str = "display:block",
) -> str:
    """Return a complete SVG document of the drawing's size.

    Parameters
    ----------
    drawing
        The drawing.
    title
        A description of it, for screen readers; empty if it's described elsewhere.
    around
        Space above, right of, below and left of it, as in CSS.
    background
        A colour.
    style
        The element's style on the page.
    """
    above, right, below, left = around
    width, height = drawing.width + left + right, drawing.height + above + below
    card = rect(-left, -above, width, height, fill=background) if background != "none" else ""
    described = f'role="img"><title>{escape(title)}</title>' if title else 'aria-hidden="true">'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{-left:g} {-above:g} {width:g} {height:g}" width="{width:g}" '
        f'height="{height:g}" style="{style}" font-family="{escape(_FONT)}" {described}{card}'
        f"{drawing.body}</svg>"
    )

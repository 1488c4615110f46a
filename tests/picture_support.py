"""What pictures show: the drawings in a piece of HTML, whether images or elements, and all texts."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from html.parser import HTMLParser
from urllib.parse import unquote

__all__ = ["SVG", "svg_roots", "texts"]

SVG = "{http://www.w3.org/2000/svg}"
_IMAGE = "data:image/svg+xml;charset=utf-8,"


class _Parser(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.roots: list[ET.Element] = []
        self.texts: list[str] = []
        self._in_svg = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._in_svg += tag == "svg"
        source = dict(attrs).get("src") or ""
        if tag == "img" and source.startswith(_IMAGE):
            self._add(unquote(source.removeprefix(_IMAGE)))

    def handle_endtag(self, tag: str) -> None:
        self._in_svg -= tag == "svg"

    def handle_data(self, data: str) -> None:
        if not self._in_svg:
            self.texts.append(data)

    def _add(self, svg: str) -> None:
        root = ET.fromstring(svg)
        self.roots.append(root)
        self.texts += [element.text or "" for element in root.iter(f"{SVG}text")]


def _parsed(html: str) -> _Parser:
    parser = _Parser()
    parser.feed(html)
    for svg in _elements(html):
        parser._add(svg)
    return parser


def _elements(html: str) -> Iterator[str]:
    """Return the SVG elements of the page itself. One may contain another."""
    depth, start = 0, 0
    for tag in re.finditer(r"<svg\b|</svg>", html):
        if tag[0] == "</svg>":
            depth -= 1
            if not depth:
                yield html[start : tag.end()]
        else:
            start = start if depth else tag.start()
            depth += 1


def svg_roots(html: str) -> list[ET.Element]:
    """Return the drawings in a piece of HTML."""
    return _parsed(html).roots


def texts(html: str) -> list[str]:
    """Return all texts that a piece of HTML shows, those of its drawings included."""
    return _parsed(html).texts

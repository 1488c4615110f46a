"""Every picture that a notebook stores has a sentence as its text, for those who don't see it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from kafkalab.widgets.picture import spoken

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted([*ROOT.glob("notebooks/*.ipynb"), *ROOT.glob("solutions/*/*.ipynb")])
LARGEST = 300 << 10  # bytes of a picture
FILE_NAME = re.compile(r"\w\.(png|svg|jpe?g|gif)\b")
LIVE = re.compile(r"application/vnd\.jupyter\.widget-(view|state)\+json")


def pictures(notebook: dict[str, Any]) -> Iterator[tuple[str, int]]:
    """Yield the text of each stored picture, and its bytes."""
    for cell in notebook["cells"]:
        for output in cell.get("outputs", ()):
            data = {kind: "".join(form) for kind, form in output.get("data", {}).items() if not kind.endswith("json")}
            if "<img" in (html := data.get("text/html", "")):
                yield spoken(unescape(" ".join(re.findall(r'<img alt="([^"]*)"', html)))), len(html)
            elif images := [form for kind, form in data.items() if kind.startswith("image/")]:
                yield cell["metadata"].get("mystnb", {}).get("image", {}).get("alt", ""), len(images[0])


def fault(words: str) -> str:
    """Return what a picture's text lacks."""
    if len(words.split()) < 4:
        return "it has fewer than four words"
    if not words.endswith("."):
        return "it ends without a full stop"
    return "it names a file" if FILE_NAME.search(words) else ""


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_stored_picture_has_a_sentence_and_is_small(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert not [(words, what) for words, _ in pictures(json.loads(text)) if (what := fault(words))]
    assert not [size for _, size in pictures(json.loads(text)) if size > LARGEST]
    assert not LIVE.search(text), "only a kernel shows widgets"


def test_the_notebooks_have_pictures_of_both_kinds() -> None:
    found = [words for path in NOTEBOOKS for words, _ in pictures(json.loads(path.read_text(encoding="utf-8")))]
    assert len(found) > 70
    assert any(words.startswith("Brokers: ") for words in found) and any("bar charts" in words for words in found)


@pytest.mark.parametrize(
    ("words", "what"),
    [
        ("Two brokers up.", "fewer than four words"),
        ("All of the brokers are up", "without a full stop"),
        ("All of the brokers of map.png are up.", "names a file"),
        ("All of the brokers are up.", ""),
    ],
)
def test_a_text_that_says_too_little(words: str, what: str) -> None:
    assert what in fault(words) and bool(what) == bool(fault(words))


def test_each_line_is_said_as_a_sentence() -> None:
    assert spoken("Brokers: 0 up\nprices: led by 0\n\n  No anomaly.\n") == "Brokers: 0 up. prices: led by 0. No anomaly."
    assert spoken("") == ""

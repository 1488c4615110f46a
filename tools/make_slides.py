"""``make slides``: a deck per chapter that needs neither a server nor a network, and its PDF.

Writes build/slides/02.html for each chapter, in one file each: reveal.js, the stored pictures and the notes are in it. A PDF
of the same slides stands beside it, if there's a Chromium: the one that KAFKALAB_CHROMIUM names, or ``chromium`` on the PATH.
"""

from __future__ import annotations

import base64
import os
import re
import shutil
import sys
from collections.abc import Iterator
from html import escape
from importlib.metadata import version
from pathlib import Path
from string import Template

from markdown_it import MarkdownIt
from playwright.sync_api import Browser, sync_playwright

from slide_deck import Deck, Line, Question, Slide, Still, read_deck

ROOT = Path(__file__).parent.parent
PARTS = ROOT / "docs/slides"
REVEAL = PARTS / "reveal-6.0.2"
WIDTH, HEIGHT = 1280, 720  # pixels of a slide
PATIENCE = 180_000  # milliseconds until a busy machine has opened a deck

_ROOM = 500  # pixels for stills and the lines beside them
_LINE = 56  # pixels of a line of text
_MARKDOWN = MarkdownIt()
_VOTE = "<strong>Vote.</strong> Talk. Vote again. Then <strong>run the cell</strong> in the notebook."
_WRITE = "<strong>Write down a number</strong>. Then <strong>run the cell</strong> in the notebook."


def main() -> None:
    """Write all decks, and say where they are."""
    folder = ROOT / "build/slides"
    decks = make_slides(folder)
    chromium = os.environ.get("KAFKALAB_CHROMIUM") or shutil.which("chromium")
    if not chromium:
        print(f"{folder} has {len(decks)} decks. For their PDFs, name a Chromium in KAFKALAB_CHROMIUM, and run this again.")
        return
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        for deck in decks:
            print_deck(deck, browser)
        browser.close()
    print(f"{folder} has {len(decks)} decks, each as HTML and PDF.")


def make_slides(folder: Path) -> list[Path]:
    """Write a deck for each chapter into a folder, and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for notebook in sorted((ROOT / "notebooks").glob("*.ipynb")):
        deck = read_deck(notebook, page_of(notebook))
        path = folder / f"{deck.number}.html"
        path.write_text(to_html(deck), encoding="utf-8")
        written.append(path)
    return written


def print_deck(deck: Path, browser: Browser) -> Path:
    """Print a deck to a PDF beside it, a slide a page, and return its path."""
    page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
    page.goto(f"{deck.as_uri()}?view=print", timeout=PATIENCE)
    page.wait_for_function("window.Reveal?.isReady() && document.querySelector('.pdf-page')", timeout=PATIENCE)
    written = deck.with_suffix(".pdf")
    page.pdf(path=written, print_background=True, prefer_css_page_size=True)
    page.close()
    return written


def page_of(notebook: Path) -> Path:
    """Return the teachers' page of a chapter."""
    return ROOT / "docs/teach" / f"{notebook.stem.replace('_', '-')}.md"


def to_html(deck: Deck) -> str:
    """Return a deck as a page."""
    style = [REVEAL / "reveal.css", PARTS / "deck.css"]
    script = [REVEAL / "reveal.js", REVEAL / "notes.js", PARTS / "deck.js"]
    return Template((PARTS / "deck.html").read_text(encoding="utf-8")).substitute(
        title=escape(f"{deck.number} · {deck.title}"),
        style="\n".join(path.read_text(encoding="utf-8") for path in style),
        script="\n".join(path.read_text(encoding="utf-8") for path in script),
        slides="\n".join(_sections(deck)),
    )


def _sections(deck: Deck) -> Iterator[str]:
    """Put the slides of a section into a column."""
    columns: list[list[str]] = []
    for number, slide in enumerate(deck.slides):
        if slide.first:
            columns.append([])
        columns[-1].append(_cover(deck, slide) if number == 0 else _slide(slide))
    for column in columns:
        yield column[0] if len(column) == 1 else "<section>\n" + "\n".join(column) + "\n</section>"


def _cover(deck: Deck, slide: Slide) -> str:
    body = "".join(map(_block, slide.blocks))
    return (
        f'<section class="cover"><p class="chapter">Chapter {int(deck.number)}</p><h1>{_inline(deck.title)}</h1>{body}'
        f'<p class="version">kafkalab {version("kafkalab")}</p>{_notes(slide)}</section>'
    )


def _slide(slide: Slide) -> str:
    lines = sum(len(block.text) // 70 + 1 for block in slide.blocks if isinstance(block, Line) and block.style != "beside")
    body = "".join(map(_block, slide.blocks))
    again = "" if slide.first else ' class="again"'
    return (
        f'<section data-room="{_ROOM - _LINE * lines}"{again}><h2>{_inline(slide.heading)}</h2>{body}{_notes(slide)}</section>'
    )


def _block(block: Line | Question | Still) -> str:
    if isinstance(block, Question):
        letters = enumerate(block.options, ord(block.first))
        options = "".join(f"<li><b>{chr(letter)}</b><span>{_inline(option)}</span></li>" for letter, option in letters)
        choice = f'<ol class="options">{options}</ol>' if options else ""
        unit = f" ({block.unit})" if block.unit else ""
        return f'<p class="question">{_inline(block.text)}{unit}</p>{choice}<p class="do">{_VOTE if options else _WRITE}</p>'
    if isinstance(block, Still):
        return f'<figure class="still">{_picture(block)}</figure>'
    if block.style == "last":
        return str(_MARKDOWN.render(block.text)).replace("<ol>", '<ol class="last">', 1)
    return f'<p class="{block.style}{" fragment" if block.fragment else ""}">{_inline(block.text)}</p>'


def _picture(still: Still) -> str:
    if still.kind == "html":
        return still.content
    if still.kind == "text":
        return f"<pre>{escape(still.content)}</pre>"
    image = still.content if still.kind == "png" else base64.b64encode(Path(still.content).read_bytes()).decode()
    kind = "png" if still.kind == "png" else "svg+xml"
    return f'<img alt="{escape(still.alt)}" src="data:image/{kind};base64,{image}">'


def _notes(slide: Slide) -> str:
    words = re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", slide.notes)  # a deck stands alone
    return f'<aside class="notes">{_MARKDOWN.render(words)}</aside>' if words else ""


def _inline(text: str) -> str:
    return str(_MARKDOWN.renderInline(text.strip()))


if __name__ == "__main__":
    try:
        main()
    except ValueError as error:
        sys.exit(f"The slides aren't made. {error}")

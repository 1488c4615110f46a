"""The slides of the chapters: what is on them, and what isn't."""

from __future__ import annotations

import json
import re
import textwrap
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from make_slides import page_of, to_html
from notebook_support import NOTEBOOKS, cells_of
from slide_deck import SLIDE_TYPES, Deck, Line, Question, Slide, Still, page_questions, read_deck

CHAPTERS = [path for path in NOTEBOOKS if path.parent.name == "notebooks"]
EACH_CHAPTER = pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem[:2])
MOST_SLIDES, MOST_LINES, LINE = 25, 15, 62  # a line has that many characters, at least

PAGE = """\
# Teach chapter 7: Games

Learners can play.

## Before the class

- Bring dice.

## Section by section

| section | minutes | mark | goal |
| --- | ---: | --- | --- |
| 1 · Dice | 4 | core | throw them |
| 2 · Chess | 5 | extra | lose |

### 1 · Dice

- **Ask.** You throw one die. What comes? A: a 6. B: 1 to 6, by chance.
  C: nothing. Later: you throw `two`. What is the sum? D: 2 to 12. E: 12. Take your time.
- **Then say.** "B, see [the rules](rules.md)."

## Questions to end with

1. *Who wins?* Nobody.
2. *Why are
   dice fair?* They aren't.
"""


@cache
def deck_of(chapter: Path) -> Deck:
    return read_deck(chapter, page_of(chapter))


def questions(slide: Slide) -> list[Question]:
    return [block for block in slide.blocks if isinstance(block, Question)]


def lines_of(slide: Slide) -> int:
    """How many lines of text a slide has at most. Pictures don't count."""
    texts = [slide.heading]
    for block in slide.blocks:
        if isinstance(block, Question):
            texts += [block.text, *block.options, "vote"]
        elif isinstance(block, Line):
            texts += block.text.split("\n")
    return sum(len(textwrap.wrap(text, LINE)) for text in texts)


@EACH_CHAPTER
def test_every_cell_says_whether_it_is_shown(chapter: Path) -> None:
    for cell in cells_of(chapter, "code") + cells_of(chapter, "markdown"):
        metadata = cell["metadata"]
        if "navigation" not in metadata.get("tags", []):
            assert metadata.get("slideshow", {}).get("slide_type") in SLIDE_TYPES, f"{chapter.stem}, cell {cell['id']}"
        assert set(metadata.get("slide", {})) <= {"ask", "line", "question", "options", "picture"}


@EACH_CHAPTER
def test_a_deck_is_short_and_so_is_each_slide(chapter: Path) -> None:
    deck = deck_of(chapter)
    assert 8 <= len(deck.slides) <= MOST_SLIDES
    assert not [slide.heading for slide in deck.slides if lines_of(slide) > MOST_LINES]


@EACH_CHAPTER
def test_a_slide_has_one_idea_and_the_speaker_has_notes(chapter: Path) -> None:
    for slide in deck_of(chapter).slides:
        assert slide.blocks, f"{slide.heading}: an empty slide"
        assert slide.notes, f"{slide.heading}: the teachers' page has nothing for it"
        if asked := questions(slide):
            told = [block for block in slide.blocks if not (isinstance(block, Line) and block.style == "beside")]
            assert len(asked) == 1 and told == asked, f"{slide.heading}: more than the question"


@EACH_CHAPTER
def test_every_prediction_is_on_a_slide_and_works_on_paper(chapter: Path) -> None:
    cells = json.loads(chapter.read_text(encoding="utf-8"))["cells"]
    slides = {number: slide for slide in deck_of(chapter).slides for number in slide.cells}
    for number, cell in enumerate(cells):
        text = "".join(cell["source"])
        if "Predict(" not in text and "**Predict.**" not in text:
            continue
        where = f"{chapter.stem}, cell {cell['id']}"
        assert number in slides, f"{where}: its prediction is on no slide"
        [asked] = questions(slides[number])
        assert len(asked.options) >= 2 or asked.unit, f"{where}: no letters"
        own = text.count('    "') + text.count("    '") if cell["cell_type"] == "code" else 0
        assert not own or len(asked.options) == own, f"{where}: the teachers' page has other options"


@EACH_CHAPTER
def test_every_section_is_on_a_slide(chapter: Path) -> None:
    deck = deck_of(chapter)
    text = "\n".join("".join(cell["source"]) for cell in cells_of(chapter, "markdown"))
    shown = [slide.heading for slide in deck.slides]
    shown += [block.text for slide in deck.slides for block in slide.blocks if isinstance(block, Line)]
    headings = [heading.replace("# ", "") for heading in re.findall(r"(?m)^#{1,3} (.+)$", text)]
    assert headings and not [heading for heading in headings if heading != deck.title and not any(heading in s for s in shown)]


def test_a_deck_asks_no_other_host_and_says_its_version() -> None:
    html = to_html(deck_of(CHAPTERS[2]))
    assert not re.findall(r"""(?:src|href)=["'](?!data:)[^"'$]+""", html.split('<div class="slides">')[1].split("<script>")[0])
    assert "<link" not in html and "<script src" not in html and "@import" not in html
    assert f"kafkalab {version('kafkalab')}" in html
    assert "since an address is a connection" in html  # a note


def test_a_page_asks_with_letters() -> None:
    [first, second] = page_questions(PAGE.partition("### 1 · Dice")[2])
    assert first == Question("You throw one die. What comes?", ("a 6", "1 to 6, by chance", "nothing"))
    assert second == Question("You throw `two`. What is the sum?", ("2 to 12", "12"), first="D")
    assert page_questions("- **Watch.** Dice.") == []


def cell(source: str, kind: str | None = None, **metadata: Any) -> dict[str, Any]:
    shown = {"slideshow": {"slide_type": kind}} if kind else {}
    return {"cell_type": "markdown", "source": source, "metadata": {**shown, **metadata}}


def code(source: str, kind: str, *outputs: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    return {**cell(source, kind, **metadata), "cell_type": "code", "outputs": list(outputs)}


def games(folder: Path, *cells: dict[str, Any]) -> Deck:
    notebook, page = folder / "07_games.ipynb", folder / "07-games.md"
    notebook.write_text(json.dumps({"cells": cells}), encoding="utf-8")
    page.write_text(PAGE, encoding="utf-8")
    return read_deck(notebook, page)


TITLE = cell("# Games\n\n**What you'll do.** Play [dice](d.ipynb).\n\n**Time:** 9 minutes", "slide")


def test_what_stands_on_slides(tmp_path: Path) -> None:
    explained = {"data": {"text/markdown": "**What happened: a 4.** By chance."}}
    deck = games(
        tmp_path,
        TITLE,
        cell("[next](08.ipynb)", tags=["navigation"]),
        cell("## 1 · Dice\n\nDice are thrown. They roll.", "slide"),
        code('from games import Predict\nPredict("Odd or even?", options=["odd", "even"])', "-"),
        code("throw()", "subslide", {"text": "4\n"}, {"data": {"image/png": "QUJD\n", "text/plain": "?"}}),
        code("p.explain('…')", "fragment", explained),
        cell("### Loaded dice\n\n| a | b |", "-"),
        code("secret()", "skip", {"text": "hidden"}),
        cell("**Predict.** And two\ndice?", "subslide", slide={"ask": 2}),
        cell("Chess has no dice.\n\n## 2 · Chess\n\nNo. It has [pieces](p.md), though. And a king.", "slide"),
        cell("Say: patience.", "notes"),
        cell("## What you saw\n\n| x |\n\n## On your own\n\nPlay.", "slide"),
    )
    title, asks, shows, again, chess, last = deck.slides
    assert (deck.number, deck.title) == ("07", "Games")
    assert title.blocks == [Line("Play dice.", "aim")]
    assert "Learners can play." in title.notes and "Bring dice." in title.notes
    assert asks.first and asks.blocks == [Question("Odd or even?", ("odd", "even"))]
    assert asks.notes.startswith("*4 minutes, core. The goal: throw them.*") and "B, see" in asks.notes
    assert not shows.first and shows.blocks == [
        Still("text", "4"), Still("png", "QUJD"), Line("What happened: a 4.", "answer", fragment=True),
        Line("Also in the notebook: Loaded dice", "beside"),
    ]  # fmt: skip
    assert again.blocks == [Question("You throw `two`. What is the sum?", ("2 to 12", "12"), first="D")]
    assert (chess.heading, chess.blocks) == ("2 · Chess", [Line("No. It has pieces, though.")])
    assert chess.notes.endswith("Say: patience.")
    assert last.blocks[0] == Line("1. Who wins?\n2. Why are dice fair?", "last")
    assert "They aren't." in last.notes

    html = to_html(deck).partition('<div class="slides">')[2].partition("<script>")[0]
    assert "throw()" not in html and "hidden" not in html
    assert "B, see the rules." in html  # without a link


def test_what_a_notebook_leaves_to_its_metadata(tmp_path: Path) -> None:
    (tmp_path / "die.svg").write_text("<svg/>")
    deck = games(
        tmp_path,
        TITLE,
        cell("## 1 · Dice\n\n![a](a.svg) ![a die](die.svg)", "slide", slide={"line": "A die.", "picture": 2}),
        cell("**Predict.** Which? How many? Why?", "subslide", slide={"question": "Which?", "options": ["this", "that"]}),
        code('Predict("How far does it roll?", unit="cm")', "subslide", slide={"question": "How far does a die roll?"}),
    )
    assert deck.slides[1].blocks == [Line("A die."), Still("svg", str(tmp_path / "die.svg"), "a die")]
    assert questions(deck.slides[2]) == [Question("Which?", ("this", "that"))]
    assert questions(deck.slides[3]) == [Question("How far does a die roll?", unit="cm")]
    html = to_html(deck)
    assert "PHN2Zy8+" in html and 'alt="a die"' in html
    assert "Write down a number" in html


@pytest.mark.parametrize(
    "cells, said",
    [
        ([cell("Dice.", "-")], "07_games.ipynb: cell 0 is shown before the first slide"),
        (
            [TITLE, cell("## 1 · Dice\n\n**Predict.** What?", "slide", slide={"ask": 3})],
            "07_games.ipynb, cell 1: the teachers' page has 2 questions with letters for '1 · Dice', and none is 3",
        ),
    ],
)
def test_what_is_wrong_is_named(cells: list[dict[str, Any]], said: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        games(tmp_path, *cells)


BLOCK = re.compile(r"(?m)^\s*(?::{3,}|[`~]{3,}\s*\{)")  # ":::{note}", and "{note}" behind three backticks
CODE = re.compile(r"(?s)(?<!`)(`+)(?!`).+?(?<!`)\1(?!`)")
ROLE = re.compile(r"\{[a-z][\w:+-]*\}$")  # "{ref}", just before code


def has_directives(text: str) -> bool:
    return bool(BLOCK.search(text)) or any(ROLE.search(text[: code.start()]) for code in CODE.finditer(text))


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_have_the_markdown_that_looks_right_everywhere(notebook: Path) -> None:
    wrong = [cell["id"] for cell in cells_of(notebook, "markdown") if has_directives("".join(cell["source"]))]
    assert not wrong, f"{notebook.stem}: cells {wrong} have directives, which JupyterLab and GitHub show as they are written"


@pytest.mark.parametrize("text", [":::{note}\nHi\n:::", "```{warning}\nHi\n```", "see {ref}`there`", "Hi\n\n:::: tip"])
def test_directives_are_found(text: str) -> None:
    assert has_directives(text)


def test_code_is_no_directive() -> None:
    assert not has_directives("```python\nx = {}\n```\n`{a}`, `--file {file}` and `::: no`")

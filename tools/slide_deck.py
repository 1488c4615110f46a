"""Reads a chapter's slides out of its notebook, and the speaker's notes out of the teachers' page.

``metadata.slideshow.slide_type`` of a cell says where it goes: ``slide`` and ``subslide`` begin a slide, ``-`` stays on it,
``fragment`` appears on it by a click, ``notes`` goes to the notes, and ``skip`` isn't shown. Cells with the tag ``navigation``
are never shown: `tools/link_notebooks.py` writes them anew each time.

A slide never shows code. A cell of text gives its heading with its first sentence, or its prediction; a cell of code gives its
prediction, its explanation's answer or its stored output. ``metadata.slide`` says what the cell doesn't:

``{"line": "…"}``
    The line to show instead of the first sentence.
``{"ask": 2}``
    Show the second question with letters of this section's **Ask** on the teachers' page: the notebook's own question has no
    options.
``{"question": "…", "options": […]}``
    Another question for a prediction whose own needs the cells above or asks several things; options for one that has none,
    neither here nor on the page.
``{"picture": 2}``
    Show the second picture of the cell's text.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

__all__ = ["SLIDE_TYPES", "Deck", "Line", "Question", "Slide", "Still", "page_questions", "read_deck"]

SLIDE_TYPES = ("slide", "subslide", "-", "fragment", "notes", "skip")

_LAST = "What you saw"
_HEADING = re.compile(r"^#{1,3} (.+)$", re.MULTILINE)
_SECTION = re.compile(r"\d+ · ")
_ASKED = re.compile(r"\*\*Predict\.\*\*\s+(.+?)(?=\n\n|\Z)", re.DOTALL)
_ANSWER = re.compile(r"\*\*((?:What happened|Measured): .+?)\*\*", re.DOTALL)
_PICTURE = re.compile(r"!\[([^]]*)\]\(([^)]+)\)")
_LINK = re.compile(r"(?<!!)\[([^]]+)\]\([^)]+\)")
_SHORT = 15  # characters: "No." needs the next sentence, too
_END = re.compile(r"(?<=[.?!])\s+(?=[A-Z`*\"“(…\d])|\s+(?=[A-F]: )")  # of a sentence, or of the words before an option


@dataclass(frozen=True)
class Line:
    """A line of text, as Markdown."""

    text: str
    style: str = "line"  # or "aim", "answer", "last", "beside": a class of deck.css
    fragment: bool = False


@dataclass(frozen=True)
class Question:
    """A question to vote on. Without options, people write their answer down."""

    text: str
    options: tuple[str, ...] = ()
    unit: str = ""
    first: str = "A"  # the letter of the first option


@dataclass(frozen=True)
class Still:
    """A stored picture or output: HTML, a PNG image in base 64, the path of an SVG file, or plain text."""

    kind: str  # "html", "png", "svg" or "text"
    content: str
    alt: str = ""


@dataclass
class Slide:
    """A slide: its heading, and what stands below it."""

    heading: str
    first: bool  # of its section
    blocks: list[Line | Question | Still] = field(default_factory=list)
    notes: str = ""  # Markdown
    cells: list[int] = field(default_factory=list)  # the numbers of the cells that it shows


@dataclass(frozen=True)
class Deck:
    """The slides of a chapter."""

    number: str  # "02"
    title: str
    slides: list[Slide]


def read_deck(notebook: Path, page: Path) -> Deck:
    """Return the slides of a chapter.

    Parameters
    ----------
    notebook
        The chapter.
    page
        Its page for teachers. It has the notes, and questions with letters.

    Raises
    ------
    ValueError
        If a cell before the first slide is shown, or a cell asks a question that the page doesn't have.
    """
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    teaching = _Teaching(page.read_text(encoding="utf-8"))
    slides: list[Slide] = []
    title = section = taught = ""
    for number, cell in enumerate(cells):
        text = "".join(cell["source"])
        headings = _HEADING.findall(text) if cell["cell_type"] == "markdown" else []
        title = title or next(iter(headings), "")
        section = next((heading for heading in headings if _SECTION.match(heading)), next(iter(headings), section))
        if _SECTION.match(section) or section in (title, _LAST):
            taught = section
        kind = _slide_type(cell)
        if kind == "skip":
            continue
        if kind in ("slide", "subslide"):
            slides.append(Slide(section, first=kind == "slide", notes=teaching.notes(taught, title)))
        elif not slides:
            raise ValueError(f"{notebook.name}: cell {number} is shown before the first slide")
        slide = slides[-1]
        slide.cells.append(number)
        if kind == "notes":
            slide.notes += f"\n\n{text}"
            continue
        try:
            slide.blocks += _blocks(cell, text, headings, slide.heading, taught, teaching, notebook.parent, kind == "fragment")
        except ValueError as error:
            raise ValueError(f"{notebook.name}, cell {number}: {error}") from error
        # Another section's heading on the slide: that section has none of its own.
        if others := [heading for heading in headings if heading not in (slide.heading, title)]:
            slide.blocks.append(Line("Also in the notebook: " + " · ".join(others), "beside"))
    for slide in slides:
        if any(isinstance(block, Question) for block in slide.blocks):  # one idea a slide: the question
            slide.blocks = [block for block in slide.blocks if not (isinstance(block, Line) and block.style == "line")]
    return Deck(notebook.stem[:2], title, slides)


def _slide_type(cell: dict[str, Any]) -> str:
    metadata = cell["metadata"]
    return "skip" if "navigation" in metadata.get("tags", []) else metadata.get("slideshow", {}).get("slide_type", "-")


def _blocks(
    cell: dict[str, Any],
    text: str,
    headings: list[str],
    heading: str,
    section: str,
    teaching: _Teaching,
    folder: Path,
    fragment: bool,
) -> Iterator[Line | Question | Still]:
    hints = cell["metadata"].get("slide", {})
    if number := hints.get("ask"):
        yield teaching.question(section, number)
    elif cell["cell_type"] == "code":
        yield from _of_code(cell, text, hints, fragment)
    elif asked := _ASKED.search(text):
        yield Question(hints.get("question") or _plain(asked[1]), tuple(hints.get("options", ())))
    elif headings and headings[0] == _LAST:
        yield Line("\n".join(f"{number}. {asked}" for number, asked in enumerate(teaching.last_questions(), 1)), "last")
    elif headings and text.startswith("# "):
        doing = re.search(r"\*\*What you'll do\.\*\* (.+?)\n\n", text, re.DOTALL)
        yield Line(_plain(doing[1]) if doing else "", "aim")
    elif not headings or heading in headings:  # another section's heading alone shares the slide
        if line := hints.get("line") or _first_sentence(text.partition(f"# {heading}")[2] or text):
            yield Line(line, fragment=fragment)
        if number := hints.get("picture"):
            alt, name = _PICTURE.findall(text)[number - 1]
            yield Still("svg", str(folder / name), alt)


def _of_code(cell: dict[str, Any], text: str, hints: dict[str, Any], fragment: bool) -> Iterator[Line | Question | Still]:
    if asked := _prediction(text):
        yield replace(asked, text=hints.get("question", asked.text))
        return
    for output in cell["outputs"]:
        data = {kind: "".join(words) for kind, words in output.get("data", {}).items()}
        if answer := _ANSWER.search(data.get("text/markdown", "")):
            yield Line(hints.get("line") or _plain(answer[1]), "answer", fragment)
        elif html := data.get("text/html"):
            yield Still("html", html)
        elif image := data.get("image/png"):
            yield Still("png", image.replace("\n", ""))
        elif said := "".join(output.get("text", data.get("text/plain", ""))).rstrip():
            yield Still("text", said)


def _prediction(source: str) -> Question | None:
    """Take the question out of the code."""
    if "Predict(" not in source:
        return None
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "Predict":
            named = {keyword.arg: ast.literal_eval(keyword.value) for keyword in node.keywords}
            return Question(ast.literal_eval(node.args[0]), tuple(named.get("options", ())), named.get("unit", ""))
    return None


def _first_sentence(text: str) -> str:
    """Return the first sentence below the heading, or an empty string: a table or a list has none."""
    paragraphs = [part for part in re.split(r"\n\n+", text.strip()) if not part.startswith("#")]
    first = paragraphs[0] if paragraphs else ""
    if not first or first.startswith(("|", "- ", "!", "<")):
        return ""
    words = re.sub(r"^\*\*(?:Explain\.|Observe\.|Question for Spark:)\*\* ", "", _plain(first))
    sentence, *others = _END.split(words)
    return f"{sentence} {others[0]}" if others and len(sentence) < _SHORT else sentence


def _plain(text: str) -> str:
    """Put text into one line, without links: a slide stands alone."""
    return _LINK.sub(r"\1", re.sub(r"\s+", " ", text)).strip()


class _Teaching:
    """A chapter's page for teachers."""

    def __init__(self, page: str) -> None:
        self._front = page.partition("\n## ")[0].partition("\n")[2].strip()
        self._parts = {part.partition("\n")[0]: part.partition("\n")[2].strip() for part in re.split(r"(?m)^#{2,3} ", page)[1:]}

    def notes(self, heading: str, title: str) -> str:
        """Return the notes for a section, the first slide or the last one."""
        if heading == title:
            return f"{self._front}\n\n{self._parts['Before the class']}"
        if heading == _LAST:
            return self._parts["Questions to end with"]
        number = heading.partition(" · ")[0]
        text = next((text for name, text in self._parts.items() if name.startswith(f"{number} · ")), "")
        if not (
            row := re.search(
                rf"^\| {number} · .+? \| +(\d+) \| (\S+) \| (.+?) +\|$", self._parts["Section by section"], re.MULTILINE
            )
        ):
            return text
        minutes, mark, goal = row.groups()
        return f"*{minutes} minutes, {mark}. The goal: {goal}.*\n\n{text}"

    def last_questions(self) -> list[str]:
        """Return the questions to end with, without their answers."""
        return [_plain(asked) for asked in re.findall(r"(?ms)^\d+\. \*(.+?)\*(?= |\n)", self._parts["Questions to end with"])]

    def question(self, section: str, number: int) -> Question:
        """Return a question with letters of a section's **Ask**, counted from 1."""
        found = page_questions(self.notes(section, ""))
        if number > len(found):
            raise ValueError(
                f"the teachers' page has {len(found)} questions with letters for '{section}', and none is {number}"
            )
        return found[number - 1]


def page_questions(notes: str) -> list[Question]:
    """Return the questions with letters that a section of a teachers' page asks."""
    asked = re.search(r"- \*\*Ask\.\*\*(.+?)(?=\n- \*\*|\n\n|\Z)", notes, re.DOTALL)
    questions: list[tuple[list[str], dict[str, str]]] = [([], {})]
    for sentence in _END.split(_plain(asked[1])) if asked else ():
        words, options = questions[-1]
        if option := re.match(r"([A-F]): (.+?)\.?$", sentence):
            options[option[1]] = option[2]
        elif options:
            questions.append(([sentence], {}))
        else:
            words.append(sentence)
    return [
        Question(_begun(" ".join(words)), tuple(options.values()), first=min(options))
        for words, options in questions
        if options
    ]


def _begun(question: str) -> str:
    """Begin a second question like a first one."""
    question = re.sub(r"^(?:Later|Then)[:,]? (?:ask again, )?", "", question)
    return question[:1].upper() + question[1:]

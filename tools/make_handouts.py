"""``make handouts``: what each chapter asks for, on paper, without and with answers.

Writes build/handouts/NN-tasks.html and NN-answers.html: predictions of the chapter with lines for notes, its labs with what
their checks require, and its quiz. Each page is useful alone, without a server and a network. A browser prints them as PDF, A4.

Nothing is executed. Tasks come from the labs, answers from the solutions and the outputs that they store.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.metadata import version
from pathlib import Path
from string import ascii_uppercase
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token
from playwright.sync_api import sync_playwright

from kafkalab.checks import find_check
from kafkalab.course import Content
from kafkalab.course.names import CHECK
from kafkalab.course.predictions import Asked, asked_in
from kafkalab.course.versions import is_for_instructors
from kafkalab.widgets.quiz_data import Question, load_quiz

ROOT = Path(__file__).parent.parent
TODO = "# YOUR CODE HERE"

_BEGIN, _END = "### BEGIN SOLUTION", "### END SOLUTION"
_LEAST, _MOST = 3, 10  # lines to write code on
_ANSWERS = ("**Explain.**", "## What you saw", "**What you saw.**")  # a paragraph that begins so gives answers away
_NEXT = re.compile(r"^(?:#|\*\*[A-Z][\w' ]+\.\*\*)")  # what comes after it
_EXPLAINS = re.compile(r"^\w+\.explain\(", re.MULTILINE)
_OUTSIDE = re.compile(r"https?:")

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<header><h1>{title}</h1><p>{about}</p>{name}</header>
<main>
{main}
</main>
<footer>{version}</footer>
</body>
</html>
"""

_NAME = '<p class="name">Name <span></span> Date <span></span></p>'

_STYLE = """
@page { size: A4; margin: 18mm 18mm 20mm; }
:root { color-scheme: light; }
body { font: 11pt/1.45 system-ui, "Liberation Sans", sans-serif; color: #111; background: #fff; max-width: 174mm;
  margin: 8mm auto; padding: 0 4mm; }
@media print { body { margin: 0; padding: 0; max-width: none; } footer { display: none; } }
h1 { font-size: 20pt; line-height: 1.2; margin: 0 0 2mm; }
h2 { font-size: 15pt; margin: 10mm 0 3mm; padding-top: 2mm; border-top: 1.5pt solid #111; break-after: avoid; }
h3 { font-size: 12pt; margin: 6mm 0 2mm; break-after: avoid; }
h4 { font-size: 11pt; margin: 4mm 0 1mm; break-after: avoid; }
section.page { break-before: page; }
section.page > h2 { margin-top: 0; } section.page:first-child { break-before: auto; }
p, ul, ol, table, pre { margin: 0 0 3mm; }
li { margin: 0 0 1mm; }
header p { margin: 0 0 2mm; color: #444; }
.name { display: flex; gap: 4mm; align-items: end; color: #111; margin: 6mm 0; }
.name span { flex: 2; border-bottom: .6pt solid #777; } .name span:last-child { flex: 1; }
code, pre { font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: 9pt; }
pre { padding: 2mm 3mm; border: .6pt solid #bbb; border-radius: 1mm; background: #f6f6f6; white-space: pre-wrap; overflow-wrap: anywhere; }
pre.part { border-bottom: 0; border-radius: 1mm 1mm 0 0; margin: 0; } pre.rest { border-radius: 0 0 1mm 1mm; border-top: 0; }
table { border-collapse: collapse; } th, td { border: .6pt solid #999; padding: 1mm 2mm; text-align: left; vertical-align: top; }
.ask, .check, .answer, .instructor, pre { break-inside: avoid; }
.ask { margin: 0 0 3mm; } .ask ol { list-style: upper-alpha; margin: 1mm 0 2mm; padding-left: 8mm; }
.ask ol.right-only li:not(.right) { color: #666; } .ask li.right { font-weight: 700; }
.check { border: 1pt solid #111; border-radius: 1mm; padding: 2mm 3mm; margin: 0 0 4mm; }
.check ul { list-style: none; padding: 0; margin: 1mm 0 0; } .check li::before { content: "☐ "; }
.answer, .instructor { border-left: 2.5pt solid #111; padding: 0 0 0 3mm; margin: 0 0 4mm; }
.instructor { border-left-style: dotted; }
.lines { margin: 0 0 4mm; } .lines i { display: block; height: 8mm; border-bottom: .6pt solid #999; }
.code-lines { border: .6pt solid #bbb; border-top: 0; padding: 0 3mm 3mm; margin: 0 0 3mm; }
footer { margin-top: 10mm; color: #444; font-size: 9pt; }
"""

# Chromium prints it below each page.
_FOOTER = """<div style="font: 8pt sans-serif; width: 100%; margin: 0 18mm; display: flex; justify-content: space-between">
<span>{}</span><span><span class="pageNumber"></span> of <span class="totalPages"></span></span></div>"""


@dataclass(frozen=True)
class Handout:
    """A page for printing: its name without ending, ``03-tasks``, and its HTML."""

    name: str
    html: str


def edition() -> str:
    """The version of the course, as it stands on each page."""
    return f"kafkalab {version('kafkalab')}"


def handouts(content: Content) -> Iterator[Handout]:
    """Return each chapter's tasks, and its tasks with answers if the course has solutions."""
    for chapter in content.chapter_titles:
        for answers in (False, True) if content.solutions() else (False,):
            yield handout(content, chapter, answers=answers)


def handout(content: Content, chapter: str, *, answers: bool) -> Handout:
    """Return a chapter's hand-out."""
    number, heading = chapter[:2], content.chapter_titles[chapter]
    stems = [stem for stem in content.lab_stems() if content.chapter_of(stem) == chapter]
    parts = [
        _section(f"Chapter {int(number)}, section by section", _chapter(content, chapter, answers)),
        *(
            _section(f"Lab {place} · {_title(content, stem)}", _lab(content, stem, answers))
            for place, stem in enumerate(stems, 1)
        ),
        _section("Quiz", _quiz(chapter, answers)),
    ]
    minutes = sum(content.lab_facts(stem).minutes for stem in stems)
    html = _PAGE.format(
        title=escape(f"{number} · {_plain(heading)}: {'answers' if answers else 'tasks'}"),
        style=_STYLE,
        about=f"{len(stems)} {'lab' if len(stems) == 1 else 'labs'}, about {minutes} minutes · {edition()}",
        name="" if answers else _NAME,
        main="\n".join(parts),
        version=edition(),
    )
    return Handout(f"{number}-{'answers' if answers else 'tasks'}", html)


def _section(heading: str, blocks: Iterable[str]) -> str:
    return f'<section class="page"><h2>{_inline(heading)}</h2>\n' + "\n".join(blocks) + "\n</section>"


def _cells(path: Path) -> list[dict[str, Any]]:
    cells: list[dict[str, Any]] = json.loads(path.read_bytes())["cells"]
    return [{**cell, "source": "".join(cell["source"])} for cell in cells]


def _title(content: Content, stem: str) -> str:
    [head, *_] = _cells(content.files()[f"labs/{content.chapter_of(stem)}/{stem}.ipynb"])
    return str(head["source"].split("\n")[0].removeprefix("# "))


# -- the chapter ------------------------------------------------------------------------------------------------------


def _chapter(content: Content, chapter: str, answers: bool) -> Iterator[str]:
    """Yield the headings of a chapter with its predictions, and lines for notes."""
    begun = False
    for cell in _cells(content.files()[f"notebooks/{chapter}.ipynb"]):
        if cell["cell_type"] == "markdown":
            for heading in re.findall(r"^## (\d+ · .+)$", cell["source"], re.MULTILINE):
                if begun and not answers:
                    yield _lines(4)
                begun = True
                yield f"<h3>{_inline(heading)}</h3>"
            yield from (
                _ask(Asked(words, ())) for words in re.findall(r"^\*\*Predict\.\*\* (.+)$", cell["source"], re.MULTILINE)
            )
        else:
            yield from map(_ask, asked_in(cell["source"]))
            if answers:
                yield from (_answer(words) for words in _explained(cell))
    if not answers:
        yield _lines(4)


def _ask(asked: Asked) -> str:
    options = "".join(f"<li>{_inline(option)}</li>" for option in asked.options)
    return f'<div class="ask"><p><strong>Predict.</strong> {_inline(asked.question)}</p>{f"<ol>{options}</ol>" if options else ""}</div>'


def _explained(cell: Mapping[str, Any]) -> Iterator[str]:
    """Yield what an explanation says, as stored in its output."""
    if _EXPLAINS.search(cell["source"]):
        for output in cell["outputs"]:
            if words := "".join(output.get("data", {}).get("text/markdown", "")):
                yield words


# -- a lab ------------------------------------------------------------------------------------------------------------


def _lab(content: Content, stem: str, answers: bool) -> Iterator[str]:
    name = f"{content.chapter_of(stem)}/{stem}.ipynb"
    lab = _cells(content.files()[f"labs/{name}"])
    solved = _cells(content.solutions()[f"solutions/{name}"]) if f"solutions/{name}" in content.solutions() else []
    solutions = {cell["id"]: cell["source"] for cell in solved}
    head, *rest = [cell for cell in (solved if answers else lab) if "navigation" not in cell["metadata"].get("tags", ())]
    yield _markdown(lab[0]["source"].partition("\n")[2])  # it says what the lab needs, and the solution's doesn't
    announced = False  # the text before says what the cell shows
    for cell in rest:
        if is_for_instructors(cell):
            yield f'<div class="instructor"><p><strong>For instructors.</strong></p>{_markdown(cell["source"])}</div>'
        elif cell["cell_type"] == "markdown":
            yield _markdown(cell["source"]) if answers else _without_answers(cell["source"])
        elif asked := asked_in(cell["source"]):
            yield from (_ask(one) + ("" if answers or one.options else _lines(1)) for one in asked)
        elif checks := CHECK.findall(cell["source"]):
            yield from map(_check, checks)
        elif TODO in cell["source"]:
            yield _to_write(cell["source"], solutions.get(cell["id"], ""))
        elif _EXPLAINS.search(cell["source"]):
            yield from (_answer(words) for words in _explained(cell) if answers)
        elif announced or _BEGIN in cell["source"]:
            yield f"<pre>{escape(_solved(cell['source']))}</pre>"
        announced = cell["cell_type"] == "markdown" and cell["source"].rstrip().endswith(":")


def _without_answers(text: str) -> str:
    """Return Markdown as HTML. Where it explains what happened, there are lines to write on."""
    blocks: list[str] = []
    hidden = False
    for paragraph in re.sub(r"<details>.*?</details>", "", text, flags=re.DOTALL).split("\n\n"):
        if paragraph.startswith(_ANSWERS):
            hidden = True
            word = "What did you see?" if "saw" in paragraph[:20] else "Explain."
            blocks.append(f"<p><strong>{word}</strong></p>{_lines(3)}")
            continue
        hidden = hidden and not _NEXT.match(paragraph)
        if not hidden:
            blocks.append(_markdown(paragraph))
    return "".join(blocks)


def _check(id: str) -> str:
    check = find_check(id)
    requirements = "".join(f"<li>{_inline(requirement.says)}</li>" for requirement in check.requirements)
    return f'<div class="check"><strong>Check {id}.</strong> {_inline(check.title)}<ul>{requirements}</ul></div>'


def _solved(source: str) -> str:
    return "\n".join(line for line in source.split("\n") if line.strip() not in (_BEGIN, _END)).strip()


def _to_write(source: str, solution: str) -> str:
    """Return a cell with lines where the learner writes code: about as many as the solution has."""
    written = solution.partition(_BEGIN)[2].partition(_END)[0].strip().count("\n") + 1
    before, _, after = source.partition(TODO)
    room = f'<div class="code-lines">{_lines(min(max(written, _LEAST), _MOST))}</div>'
    above = f'<pre class="part">{escape(before.rstrip() or "# Your code:")}</pre>'
    return above + room + (f"<pre>{escape(after.strip())}</pre>" if after.strip() else "")


# -- the quiz ---------------------------------------------------------------------------------------------------------


def _quiz(chapter: str, answers: bool) -> Iterator[str]:
    for number, question in enumerate(load_quiz(chapter).questions, 1):
        yield _question(number, question, answers)


def _question(number: int, question: Question, answers: bool) -> str:
    many = " <em>(several are right)</em>" if question.kind == "many" else ""
    ask = f"<p><strong>{number}.</strong> {_inline(question.ask)}{many}</p>"
    mark = ' class="right"' if answers else ""
    options = "".join(f"<li{mark if option.right else ''}>{_inline(option.text)}</li>" for option in question.options)
    below = f"<ol{' class=right-only' * answers}>{options}</ol>" if options else "" if answers else _lines(3)
    if answers:
        letters = ", ".join(ascii_uppercase[place] for place in sorted(question.right))
        below += _answer(f"{f'**{letters}.** ' if letters else ''}{question.explanation}")
    return f'<div class="ask">{ask}{below}</div>'


# -- words ------------------------------------------------------------------------------------------------------------


def _on_paper(tokens: Sequence[Token]) -> None:
    """Let links that lead to other notebooks be words, and headings fit below the lab's own."""
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(int(token.tag[1]) + 1, 4)}"
        children = token.children or []
        stays = True
        for child in children:
            if child.type == "link_open":
                stays = bool(_OUTSIDE.match(str(child.attrs["href"])))
            if child.type in ("link_open", "link_close") and not stays:
                child.type, child.tag, child.content, child.nesting, child.attrs = "text", "", "", 0, {}


_PARSER = MarkdownIt().enable("table")


def _markdown(text: str) -> str:
    tokens = _PARSER.parse(text)
    _on_paper(tokens)
    return str(_PARSER.renderer.render(tokens, _PARSER.options, {}))


def _inline(words: str) -> str:
    return str(_PARSER.renderInline(words.strip()))


def _plain(words: str) -> str:
    return words.replace("`", "")


def _answer(words: str) -> str:
    return f'<div class="answer">{_markdown(words)}</div>'


def _lines(number: int) -> str:
    return f'<div class="lines">{"<i></i>" * number}</div>'


# -- files ------------------------------------------------------------------------------------------------------------


def browser_program() -> str | None:
    """The browser that prints: what ``KAFKALAB_CHROMIUM`` names, or Chromium on the path, or None."""
    return os.environ.get("KAFKALAB_CHROMIUM") or shutil.which("chromium")


def write(pages: Sequence[Handout], folder: Path) -> None:
    """Write pages as HTML."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for page in pages:
        (folder / f"{page.name}.html").write_text(page.html, encoding="utf-8")


def print_all(folder: Path, program: str) -> None:
    """Print each page of a folder as PDF, beside it."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page()
        for path in sorted(folder.glob("*.html")):
            page.goto(path.as_uri())
            footer = _FOOTER.format(escape(f"{page.title()} · {edition()}"))
            page.pdf(
                path=path.with_suffix(".pdf"), format="A4", prefer_css_page_size=True, display_header_footer=True,
                header_template="<span></span>", footer_template=footer, tagged=True, outline=True,
            )  # fmt: skip
        browser.close()


def main() -> None:
    """Write all of them into build/handouts."""
    folder = ROOT / "build/handouts"
    pages = list(handouts(Content(ROOT)))
    write(pages, folder)
    if program := browser_program():
        print_all(folder, program)
        print(f"{len(pages)} hand-outs are in {folder}, as HTML and as PDF.")
    else:
        print(
            f"{len(pages)} hand-outs are in {folder}, as HTML only: there's no Chromium to print them. KAFKALAB_CHROMIUM names one."
        )


if __name__ == "__main__":
    main()

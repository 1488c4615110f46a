"""``make site``: the course as pages that need neither a server nor a network.

Lays out chapters, labs and documents as Sphinx reads them, and lets it write build/site/html. Nothing is executed: the outputs
are those that the notebooks store.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html import escape, unescape
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt

from kafkalab.course import Content
from kafkalab.course.predictions import asked_in
from kafkalab.course.versions import as_learners_get_it, is_for_instructors
from kafkalab.widgets.picture import spoken
from player import player
from recording import Recording

ROOT = Path(__file__).parent.parent
SETTINGS = ROOT / "docs/site"  # conf.py, and what pages share
FILM = ("docs/failover.gif", "docs/failover.png")  # README shows them in an element that Sphinx doesn't look into
RECORDINGS = SETTINGS / "recordings"
EXAMPLE = ROOT / "docs/teach/own-labs"  # a folder of labs, and no pages
REPOSITORY = os.environ.get("KAFKALAB_REPOSITORY", "")  # its address, for links to it. Empty: no links

MODULES = ("kafkalab.cluster", "kafkalab.services", "kafkalab.workers", "kafkalab.spark", "kafkalab.streams", "kafkalab.history",
           "kafkalab.waiting", "kafkalab.errors")  # fmt: skip

BADGES = re.compile(r"(<!-- badges -->)\n.*?(<!-- end of badges -->)", re.DOTALL)  # README's: pictures from other hosts
_ASKED = re.compile(r"^(\w+) = Predict\(", re.MULTILINE)
_EXPLAINED = re.compile(r"^(\w+)\.explain\(", re.MULTILINE)
_CODE = re.compile(r"\[([^]]+)\]\((?:\.\./)?((?:src|pipeline)/[^)]+)\)")  # a link to what isn't part of the site
_WORDS = re.compile(r'(?<=<img alt=")[^"]+')  # of a still picture; only its first image has any
_MARKDOWN = MarkdownIt()


def make_site(folder: Path) -> Path:
    """Write the site anew into a folder, and return its first page.

    Raises
    ------
    subprocess.CalledProcessError
        If Sphinx warns of anything: a link that leads nowhere, a page in no list. It has said what.
    """
    shutil.rmtree(folder, ignore_errors=True)
    laid_out, pages = folder / "pages", folder / "html"
    content = Content(ROOT)  # without an instructor's own labs
    for name, path in content.files().items():
        _lay_out(path, laid_out / name)
    documents = (path for path in (ROOT / "docs").rglob("*") if path.is_file() and not {SETTINGS, EXAMPLE} & {*path.parents})
    for path in (*documents, *(ROOT / name for name in ("CONTRIBUTING.md", "CHANGELOG.md", "LICENSE"))):
        _lay_out(path, laid_out / path.relative_to(ROOT))
    _write_lists(content, laid_out)
    subprocess.run(
        [sys.executable, "-m", "sphinx", "-b", "html", "-j", "auto", "-q", "-W", "--keep-going", "-c", SETTINGS,
         "-d", folder / "doctrees", laid_out, pages],
        check=True,
    )  # fmt: skip
    for name in FILM:
        shutil.copyfile(ROOT / name, pages / name)
    for name, path in content.files().items():
        if name.endswith(".ipynb"):  # to download, as a learner gets it
            (pages / name).write_bytes(as_learners_get_it(path.read_bytes()))
    return pages / "index.html"


def _lay_out(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.suffix == ".ipynb":
        notebook = json.loads(source.read_bytes())
        notebook["cells"] = [cell for cell in notebook["cells"] if not is_for_instructors(cell)]
        for cell in notebook["cells"]:
            _prepare(cell)
        target.write_text(json.dumps(notebook), encoding="utf-8")
    elif source.suffix == ".md":
        target.write_text(_CODE.sub(_to_repository, source.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        shutil.copyfile(source, target)


def _to_repository(link: re.Match[str]) -> str:
    return f"[{link[1]}]({REPOSITORY}/blob/main/{link[2]})" if REPOSITORY else link[1]


def _prepare(cell: dict[str, Any]) -> None:
    """Show a prediction and its explanation as elements that docs/site/static/course.js knows, without their code.

    Pictures get sentences as their text, also those of notebooks that ran long ago.
    """
    for output in cell.get("outputs", []):
        if html := "".join(output.get("data", {}).get("text/html", "")):
            output["data"]["text/html"] = _WORDS.sub(lambda words: escape(spoken(unescape(words[0]))), html)
    if recording := cell["metadata"].get("kafkalab", {}).get("recording"):
        html = player(Recording.read(RECORDINGS / f"{recording}.json"))
        cell["outputs"].append({"output_type": "display_data", "metadata": {}, "data": {"text/html": html}})
    source = "".join(cell["source"])
    if asked := _ASKED.search(source):
        html = _question(asked[1], source)
    elif explained := _EXPLAINED.search(source):
        html = "".join(_explanation(explained[1], words) for words in _shown(cell))
    else:
        return
    if html:
        cell["metadata"]["tags"] = [*cell["metadata"].get("tags", []), "remove-input"]
        cell["outputs"] = [{"output_type": "display_data", "metadata": {}, "data": {"text/html": html}}]


def _question(name: str, source: str) -> str:
    """Take the question out of the code: labs store no outputs."""
    [asked] = asked_in(source)
    choices = "".join(f'<button type="button">{_inline(option)}</button>' for option in asked.options)
    choices = choices or '<label>Your guess: <input type="text"></label>'
    return (
        f'<div class="predict" data-predict="{name}"><p><strong>Predict.</strong> {_inline(asked.question)}</p>'
        f'<div class="options">{choices}</div></div>'
    )


def _shown(cell: dict[str, Any]) -> Iterator[str]:
    for output in cell.get("outputs", []):
        if words := "".join(output.get("data", {}).get("text/markdown", "")):
            yield words


def _explanation(name: str, words: str) -> str:
    return (
        f'<details class="explained" data-predict="{name}"><summary>What happened</summary><p class="guess"></p>'
        f"{_MARKDOWN.render(words)}</details>"
    )


def _inline(words: str) -> str:
    return str(_MARKDOWN.renderInline(words.strip()))


def _write_lists(content: Content, laid_out: Path) -> None:
    """Write the first page and the lists of the sidebar: chapters with their labs, documents, the API."""
    labs: dict[str, list[str]] = {chapter: [] for chapter in content.chapter_titles}
    for stem in content.lab_stems():
        labs[content.chapter_of(stem)].append(stem)
    for chapter, stems in labs.items():
        _append_tree(laid_out / f"notebooks/{chapter}.ipynb", [f"../labs/{chapter}/{stem}" for stem in stems])
    chapters = [f"{chapter[:2]} · {title} <notebooks/{chapter}>" for chapter, title in content.chapter_titles.items()]
    (laid_out / "api").mkdir()
    for module in MODULES:
        page = f"# {module}\n\n```{{eval-rst}}\n.. automodule:: {module}\n   :members:\n```\n"
        (laid_out / f"api/{module}.md").write_text(page, encoding="utf-8")
    welcome = (SETTINGS / "welcome.md").read_text(encoding="utf-8")
    first = BADGES.sub(lambda _: welcome, (ROOT / "README.md").read_text(encoding="utf-8"))
    trees = {
        "Chapters": chapters,
        "Use it": [*_documents(laid_out, "docs/use/*")],
        "Look things up": [
            *_documents(laid_out, "docs/cheat-sheet", "docs/glossary"),
            "docs/pipeline-faults",
            "docs/ten-million",
        ],
        "Teach": [*_documents(laid_out, "docs/teach/*")],
        "Develop": ["CONTRIBUTING", "docs/architecture", "CHANGELOG"],
        "API": [f"api/{module}" for module in MODULES],
    }
    below = "".join(f"\n{_tree(entries, caption)}" for caption, entries in trees.items() if entries)
    (laid_out / "index.md").write_text(first + below, encoding="utf-8")


def _documents(laid_out: Path, *patterns: str) -> list[str]:
    found = (path for pattern in patterns for path in sorted(laid_out.glob(f"{pattern}.md")))
    return [path.relative_to(laid_out).with_suffix("").as_posix() for path in found]


def _tree(entries: list[str], caption: str = "") -> str:
    return "\n".join(["```{toctree}", ":hidden:", *([f":caption: {caption}"] if caption else []), "", *entries, "```", ""])


def _append_tree(notebook: Path, entries: list[str]) -> None:
    content = json.loads(notebook.read_bytes())
    content["cells"].append({"cell_type": "markdown", "id": "labs-of-this-chapter", "metadata": {}, "source": _tree(entries)})
    notebook.write_text(json.dumps(content), encoding="utf-8")


if __name__ == "__main__":
    try:
        print(f"The site is {make_site(ROOT / 'build/site')}.")
    except subprocess.CalledProcessError:
        sys.exit("The site isn't made: Sphinx says above what is wrong.")

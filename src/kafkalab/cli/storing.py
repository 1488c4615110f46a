"""Store a run in a notebook, without needless differences and without traces of this machine."""

from __future__ import annotations

import getpass
import math
import platform
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from kafkalab.files import write_atomically
from kafkalab.paths import cache_dir, runs_dir

__all__ = ["leaks", "machine_marks", "note_seconds", "store", "strip"]

# Only a running kernel can show these.
LIVE_WIDGET = "application/vnd.jupyter.widget-view+json"

# Names that many machines share don't identify this one.
COMMON_NAMES = {"root", "user", "jovyan", "runner", "localhost"}


def machine_marks(folder: Path) -> dict[str, re.Pattern[str]]:
    """Return what a stored notebook must not contain, as description → pattern. Notebooks run in this folder."""
    marks = {
        "an address of a running broker or server": re.compile(r"(?:127\.0\.0\.1|localhost|\[::1\]):\d{2,5}"),
    }
    folders = {
        "the cache folder": cache_dir(),
        "the folder of running clusters": runs_dir(),
        "the course's folder": folder.resolve(),
        "the home folder": Path.home(),
        "the folder for temporary files": Path(tempfile.gettempdir()),
    }
    for description, path in folders.items():
        if len(path.parts) > 1:
            # Don't match the start of a longer name, or the end of a longer path.
            marks[description] = re.compile(rf"(?<![\w/.-]){re.escape(str(path))}(?![\w-])")
    for description, name in {"the user's name": _user(), "the machine's name": platform.node()}.items():
        if len(name) > 2 and name not in COMMON_NAMES:
            marks[description] = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
    return marks


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user may have a number but no name
        return ""


def leaks(notebook: NotebookNode, marks: dict[str, re.Pattern[str]]) -> list[str]:
    """Return a sentence for every output that identifies this machine: the cell, what it shows, and the text itself."""
    sentences = []
    for cell in notebook.cells:
        matches: list[str] = []
        for text in _texts(cell):
            for description, pattern in marks.items():
                match = pattern.search(text)
                # Folders are nested: report the innermost.
                if match and not any(match[0] in longer for longer in matches):
                    matches.append(match[0])
                    sentences.append(f"In [{cell.execution_count}] prints {description}: {match[0]}")
    return sentences


def _texts(cell: NotebookNode) -> Iterator[str]:
    for output in cell.get("outputs", ()):
        if output.output_type == "stream":
            yield output.text
        elif output.output_type == "error":
            yield "\n".join([output.ename, output.evalue, *output.traceback])
        else:
            for kind, data in output.data.items():
                # Pixels aren't text, and their encoding may match anything.
                if not kind.startswith("image/") or kind == "image/svg+xml":
                    yield data if isinstance(data, str) else str(data)


def strip(notebook: NotebookNode) -> None:
    """Remove what differs from run to run without need, and what only a running kernel can show."""
    notebook.metadata.pop("widgets", None)
    notebook.metadata.get("language_info", {}).pop("version", None)
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            if len(data) > 1:  # a still picture, or at least a text, replaces it
                data.pop(LIVE_WIDGET, None)
                output.metadata.pop(LIVE_WIDGET, None)


def note_seconds(notebook: NotebookNode, seconds: float) -> None:
    """Note how long a notebook ran, rounded up to 5 s: from run to run it differs by less."""
    notebook.metadata.setdefault("kafkalab", {})["seconds"] = 5 * math.ceil(seconds / 5)


def store(notebook: NotebookNode, path: Path) -> None:
    """Write a notebook in one step, so that readers of the file see the complete old or new one."""
    write_atomically(path, nbformat.writes(notebook) + "\n")

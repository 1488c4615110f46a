"""Writes labs/ from solutions/: the same notebooks without the solutions and without outputs.

``python tools/make_labs.py`` writes the labs. ``python tools/make_labs.py --check`` only says what differs (exit 1).
nbgrader's own preprocessor leaves out what stands between ``### BEGIN SOLUTION`` and ``### END SOLUTION``. Cells with the tag
``instructor`` are left out, too.

A solution's notebook imports what the learner writes from a module beside it, where the tests find it, too. The first
line of such a module says so (``# Written in the lab NN_name.``). The lab doesn't get it: there the learner writes it in
a cell, and the notebook holds the blank version. Given modules belong to the installed package `kafkacourse`.

What a lab needs and how long it takes stands in its metadata only: its first cell says it here for the first time.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import nbformat
from nbgrader.preprocessors import ClearSolutions
from traitlets.config import Config

from kafkalab.course.versions import is_for_instructors

ROOT = Path(__file__).parent.parent


def lab_of(solution: Path) -> str:
    """The text of the lab that belongs to a solution."""
    notebook = nbformat.read(solution, as_version=4)
    config = Config()
    config.ClearSolutions.code_stub = {"python": "# YOUR CODE HERE"}
    config.ClearSolutions.enforce_metadata = False
    notebook, _ = ClearSolutions(config=config).preprocess(notebook, {})
    notebook.cells = [cell for cell in notebook.cells if not is_for_instructors(cell)]
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
            cell.metadata.pop("execution", None)
    notebook.metadata.pop("widgets", None)
    notebook.cells[0].source = with_needs(notebook.cells[0].source, notebook.metadata.kafkalab)
    return nbformat.writes(notebook) + "\n"


def with_needs(head: str, facts: nbformat.NotebookNode) -> str:
    """A lab's first cell, which says after "What you'll learn" what the lab needs and how long it takes."""
    needs = re.sub("[a-z]", lambda first: first[0].upper(), linked(facts.needs), count=1)
    says = f"**What you'll need.** {needs}. **Time:** about {facts.minutes} minutes"
    runs = f"; the cells run for {facts.seconds} seconds" if "seconds" in facts else ""
    opening, learn, rest = head.partition("**What you'll learn.**")
    paragraph, end, rest = rest.partition("\n\n")
    return f"{opening}{learn}{paragraph}\n\n{says}{runs}.{end}{rest}"


def linked(needs: str) -> str:
    """What a lab needs, with links to the chapters and labs that it names."""

    def chapter(match: re.Match[str]) -> str:
        [path] = (ROOT / "notebooks").glob(f"{match[1]}_*.ipynb")
        return f"[chapter {int(match[1])}](../../notebooks/{path.name})"

    def lab(match: re.Match[str]) -> str:
        [path] = (ROOT / "solutions").glob(f"*/{match[0]}.ipynb")
        return f"[{match[0]}](../{path.parent.name}/{path.name})"

    return re.sub(r"chapter (\d\d)", chapter, re.sub(r"\b\d\d_\w+", lab, needs))


def files(folder: Path, ending: str) -> list[Path]:
    """A folder's files with that ending, without the copies that JupyterLab keeps."""
    return sorted(path for path in folder.rglob(f"*.{ending}") if ".ipynb_checkpoints" not in path.parts)


def main(check: bool) -> int:
    """Write every lab, or name those that differ from what their solution gives; return how many differ."""
    solutions, labs = ROOT / "solutions", ROOT / "labs"
    wanted = {labs / path.relative_to(solutions): lab_of(path) for path in files(solutions, "ipynb")}
    leftovers = sorted(set(files(labs, "ipynb")) - wanted.keys())
    differ = [p for p, text in wanted.items() if not p.exists() or p.read_text() != text] + leftovers
    for path in differ:
        print(("differs: " if check else "written: ") + str(path.relative_to(ROOT)))
        if not check and path in wanted:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(wanted[path])
        elif not check:
            path.unlink()
    return len(differ)


if __name__ == "__main__":
    only_check = "--check" in sys.argv[1:]
    sys.exit(1 if main(only_check) and only_check else 0)

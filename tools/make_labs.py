"""Writes labs/ from solutions/: the same notebooks without the solutions and without outputs.

``python tools/make_labs.py`` writes, ``python tools/make_labs.py --check`` only says what differs (exit 1).
What stands between ``### BEGIN SOLUTION`` and ``### END SOLUTION`` is left out by nbgrader's own preprocessors.

The packages that labs work with (``solutions/stocks``) are copied as they are, but for the modules that a lab has the learner
write: their first line says so (``# Written in the lab NN_name.``).
"""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
from nbgrader.preprocessors import ClearSolutions
from traitlets.config import Config

ROOT = Path(__file__).parent.parent


def lab_of(solution: Path) -> str:
    """The text of the lab that belongs to a solution."""
    notebook = nbformat.read(solution, as_version=4)
    config = Config()
    config.ClearSolutions.code_stub = {"python": "# YOUR CODE HERE"}
    config.ClearSolutions.enforce_metadata = False
    notebook, _ = ClearSolutions(config=config).preprocess(notebook, {})
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
            cell.metadata.pop("execution", None)
    notebook.metadata.pop("widgets", None)
    return nbformat.writes(notebook) + "\n"


def is_written_in_a_lab(module: Path) -> bool:
    """Whether a module is the learner's work, and so is not to be found in labs/."""
    return module.read_text().startswith("# Written in the lab ")


def main(check: bool) -> int:
    """Write every lab, or name those that are not what their solution gives; the number of those is returned."""
    wanted = {ROOT / "labs" / s.relative_to(ROOT / "solutions"): lab_of(s) for s in sorted((ROOT / "solutions").rglob("*.ipynb"))
              if ".ipynb_checkpoints" not in s.parts}  # fmt: skip
    wanted |= {ROOT / "labs" / m.relative_to(ROOT / "solutions"): m.read_text() for m in sorted((ROOT / "solutions").rglob("*.py"))
               if not is_written_in_a_lab(m)}  # fmt: skip
    there = {p for ending in ("ipynb", "py") for p in (ROOT / "labs").rglob(f"*.{ending}") if ".ipynb_checkpoints" not in p.parts}
    differ = [p for p, text in wanted.items() if not p.exists() or p.read_text() != text] + sorted(there - wanted.keys())
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

"""What a lab's text promises: `hint` works in a new cell. The lab's first cells have imported it, before any cell is yours."""

from __future__ import annotations

import ast
import re
from itertools import takewhile
from pathlib import Path

import nbformat
import pytest
from IPython.core.inputtransformer2 import TransformerManager

from kafkalab import hint
from kafkalab.checks import find_check, labs

LABS = sorted((Path(__file__).parents[2] / "solutions").glob("*/*.ipynb"))


@pytest.mark.parametrize("path", LABS, ids=lambda path: path.stem)
def test_each_hint_that_a_lab_promises_is_one_of_its_own_and_is_imported(path: Path) -> None:
    cells = nbformat.read(path, as_version=4).cells
    promised = re.findall(r"`hint\((.+?)\)`", "\n".join(cell.source for cell in cells if cell.cell_type == "markdown"))
    assert promised, "the lab doesn't say how you get a hint"
    for id in map(ast.literal_eval, promised):
        assert find_check(id) in labs()[path.stem].checks
        hint(id)
    given = takewhile(lambda cell: "### BEGIN SOLUTION" not in cell.source, cells)
    code = "\n".join(cell.source for cell in given if cell.cell_type == "code")
    parts = ast.walk(ast.parse(TransformerManager().transform_cell(code)))
    imported = [name for part in parts if isinstance(part, ast.ImportFrom) and part.module == "kafkalab" for name in part.names]
    assert "hint" in {name.asname or name.name for name in imported}

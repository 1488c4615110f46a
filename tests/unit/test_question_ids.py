"""Each prediction of the course has a short id, so that a class knows it after its words have changed."""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted([*ROOT.glob("notebooks/*.ipynb"), *ROOT.glob("solutions/*/*.ipynb")])


def ids(notebook: Path) -> Iterator[str]:
    for cell in json.loads(notebook.read_text())["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "code" and "Predict(" in text:
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.Call) and ast.unparse(node.func) == "Predict":
                    yield next((ast.literal_eval(word.value) for word in node.keywords if word.arg == "id"), "")


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_ids_begin_with_the_chapter_or_the_lab(notebook: Path) -> None:
    place = notebook.stem[:2] if notebook.parent.name == "notebooks" else notebook.stem
    for id in ids(notebook):
        assert re.fullmatch(rf"{place}-\w+", id), f"Predict(…, id={id!r}) in {notebook.name}: give it {place}-something"


def test_no_two_questions_share_an_id() -> None:
    counts = Counter(id for notebook in NOTEBOOKS for id in ids(notebook))
    assert counts and not [id for id, count in counts.items() if count > 1]

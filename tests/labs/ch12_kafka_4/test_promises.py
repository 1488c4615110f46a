"""What the first cell of chapter 11's and 12's labs promises: `hint` works in a new cell, as soon as the next cell has run."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import nbformat
import pytest

SOLUTIONS = Path(__file__).parents[3] / "solutions"
LABS = sorted(path for chapter in ("11_spark_pipeline", "12_kafka_4") for path in (SOLUTIONS / chapter).glob("*.ipynb"))


@pytest.mark.parametrize("path", LABS, ids=lambda path: path.stem)
def test_the_hint_that_a_lab_promises_is_imported(path: Path) -> None:
    front, start = nbformat.read(path, as_version=4).cells[:2]
    [lab] = re.findall(r'`hint\("(\w+)"\)`', front.source)
    imports = [part for part in ast.parse(start.source).body if isinstance(part, ast.ImportFrom) and part.module == "kafkalab"]
    exec("\n".join(map(ast.unparse, imports)), names := {})
    assert names["hint"](lab) is None

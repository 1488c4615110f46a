"""Cells that may be run again clear away what their last run left, as the text and the checks of their lab promise.

These tests look at the cells without running them. `test_labs.py` runs those of chapters 0 to 2 again, at length.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import nbformat
import pytest
from IPython.core.inputtransformer2 import TransformerManager

CLEARS = {
    *("fresh", "fresh_topics", "begin_anew", "forget"),  # kafkalab's
    *("delete_acls", "delete_consumer_groups", "delete_records", "delete_subject", "delete_topics"),
}
"""Functions that clear away. One that a lab defines does so if it calls another that does."""

PROMISE = re.compile(
    r"begins with (an empty|a new|new) .*run it again|first deletes |begin again later|the next one empties|orrect.* run .*again"
)

MAKES = {
    **dict.fromkeys(("03", "04", "05"), r"(?<!def )\b(create_topics|fresh)\("),
    "06": r"\.produce\(",
    "07": r"create_acls\(|kafka-acls.sh .*--add",
    "09": r'"PUT", f?"/connectors/[^/]+/config"|write_drivers\(',
}
"""By chapter, what a cell can't do a second time unless it has cleared away before. From chapter 6 on, only in your cells."""

YOU_CLEAR = {"09_dead_letters", "09_transform"}
"""Labs whose text names the function that you call in your own part of the cell."""

ONCE = {
    *("07_kerberos", "07_rolling", "07_ssl", "07_users", "08_recovery", "08_three_clusters"),
    *("12_dynamic_quorum", "12_elr", "12_rebalance", "12_rolling_upgrade", "12_share_groups"),
}
"""Labs without such a cell: you start them over with a new cluster, or with the cell that sends."""

LABS = [
    path
    for path in sorted((Path(__file__).parents[2] / "solutions").glob("*/*.ipynb"))
    if path.stem[:2] >= "03" and path.stem not in ONCE
]


def parsed(source: str) -> ast.Module:
    return ast.parse(TransformerManager().transform_cell(source))


def called(tree: ast.AST) -> set[str]:
    """Names of the functions and methods that are called in a piece of code."""
    calls = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
    return {call.id if isinstance(call, ast.Name) else getattr(call, "attr", "") for call in calls}


def clearing(cells: Iterable[nbformat.NotebookNode]) -> set[str]:
    """Names of the functions that clear away in this notebook."""
    nodes = [node for cell in cells if cell.cell_type == "code" for node in ast.walk(parsed(cell.source))]
    defined = {node.name: called(node) for node in nodes if isinstance(node, ast.FunctionDef)}
    found = CLEARS - defined.keys()
    while more := {name for name, calls in defined.items() if calls & found} - found:
        found |= more
    return found


def made_by(stem: str, cell: nbformat.NotebookNode) -> re.Match[str] | None:
    """Where the cell does what it can't do a second time, or None."""
    chapter, is_yours = stem[:2], "### BEGIN SOLUTION" in cell.source
    return re.search(MAKES[chapter], cell.source) if chapter in MAKES and (is_yours or chapter < "06") else None


def may_run_again(stem: str, cells: list[nbformat.NotebookNode]) -> Iterator[tuple[str, nbformat.NotebookNode]]:
    """The cells that their lab lets you run again, each with the last text above it."""
    front, text = cells[0], ""
    from_section_1 = stem.startswith("11_") or "from section 1 on" in front.source
    for above, cell in zip(cells, cells[1:]):
        if cell.cell_type == "markdown":
            text = cell.source
        elif above.cell_type == "markdown" and above is not front and PROMISE.search(text):
            yield text, cell
        elif made_by(stem, cell) or from_section_1 and above.source.startswith("## 1. "):
            yield text, cell


@pytest.mark.parametrize("path", LABS, ids=lambda path: path.stem)
def test_a_cell_that_may_run_again_clears_away_first(path: Path) -> None:
    cells = nbformat.read(path, as_version=4).cells
    known = "|".join(clearing(cells))
    found = list(may_run_again(path.stem, cells))
    assert found, "no cell is known to run again"
    for text, cell in found:
        made = made_by(path.stem, cell)
        before = cell.source[: made.end()] if made else cell.source
        given = re.sub(r"### BEGIN SOLUTION.*?(### END SOLUTION|\Z)", "", before, flags=re.DOTALL)
        told = " ".join(re.findall(r"`[^`]+`", text)) if path.stem in YOU_CLEAR else ""
        assert re.search(rf"(?<!def )\b({known})\(", given) or re.search(rf"\b({known})\b", told), cell.id

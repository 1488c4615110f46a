"""nbval runs cells without a history, where IPython doesn't see the semicolon that hides a cell's last value."""

from __future__ import annotations

from pathlib import Path

import pytest
from IPython.core.displayhook import DisplayHook

from notebook_support import NOTEBOOKS, code_cells

ROOT = Path(__file__).parents[2]


def hides_its_value(source: str) -> bool:
    return not source.lstrip().startswith("%%") and bool(DisplayHook.semicolon_at_end_of_expression(source))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_cell_hides_its_last_value_by_a_semicolon(path: Path) -> None:
    assert not [cell["id"] for cell in code_cells(path) if hides_its_value("".join(cell["source"]))]


def test_a_semicolon_at_the_end_is_seen() -> None:
    assert hides_its_value("1 + 1;  # END")
    assert not hides_its_value("a = 1; b = 2")

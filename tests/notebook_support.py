"""The course's notebooks as files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from kafkalab.course.sections import sections

__all__ = ["CHAPTERS", "NOTEBOOKS", "cells_of", "code_cells", "without_sections"]

_ROOT = Path(__file__).parents[1]

NOTEBOOKS = sorted([*(_ROOT / "notebooks").glob("*.ipynb"), *(_ROOT / "solutions").glob("*/*.ipynb")])
"""Every chapter and every solution. The labs are made of the solutions."""

CHAPTERS = [path for path in NOTEBOOKS if path.parent.name == "notebooks"]
"""Every chapter."""


def cells_of(path: Path, kind: str) -> list[dict[str, Any]]:
    """Return a notebook's cells of a kind: ``code`` or ``markdown``."""
    return [cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == kind]


def code_cells(path: Path) -> list[dict[str, Any]]:
    """Return a notebook's cells of code."""
    return cells_of(path, "code")


def without_sections(chapter: Path, skipped: set[int]) -> list[dict[str, Any]]:
    """Return a chapter's cells without those of some sections, by their numbers."""
    left_out = {number for section in sections(chapter) if section.number in skipped for number in section.cells}
    cells = json.loads(chapter.read_text(encoding="utf-8"))["cells"]
    return [cell for number, cell in enumerate(cells) if number not in left_out]

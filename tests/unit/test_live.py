"""What all live displays have in common."""

from __future__ import annotations

import ast
from pathlib import Path

import kafkalab
from kafkalab.widgets import live as live_module


def test_html_as_wide_as_its_cell_is_made_in_one_place() -> None:
    """Its margin matters: with the usual one the right edge is cut off by four pixels."""
    assert (live_module.wide_html().layout.width, live_module.wide_html().layout.margin) == ("100%", "2px 0")
    source = Path(kafkalab.__file__).parents[1]
    calls = [
        (path.name, node)
        for path in source.rglob("*.py")
        if path != Path(live_module.__file__) and "ipywidgets.HTML(" in path.read_text()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "ipywidgets.HTML"
    ]
    layouts = [(name, ast.unparse(k.value)) for name, call in calls for k in call.keywords if k.arg == "layout"]
    assert layouts and [(name, layout) for name, layout in layouts if "width='auto'" not in layout] == []

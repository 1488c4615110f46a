"""The arrangement of windows with which a Binder session opens fits the notebooks."""

from __future__ import annotations

import json
import os
from pathlib import Path

import nbformat

ROOT = Path(__file__).parents[2]
WORKSPACE = json.loads((ROOT / "binder/workspace.json").read_text())["data"]


def tabs() -> list[str]:
    """The names of all tabs of the main area."""
    areas = WORKSPACE["layout-restorer:data"]["main"]["dock"]["children"]
    return [widget for area in areas for widget in area["widgets"]]


def test_every_tab_can_be_restored() -> None:
    for tab in tabs():
        restored = WORKSPACE[tab]["data"]
        kind, path, *index = tab.split(":")
        assert restored["path"] == path
        assert [str(restored["index"])] == index if kind == "cloned-outputs" else not index
        assert (ROOT / path).exists()


def test_the_live_views_show_cluster_maps() -> None:
    """A cell was added above the map? Then its number in binder/workspace.json has changed."""
    views = [tab.split(":")[1:] for tab in tabs() if tab.startswith("cloned-outputs:")]
    assert views
    for path, index in views:
        cell = nbformat.read(ROOT / path, as_version=4).cells[int(index)]
        assert cell.cell_type == "code"
        assert "ClusterMap(" in cell.source, f"cell {index} of {path} shows no map: {cell.source!r}"


def test_the_scripts_can_be_run() -> None:
    assert all(os.access(ROOT / "binder" / name, os.X_OK) for name in ("postBuild", "start"))

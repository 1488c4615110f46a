"""A Binder session opens the first chapter of a workspace."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from kafkalab.course import find_course

ROOT = Path(__file__).parents[2]
FIRST = find_course().content.first
WORKSPACE = json.loads((ROOT / "binder/workspace.json").read_text())["data"]


def test_the_first_chapter_opens() -> None:
    tab = f"notebook:{FIRST}"
    main = WORKSPACE["layout-restorer:data"]["main"]
    assert main["current"] == tab
    assert main["dock"]["widgets"] == [tab]
    assert WORKSPACE[tab]["data"]["path"] == FIRST


def test_start_makes_the_workspace_and_works_in_it(tmp_path: Path) -> None:
    """Its tools are stand-ins that fetch nothing and know no JupyterLab."""
    programs = tmp_path / "bin"
    programs.mkdir()
    python = f'case "$2" in *tools_dir*) echo /tools ;; *) exec "{sys.executable}" "$@" ;; esac'
    for name, does in {"python": python, "jupyter": "exit 1"}.items():
        (programs / name).write_text(f"#!/bin/sh\n{does}\n")
        (programs / name).chmod(0o755)
    folder = tmp_path / "learner"
    show = 'pwd; echo "$KAFKALAB_BACKEND $KAFKALAB_WORKSPACE"; echo "$PATH" | cut -d : -f 1; echo "$JUPYTER_PATH $JUPYTER_CONFIG_PATH"'
    paths = {"PATH": f"{programs}:{os.environ['PATH']}", "JUPYTER_PATH": "/own/data", "JUPYTER_CONFIG_PATH": "/own/config"}
    started = subprocess.run(
        [ROOT / "binder/start", "sh", "-c", show],
        env={**os.environ, **paths, "KAFKALAB_WORKSPACE": str(folder)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    jupyter = ROOT / "src/kafkalab/cli/jupyter"
    found = [str(folder), f"local {folder}", "/tools", f"{jupyter}:/own/data {jupyter}:/own/config"]
    assert started.stdout.splitlines() == found
    assert "won't open by itself" in started.stderr
    assert (folder / FIRST).exists()


def test_the_scripts_can_be_run() -> None:
    assert all(os.access(ROOT / "binder" / name, os.X_OK) for name in ("postBuild", "start"))

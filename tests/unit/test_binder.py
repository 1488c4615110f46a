"""A Binder session opens a workspace, with what a learner must know about the session and the first chapter."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from jupyter_server.services.config.manager import ConfigManager

from kafkalab.cli.hosted import NOTICE, NOTICE_FILE
from kafkalab.cli.own_jupyter import SETTINGS
from kafkalab.course import find_course
from kafkalab.course.workspace import HIDDEN
from kafkalab.waiting import wait_until
from support import PATIENCE

ROOT = Path(__file__).parents[2]
FIRST = next(name for name in find_course().content.files() if name.endswith(".ipynb"))
WORKSPACE = json.loads((ROOT / "binder/workspace.json").read_text())["data"]


def test_the_notice_opens_and_the_first_chapter_behind_it_and_labs_are_in_sight() -> None:
    notice, chapter = f"markdownviewer-widget:{NOTICE_FILE}", f"notebook:{FIRST}"
    layout = WORKSPACE["layout-restorer:data"]
    assert layout["main"]["current"] == notice
    assert layout["main"]["dock"]["widgets"] == [notice, chapter]
    assert WORKSPACE[notice]["data"]["path"] == NOTICE_FILE
    assert WORKSPACE[chapter]["data"]["path"] == FIRST
    assert (layout["left"]["visible"], layout["left"]["current"]) == (True, "filebrowser")
    assert WORKSPACE["file-browser-filebrowser:cwd"] == {"path": ""}


def test_a_kernel_ends_with_its_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the notice says. Elsewhere it goes on, as JupyterLab's users know it."""
    tracker = "@jupyterlab/notebook-extension:tracker"
    monkeypatch.setenv("JUPYTER_CONFIG_PATH", str(SETTINGS))
    assert "kernelShutdown" not in overrides()[tracker]
    monkeypatch.setenv("JUPYTER_CONFIG_PATH", f"{ROOT / 'binder/jupyter'}{os.pathsep}{SETTINGS}")
    assert overrides()[tracker] == {"kernelShutdown": True, "codeCellConfig": {"lineWrap": True}}


def overrides() -> dict[str, Any]:
    """The course's defaults for JupyterLab's settings, as its server finds them."""
    found: dict[str, Any] = ConfigManager(config_dir_name="labconfig").get("default_setting_overrides")
    return found


def test_work_is_taken_along_and_taken_up_again_as_the_notice_says(tmp_path: Path) -> None:
    take, take_up = re.findall(r"^tar .+$", NOTICE, re.MULTILINE)
    first, second = (tmp_path / name for name in ("first", "second"))
    for session in (first, second):
        environment = {**os.environ, "KAFKALAB_WORKSPACE": str(session)}
        made = subprocess.run(
            [sys.executable, "-m", "kafkalab.cli.hosted"], env=environment, capture_output=True, text=True, check=True
        )
        assert made.stdout == f"{session}\n"
        assert (session / NOTICE_FILE).read_text() == NOTICE
    progress = first / HIDDEN / "progress"  # where binder/start has it
    progress.mkdir()
    (progress / "lab").write_text("passed")
    (first / FIRST).write_text("my work")
    subprocess.run(take, shell=True, cwd=first, check=True)
    (first / "work.tgz").replace(second / "work.tgz")
    subprocess.run(take_up, shell=True, cwd=second, check=True)
    assert (second / FIRST).read_text() == "my work"
    assert (second / HIDDEN / "progress/lab").read_text() == "passed"


def test_start_makes_the_workspace_and_works_in_it(tmp_path: Path) -> None:
    """Its tools are stand-ins that fetch nothing and know no JupyterLab."""
    programs = tmp_path / "bin"
    programs.mkdir()
    standby = tmp_path / "standby"
    python = f"""case "$2" in
      *tools_dir*) echo /tools ;;
      */standby.py) echo "$3" >"{standby}"; cat; echo over >>"{standby}" ;;
      *) exec "{sys.executable}" "$@" ;;
    esac"""
    for name, does in {"python": python, "jupyter": "exit 1"}.items():
        (programs / name).write_text(f"#!/bin/sh\n{does}\n")
        (programs / name).chmod(0o755)
    folder = tmp_path / "learner"
    show = f"""pwd; echo "$KAFKALAB_BACKEND $KAFKALAB_WORKSPACE $KAFKALAB_PROGRESS"; echo "$PATH" | cut -d : -f 1
      echo "$JUPYTER_PATH $JUPYTER_CONFIG_PATH"; until [ -s "{standby}" ]; do :; done; echo $$; cat "{standby}" """
    paths = {"PATH": f"{programs}:{os.environ['PATH']}", "JUPYTER_PATH": "/own/data", "JUPYTER_CONFIG_PATH": "/own/config"}
    started = subprocess.run(
        [ROOT / "binder/start", "sh", "-c", show],
        env={**os.environ, **paths, "KAFKALAB_WORKSPACE": str(folder)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    jupyter = ROOT / "src/kafkalab/cli/jupyter"
    config = f"{ROOT}/binder/jupyter:{jupyter}:/own/config"
    found = [str(folder), f"local {folder} {folder}/.kafkalab/progress", "/tools", f"{jupyter}:/own/data {config}"]
    *shown, server, standby_of = started.stdout.splitlines()
    assert shown == found
    assert standby_of == server  # the cluster is for this server, and ends when the server does
    wait_until(lambda: standby.read_text() == f"{server}\nover\n", PATIENCE, "the standby program to end")
    assert "won't open by itself" in started.stderr
    assert (folder / FIRST).exists()


def test_the_scripts_can_be_run() -> None:
    assert all(os.access(ROOT / "binder" / name, os.X_OK) for name in ("postBuild", "start"))

"""The container for GitHub Codespaces and VS Code: what it names is there."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from jupyter_server.serverapp import ServerApp

from kafkalab.cli.own_jupyter import SETTINGS, prefer_course

ROOT = Path(__file__).parents[2]
CONTAINER: dict[str, Any] = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text())


def test_its_python_is_one_that_the_course_runs_on() -> None:
    oldest, beyond = map(
        int, re.findall(r"3\.(\d+)", tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"])
    )
    image, _, version = CONTAINER["image"].rpartition(":3.")
    assert image.endswith("/python") and oldest <= int(version) < beyond


def test_it_is_set_up_by_a_target_that_there_is() -> None:
    make, target = CONTAINER["postCreateCommand"].split()
    assert make == "make"
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert ".venv" in (ROOT / "tools/setup.sh").read_text()


def test_its_folders_are_those_of_the_setup_and_of_this_repository() -> None:
    folder = "${containerWorkspaceFolder}/"
    assert CONTAINER["remoteEnv"]["PATH"].endswith(f":{folder}.venv/bin")
    assert CONTAINER["customizations"]["vscode"]["settings"]["python.defaultInterpreterPath"] == f"{folder}.venv/bin/python"
    settings = CONTAINER["remoteEnv"]["JUPYTER_CONFIG_PATH"].removeprefix(folder)
    assert (ROOT / settings / "jupyter_server_config.json").exists()


def test_a_browser_reaches_jupyterlab_through_the_address_of_a_codespace(monkeypatch: pytest.MonkeyPatch) -> None:
    """The course's own settings hold as well."""
    monkeypatch.setenv("JUPYTER_CONFIG_PATH", str(ROOT / ".devcontainer/jupyter"))
    monkeypatch.setenv("JUPYTER_PATH", "")
    prefer_course()
    server = ServerApp()
    server.load_config_file()
    origin = re.compile(server.allow_origin_pat)
    assert origin.fullmatch("https://fluffy-space-potato-4x5-8888.app.github.dev")
    assert not origin.fullmatch("https://elsewhere.example/.app.github.dev")
    own = json.loads((SETTINGS / "jupyter_server_config.json").read_text())["ServerApp"]
    assert server.terminado_settings == own["terminado_settings"]

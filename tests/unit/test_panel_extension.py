"""The extensions of JupyterLab, for the cluster panel and for the first page: JupyterLab finds them, the browser can read them."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from jupyter_core.paths import jupyter_path
from jupyterlab_server.config import get_federated_extensions

from kafkalab.cli.own_jupyter import SETTINGS

EXTENSIONS = ("kafkalab-home", "kafkalab-panel")
LARGEST = 60_000  # bytes: what a person can read


@pytest.mark.parametrize("name", EXTENSIONS)
def test_jupyterlab_finds_the_extension_where_the_course_points_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUPYTER_PATH", os.fspath(SETTINGS))
    found = get_federated_extensions(jupyter_path("labextensions"))[name]
    script = Path(found["ext_path"]) / found["jupyterlab"]["_build"]["load"]
    assert f"window._JUPYTERLAB['{name}'] =" in script.read_text()
    assert script.stat().st_size < LARGEST


@pytest.mark.parametrize("name", EXTENSIONS)
def test_the_script_needs_no_build(name: str) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no Node")
    (script,) = SETTINGS.glob(f"labextensions/{name}/static/*.js")
    checked = subprocess.run([node, "--check", script], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stderr

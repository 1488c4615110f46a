"""The course's extensions of JupyterLab: JupyterLab finds them, and the browser can read them."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from jupyter_core.paths import jupyter_path
from jupyterlab_server.config import get_federated_extensions

from kafkalab.cli.own_jupyter import SETTINGS

EXTENSIONS = ("kafkalab-home", "kafkalab-motion", "kafkalab-panel", "kafkalab-projector")
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


def test_notebook_7_gets_no_panel_because_its_window_has_no_room_beside_the_notebook() -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no Node")
    script = SETTINGS / "labextensions/kafkalab-panel/static/panel.js"
    activate = """
      global.window = {};
      require(process.argv[1]);
      const extension = window._JUPYTERLAB['kafkalab-panel'];
      const module = new Proxy({}, { get: () => 'something' });
      extension.init(new Proxy({}, { get: () => ({ version: { get: async () => () => module } }) }));
      extension.get().then(plugin => plugin().default.activate({ shell: {} })); // there is no document to change
    """
    ran = subprocess.run([node, "-e", activate, script], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr

"""A session as Binder starts it, seen in a browser: what a learner must know is in front, and the first chapter is open."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from desk_support import wait_until_ready
from kafkalab.waiting import wait_until
from support import PATIENCE, SAYS_WHERE_IT_STANDS, end

pytestmark = [pytest.mark.browser, pytest.mark.cluster, pytest.mark.timeout(400)]


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """JupyterLab's address in a session that was just started."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("BINDER_", "KAFKALAB_CONTENT"))}
    environment |= {
        **SAYS_WHERE_IT_STANDS,
        "JUPYTERLAB_SETTINGS_DIR": str(tmp_path / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(tmp_path / "layouts"),
        "JUPYTER_RUNTIME_DIR": str(tmp_path / "runtime"),
        "KAFKALAB_WORKSPACE": str(tmp_path / "workspace"),
    }
    command = [sys.executable, "-m", "kafkalab.cli.hosted", "binder", "jupyter-lab", "--no-browser", "--ip=127.0.0.1"]
    command += ["--port=0"]  # any: between the look at a port and listening, another test's server may take it
    command += ["--allow-root"] if os.geteuid() == 0 else []
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    log = tmp_path / "log"
    with log.open("w") as output:
        server = subprocess.Popen(
            command, env=environment | {"PATH": path}, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
        )
    note = tmp_path / f"runtime/jpserver-{server.pid}.json"

    def listens() -> dict[str, str] | None:
        return json.loads(note.read_text()) if note.exists() else None

    def has_ended() -> None:
        assert server.poll() is None, log.read_text()

    try:
        found = wait_until(
            listens, PATIENCE, "JupyterLab to listen", unless=has_ended, ignore=(ValueError,), last_seen=log.read_text
        )
        yield f"{found['url']}lab?token={found['token']}"
    finally:
        end(server, log)


def test_the_notice_is_in_front_and_the_first_chapter_is_open(browser: Browser, address: str) -> None:
    page = browser.new_page()
    page.goto(address)
    expect(page.get_by_role("heading", name="Your session on Binder")).to_be_visible()
    expect(page.get_by_text("What's in the session is lost then.")).to_be_visible()
    page.locator(".lm-DockPanel-tabBar .lm-TabBar-tab", has_text="00_start_here.ipynb").click()
    expect(page.locator(".jp-NotebookPanel:visible h1").first).to_be_visible()
    wait_until_ready(page)  # a server that is told to end waits for a kernel that starts
    page.close()

"""The course as a learner sees it: JupyterLab in a browser, the map, and its Kill button.

Writes the picture that the README shows: ``docs/cluster-map.png`` (when ``KAFKALAB_WRITE_PICTURE`` is set), so the
picture is of the thing itself.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from playwright.sync_api import Error, Locator, Page, expect, sync_playwright

from kafkalab import wait_until

ROOT = Path(__file__).parents[2]
CHAPTER = "notebooks/02_cluster_failover.ipynb"
# Quiet: no sandbox (the tests may run as root), no calls home.
CHROMIUM_OPTIONS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()
SETTINGS = {
    "@jupyterlab/notebook-extension/tracker.jupyterlab-settings": '{"windowingMode": "none"}',  # all cells stay in the page
    "@jupyterlab/apputils-extension/notification.jupyterlab-settings": '{"fetchNews": "false", "checkForUpdates": false}',
}


def code_cells(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


@pytest.fixture
def course(tmp_path: Path) -> Iterator[str]:
    """JupyterLab on chapter 02 of a copy of the notebooks, without outputs, as ``kafkalab lab 02`` starts it; yields its address."""
    shutil.copytree(ROOT / "notebooks", tmp_path / "notebooks", ignore=shutil.ignore_patterns(".*"))
    notebook = nbformat.read(tmp_path / CHAPTER, nbformat.NO_CONVERT)
    for cell in code_cells(notebook):
        cell.outputs, cell.execution_count = [], None  # a number in the prompt tells that the cell was run now
    nbformat.write(notebook, tmp_path / CHAPTER)
    for name, text in SETTINGS.items():
        path = tmp_path / "settings" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    environment = {
        **os.environ,
        "JUPYTERLAB_SETTINGS_DIR": str(tmp_path / "settings"),
        "JUPYTER_ALLOW_ROOT": "1",
        "KAFKALAB_BACKEND": "local",
    }
    log = tmp_path / "lab.log"
    with log.open("w") as output:
        lab = subprocess.Popen(
            [str(Path(sys.executable).with_name("kafkalab")), "lab", "--no-browser", "02"],
            cwd=tmp_path, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
    try:
        found = wait_until(lambda: re.search(r"http://127\.0\.0\.1:\d+/\S+", log.read_text()), 60, "JupyterLab's address", last_seen=log.read_text)
        yield found[0]
    finally:
        lab.terminate()  # not SIGINT: what a shell starts in the background ignores that
        lab.wait(60)


@pytest.fixture
def page() -> Iterator[Page]:
    executable = os.environ.get("KAFKALAB_CHROMIUM") or shutil.which("chromium")
    if not executable:
        pytest.skip("there is no Chromium")
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=executable, args=CHROMIUM_OPTIONS)
        yield browser.new_page(viewport={"width": 1280, "height": 1000})
        browser.close()


def opened(page: Page, address: str) -> bool:
    try:
        page.goto(address)
    except Error as error:
        if "ERR_NETWORK_CHANGED" in error.message:  # Chromium's word for an interface that came or went: Docker's, say
            return False
        raise
    return True


def run_cell(page: Page, cells: Locator, number: int) -> Locator:
    """Run a code cell and wait until it has run."""
    cell = cells.nth(number)
    cell.scroll_into_view_if_needed()
    cell.locator(".cm-content").first.click()
    page.keyboard.press("Shift+Enter")
    expect(cell.locator(".jp-InputPrompt")).to_have_text(re.compile(r"\[\d+\]:"), timeout=90_000)
    return cell


@pytest.mark.browser
@pytest.mark.timeout(400)
def test_kill_a_broker_with_the_button(course: str, page: Page) -> None:
    sources = [cell.source for cell in code_cells(nbformat.read(ROOT / CHAPTER, nbformat.NO_CONVERT))]
    wait_until(lambda: opened(page, course), 30, "the page to load")
    cells = page.locator(".jp-Notebook .jp-CodeCell")
    expect(cells).to_have_count(len(sources), timeout=60_000)
    # Not the indicator beside the kernel's name, which says so before there is a kernel: JupyterLab would start a second one for
    # a cell that is run then, or ask which, and forget the cell.
    expect(page.locator("#jp-main-statusbar")).to_contain_text("| Idle", timeout=90_000)

    map_cell = next(number for number, source in enumerate(sources) if "cluster_map = ClusterMap" in source)
    for number in range(map_cell + 1):
        cell = run_cell(page, cells, number)
        expect(cell.locator(".jp-OutputArea-output[data-mime-type='application/vnd.jupyter.stderr']")).to_have_count(0)
    words = cell.locator(".jp-OutputArea svg text")
    for broker in range(3):
        expect(words.filter(has_text=f"broker {broker}").first).to_be_visible(timeout=20_000)
    expect(words.filter(has_text=re.compile(r"^up$"))).to_have_count(3, timeout=20_000)

    cell.get_by_role("button", name="Kill").first.click()
    expect(words.filter(has_text=re.compile(r"^dead$"))).to_have_count(1, timeout=10_000)
    expect(cell.get_by_text(re.compile(r"now led by|leader 0 →")).first).to_be_visible(timeout=30_000)
    if os.environ.get("KAFKALAB_WRITE_PICTURE"):
        (ROOT / "docs").mkdir(exist_ok=True)
        cell.screenshot(path=str(ROOT / "docs/cluster-map.png"))

    cell.get_by_role("button", name="Restart").first.click()
    expect(words.filter(has_text=re.compile(r"^dead$"))).to_have_count(0, timeout=60_000)

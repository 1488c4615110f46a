"""The course in a browser, as a learner works with it: JupyterLab on a workspace, its cells and the cluster's panel."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
from playwright.sync_api import Error, Locator, Page, Request, expect

from kafkalab import wait_until
from support import PATIENCE, SAYS_WHERE_IT_STANDS, end, on_a_port

ROOT = Path(__file__).parents[1]
# Quiet: no sandbox (the tests may run as root), no calls home.
CHROMIUM_OPTIONS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SETTINGS = {
    "@jupyterlab/notebook-extension/tracker.jupyterlab-settings": '{"windowingMode": "none"}',  # all cells stay in the page
    # Whether a notebook is saved when it's closed must not depend on how long a test took until then.
    "@jupyterlab/docmanager-extension/plugin.jupyterlab-settings": '{"autosave": false}',
    "@jupyterlab/apputils-extension/notification.jupyterlab-settings": '{"fetchNews": "false", "checkForUpdates": false}',
    "@jupyterlab/apputils-extension/themes.jupyterlab-settings": '{"adaptive-theme": true}',
}


@dataclass
class Troubles:
    """What went wrong in a page, unnoticed.

    Chromium cuts requests off when a network interface comes or goes, Docker's say, also those to this machine itself.
    """

    errors: list[Error] = field(default_factory=list)
    cut_off: list[str] = field(default_factory=list)  # addresses

    def note(self, request: Request) -> None:
        """Keep a request that has failed, if it was cut off."""
        if "ERR_NETWORK_CHANGED" in (request.failure or ""):
            self.cut_off.append(request.url)

    def of_the_page(self) -> list[Error]:
        """The errors, without those that only say that a request was cut off: a test ends with none."""
        return [error for error in self.errors if not (self.cut_off and is_of_a_request(error))]


def is_of_a_request(error: Error) -> bool:
    """Whether a page tells with it that a request failed, or one for a module of its own."""
    return "Failed to fetch" in error.message or error.name == "ChunkLoadError"


@dataclass(frozen=True)
class Course:
    """A JupyterLab on a learner's workspace."""

    server: str
    token: str
    workspace: Path

    @property
    def login(self) -> dict[str, str]:
        return {"Authorization": f"token {self.token}"}

    def address(self, notebook: str, layout: str) -> str:
        """Where a notebook opens in an arrangement of windows of its own."""
        return f"{self.server}/lab/workspaces/{layout}/tree/{notebook}?token={self.token}"


@contextmanager
def running_course(folder: Path, **environment: str) -> Iterator[Course]:
    """JupyterLab as ``kafkalab lab`` starts it, on a workspace in a folder of its own, with its own settings and progress."""
    for name, text in SETTINGS.items():
        path = folder / "settings" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    environment = {
        **os.environ,
        **SAYS_WHERE_IT_STANDS,
        "JUPYTERLAB_SETTINGS_DIR": str(folder / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(folder / "layouts"),
        "JUPYTER_ALLOW_ROOT": "1",
        "KAFKALAB_BACKEND": "local",
        "KAFKALAB_PROGRESS": str(folder / "progress"),
        **environment,
    }
    log = folder / "lab.log"
    kafkalab = str(Path(sys.executable).with_name("kafkalab"))
    command = [kafkalab, "lab", "--no-browser", *on_a_port(), "--workspace", str(folder / "work"), "02"]
    with log.open("w") as output:
        lab = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        address = r"(http://127\.0\.0\.1:\d+)/\S+token=(\w+)"
        found = wait_until(
            lambda: re.search(address, log.read_text()), PATIENCE, "JupyterLab's address", last_seen=log.read_text
        )
        yield Course(found[1], found[2], folder / "work")
    finally:
        end(lab, log)  # not by SIGINT: what a shell starts in the background ignores that
    assert "without encryption" not in log.read_text()


def kernels(page: Page, course: Course) -> list[str]:
    return [kernel["id"] for kernel in page.request.get(f"{course.server}/api/kernels", headers=course.login).json()]


def end_kernels(page: Page, course: Course) -> None:
    for kernel in kernels(page, course):
        assert page.request.delete(f"{course.server}/api/kernels/{kernel}", headers=course.login).ok


def open_notebook(page: Page, troubles: Troubles, address: str) -> None:
    """Open a notebook and wait until its kernel is ready."""
    load(page, troubles, lambda: page.goto(address))


def load(page: Page, troubles: Troubles, begin: Callable[[], object], ready: Callable[[Page], bool] | None = None) -> None:
    """Begin to load a page, and wait until it's ready: without `ready`, until the kernel of its notebook is.

    A page lacks a style sheet or a module when its request was cut off: it's loaded anew.
    """
    assert not troubles.of_the_page()

    def loaded() -> bool:
        leaves = page.url != "about:blank"
        troubles.errors.clear()
        troubles.cut_off.clear()
        try:
            begin()
        except Error as error:
            if "ERR_NETWORK_CHANGED" not in error.message:
                raise
            return False
        is_loaded = ready or is_ready
        wait_until(lambda: troubles.cut_off or is_loaded(page), PATIENCE, "the page", last_seen=lambda: status(page))
        if leaves:  # requests were under way
            troubles.errors[:] = [error for error in troubles.errors if not is_of_a_request(error)]
        return not troubles.cut_off

    wait_until(loaded, 2 * PATIENCE, "the page to load", last_seen=lambda: troubles.cut_off)


def status(page: Page) -> str:
    """What stands in JupyterLab's status bar."""
    return page.locator("#jp-main-statusbar").text_content() or ""


def is_ready(page: Page) -> bool:
    # Not the indicator beside the kernel's name, which says so before there is a kernel: JupyterLab would start a second
    # one for a cell that is run then, or ask which, and forget the cell.
    return "| Idle" in status(page)


def wait_until_ready(page: Page) -> None:
    wait_until(lambda: is_ready(page), PATIENCE, "the kernel", last_seen=lambda: status(page))


def run_cell(page: Page, number: int, *, fails: bool = False) -> Locator:
    """Run a code cell of the notebook that is shown and wait until it has run, or failed."""
    cell = page.locator(".jp-NotebookPanel:not(.lm-mod-hidden) .jp-CodeCell").nth(number)
    cell.scroll_into_view_if_needed()
    if (folded := cell.locator(".jp-InputPlaceholder")).count():  # the source of an explanation
        folded.click()
    cell.locator(".cm-content").first.click()
    page.keyboard.press("Shift+Enter")
    expect(cell.locator(".jp-InputPrompt")).to_have_text(re.compile(r"\[\d+\]:"))
    expect(cell.locator(".jp-OutputArea-output[data-mime-type='application/vnd.jupyter.stderr']")).to_have_count(int(fails))
    return cell


def panel_of(page: Page, name: str) -> Locator:
    return page.get_by_role("tabpanel", name=f"Cluster · {name}", include_hidden=True)


def tab(page: Page, label: str) -> Locator:
    return page.locator(".lm-DockPanel-tabBar .lm-TabBar-tab").filter(has_text=label)


def width(panel: Locator) -> float:
    box = panel.bounding_box()
    return box["width"] if box else 0


def smallest_text(panel: Locator) -> float:
    """Height of the smallest letters of maps and pictures, in pixels of the screen."""
    height: float = panel.evaluate(
        """panel => {
            const drawn = [...panel.querySelectorAll('svg text')].map(text => {
                const svg = text.ownerSVGElement;
                const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
                return parseFloat(text.getAttribute('font-size')) * scale;
            });
            const hasText = element => [...element.childNodes].some(child => child.nodeName === '#text' && child.data.trim());
            const written = [...panel.querySelectorAll('.kafkalab-map :not(style)')]
                .filter(hasText)
                .map(element => parseFloat(getComputedStyle(element).fontSize));
            return Math.min(...drawn, ...written);
        }"""
    )
    return height


def heads(panel: Locator, state: str = "") -> Locator:
    """The heads of the brokers' columns, of those in a state."""
    return panel.locator(f".kafkalab-map .broker.is-{state}" if state else ".kafkalab-map .broker")


def code_cells(notebook: str) -> list[str]:
    return [cell.source for cell in nbformat.read(ROOT / notebook, nbformat.NO_CONVERT).cells if cell.cell_type == "code"]


def text_width(page: Page) -> float:
    """The width of the column of text, in pixels."""
    return width(page.locator(".jp-NotebookPanel:not(.lm-mod-hidden) .jp-RenderedMarkdown:visible").first)


def columns_of_code(page: Page) -> int:
    """How many characters a line of code has room for."""
    line = page.locator(".jp-NotebookPanel:not(.lm-mod-hidden) .cm-line:visible").filter(has_text="import").first
    return int(
        line.evaluate("""line => {
            const style = getComputedStyle(line);
            const text = document.createRange();
            text.selectNodeContents(line);
            const room = line.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
            return Math.floor(room / text.getBoundingClientRect().width * line.textContent.length);
        }""")
    )


def show_files(page: Page) -> None:
    """Unfold the file list, which is folded in a layout that nobody has arranged yet."""
    page.get_by_role("tab", name="File Browser").click()


def is_changed(page: Page, label: str) -> bool:
    return "jp-mod-dirty" in (tab(page, label).get_attribute("class") or "")

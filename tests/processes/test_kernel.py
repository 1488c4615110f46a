"""A kernel with live widgets: no cell is lost, and a click doesn't wait for the running cell."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from queue import Empty
from typing import Any

import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager

from kafkalab.kernel_sockets import kernel_address
from support import PATIENCE

CELLS = 10_000

LIVE = """
from IPython.display import display
from kafkalab import Cluster, ClusterMap, Quiz
from kafkalab.widgets.panel import model_id

panel = model_id()  # as the course's JupyterLab extension asks for it
cluster = Cluster(brokers=1).start()
cluster_map, quiz = ClusterMap(cluster), Quiz("00_start_here")
display(cluster_map, quiz)
clicked = []
next_button = quiz.widget.children[-1].children[-1]
next_button.on_click(clicked.append)
next_button.model_id
"""


class Kernel:
    """A kernel's front end, as far as these tests need one."""

    def __init__(self, client: BlockingKernelClient) -> None:
        self.client = client

    def send(self, code: str) -> str:
        """Send a cell, and return its message's id."""
        return str(self.client.execute(code, store_history=False))

    def published(self, cell: str) -> Iterator[dict[str, Any]]:
        """Yield what the kernel publishes for a cell, until it's idle again."""
        while True:
            try:
                message = self.client.get_iopub_msg(timeout=PATIENCE)
            except Empty:
                pytest.fail(f"a cell got no answer within {PATIENCE} s, and the kernel was silent")
            if message["parent_header"].get("msg_id") != cell:
                continue
            yield message
            if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
                return

    def succeeded(self, cell: str) -> bool:
        """Wait for the reply to a cell: whether it raised nothing."""
        reply = self.client.get_shell_msg(timeout=PATIENCE)
        while reply["parent_header"].get("msg_id") != cell:
            reply = self.client.get_shell_msg(timeout=PATIENCE)
        return bool(reply["content"]["status"] == "ok")

    def run(self, code: str) -> str:
        """Run a cell, and return its result as text."""
        cell = self.send(code)
        published = list(self.published(cell))
        assert self.succeeded(cell), published
        results = [message["content"]["data"]["text/plain"] for message in published if message["msg_type"] == "execute_result"]
        return results[-1] if results else ""

    def subshell(self) -> str:
        """Make a subshell, as JupyterLab does for the messages of widgets."""
        request = self.client.session.msg("create_subshell_request")
        self.client.control_channel.send(request)
        return str(self.client.control_channel.get_msg(timeout=PATIENCE)["content"]["subshell_id"])

    def click(self, button: str, subshell: str) -> None:
        """Send a click on a button."""
        content = {"comm_id": button, "data": {"method": "custom", "content": {"event": "click"}}}
        message = self.client.session.msg("comm_msg", content)
        message["header"]["subshell_id"] = subshell
        self.client.shell_channel.send(message)


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    sockets = tmp_path_factory.mktemp("k")
    manager = KernelManager(**kernel_address(Path(sockets)))
    manager.start_kernel()
    client = manager.blocking_client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=PATIENCE)
        yield Kernel(client)
    finally:
        client.stop_channels()
        manager.shutdown_kernel()


@pytest.fixture(scope="module")
def button(kernel: Kernel) -> str:
    """A button of a quiz beside a live panel and a live map: the id of its comm."""
    return kernel.run(LIVE).strip("'")


def test_no_cell_is_lost_while_widgets_are_live(kernel: Kernel, button: str) -> None:
    """Each cell is sent at the moment in which the kernel sends the reply to the one before."""
    subshell = kernel.subshell()
    before = kernel.send("ran = 0")
    for number in range(CELLS):
        if number % 10 == 0:
            kernel.click(button, subshell)
        cell = kernel.send("ran += 1")
        assert kernel.succeeded(before)
        for _ in kernel.published(cell):
            pass
        before = cell
    assert kernel.run("ran") == str(CELLS)
    assert kernel.run("len(clicked)") == str(CELLS // 10)


def test_a_click_does_not_wait_for_the_running_cell(kernel: Kernel, button: str) -> None:
    """The cell changes the button, too: by default ipykernel would then let the cell's own shell answer the click."""
    cell = kernel.send(
        "from kafkalab import wait_until\n"
        "seen = len(clicked)\n"
        "next_button.tooltip = f'after {seen} clicks'\n"
        "print('running', flush=True)\n"
        "wait_until(lambda: len(clicked) > seen, 20, 'a click')"
    )
    subshell = kernel.subshell()
    for message in kernel.published(cell):
        if message["msg_type"] == "stream":
            kernel.click(button, subshell)
    assert kernel.succeeded(cell)

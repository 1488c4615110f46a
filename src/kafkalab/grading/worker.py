"""``python -m kafkalab.grading.worker``: run one submission, closed off, and report on standard output.

It reads one line of JSON from standard input: the steps, and the learner's files. It writes a line of JSON for each thing
that happens, so that whoever ends it keeps what was reached so far. Its folder is the current one.
"""

from __future__ import annotations

import asyncio
import base64
import ctypes
import json
import os
import secrets
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient.exceptions import DeadKernelError
from nbformat.v4 import new_code_cell, new_notebook

from kafkalab.distribution import put_tools_on_path
from kafkalab.errors import KafkaLabError
from kafkalab.exits import exit_status
from kafkalab.grading.witness import KEY_LENGTH
from kafkalab.kernel_sockets import kernel_address
from kafkalab.notebook_client import ObituaryClient

__all__ = ["FOLDERS", "main"]

FOLDERS = ("home", "tmp", "work", "sockets", "ipython", "progress")
"""What the worker's folder holds."""

_PR_SET_DUMPABLE = 4
_TAKE_WITNESS = "from kafkalab.grading.witness import check"
_AS_LONG_AS_IT_TAKES = 3600  # seconds: who started the worker sets the limit
_LONGEST_REASON = 200  # characters of an error's message


class _Reporter:
    """Write lines to what was standard output. From then on nothing else can."""

    def __init__(self) -> None:
        self._channel = os.dup(1)  # not inherited
        with open(os.devnull, "r+b") as nothing:
            for standard in (0, 1, 2):
                os.dup2(nothing.fileno(), standard)

    def __call__(self, **event: object) -> None:
        os.write(self._channel, json.dumps(event).encode() + b"\n")


class _OwnKernel(KernelSpecManager):
    """Run the grading kernel, whatever kernel the notebook names."""

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        argv = [sys.executable, "-P", "-m", "kafkalab.grading.kernel", "-f", "{connection_file}"]
        return KernelSpec(argv=argv, display_name="Grading", language="python")


class _Client(ObituaryClient):
    """Run single cells. Outputs are dropped: a cell that prints for ever would fill the memory."""

    reply: dict[str, Any]

    def output(self, *message: object) -> None:
        """Drop it."""

    def handle_comm_msg(self, *message: object) -> None:
        """Drop it: there is no front end."""

    async def run(self, source: str) -> str:
        """Run a cell, and return its error: an empty text if it has none."""
        self.reply = {}
        self.nb.cells = [new_code_cell(source)]
        await self.async_execute_cell(self.nb.cells[0], 0)
        content = self.reply.get("content", {})
        if content.get("status") != "error":
            return ""
        return _one_line(f"{content.get('ename')}: {content.get('evalue')}")


class _Witness:
    """The worker's end of the channel: pass on the results of the checks that the current step calls, and no others."""

    def __init__(self, channel: socket.socket, report: _Reporter) -> None:
        self._channel, self._report = channel, report
        self._key = secrets.token_hex(KEY_LENGTH // 2)
        self._rest = b""
        self._expected: tuple[str, ...] = ()
        self._due: dict[str, int] = {}  # how many results of a check are still to come
        channel.sendall(self._key.encode())
        channel.setblocking(False)

    @contextmanager
    def expecting(self, checks: tuple[str, ...]) -> Iterator[None]:
        """Accept results of these checks within the block. What came before it was sent by nobody who was asked."""
        self._expected = ()
        self.read()
        self._expected, self._due = checks, {}
        yield
        self.read()
        self._expected = ()

    def is_complete(self, check: str) -> bool:
        """Return whether the last step's check gave all its results."""
        return self._due.get(check) == 0

    def read(self) -> None:
        """Read what has arrived."""
        try:
            while part := self._channel.recv(1 << 16):
                *lines, self._rest = (self._rest + part).split(b"\n")
                for line in lines:
                    self._take(line)
        except BlockingIOError:
            pass
        except OSError:  # the kernel has ended
            return

    def _take(self, line: bytes) -> None:
        try:
            message = json.loads(line)
            key, check = message.pop("key"), message["check"]
        except (ValueError, TypeError, KeyError, AttributeError):
            return
        if key != self._key or check not in self._expected:
            return
        if "of" in message:
            self._due[check] = message["of"]
        elif self._due.get(check):
            self._due[check] -= 1
        self._report(**message)


def _one_line(text: str) -> str:
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= _LONGEST_REASON else line[: _LONGEST_REASON - 1] + "…"


async def _run(steps: list[dict[str, Any]], report: _Reporter) -> None:
    ours, kernels = socket.socketpair()
    manager = AsyncKernelManager(kernel_spec_manager=_OwnKernel(), **kernel_address(Path("sockets").absolute()))
    client = _Client(
        new_notebook(),
        km=manager,
        allow_errors=True,
        timeout=None,
        startup_timeout=_AS_LONG_AS_IT_TAKES,
        store_widget_state=False,
    )

    def keep_reply(**hook: Any) -> None:
        client.reply = hook["execute_reply"] or {}

    client.on_cell_executed = keep_reply
    environment = os.environ | {"KAFKALAB_WITNESS": str(kernels.fileno())}
    witness = _Witness(ours, report)
    loop = asyncio.get_running_loop()
    try:
        async with client.async_setup_kernel(
            cleanup_kc=True, env=environment, cwd=str(Path("work").absolute()), pass_fds=(kernels.fileno(),)
        ):
            kernels.close()
            loop.add_reader(ours, witness.read)
            for step in steps:
                await _take(step, client, witness, report)
            loop.remove_reader(ours)
    except DeadKernelError:
        report(reason=f"the kernel ended ({exit_status(client.kernel_status)})")
        return
    except (RuntimeError, OSError) as error:  # a kernel that didn't start, as nbclient and the system say it
        report(reason=_one_line(f"the kernel failed: {error}"))
        return
    report(ended=True)


async def _take(step: dict[str, Any], client: _Client, witness: _Witness, report: _Reporter) -> None:
    report(cell=step["number"], checks=step["checks"])
    if step["checks"]:
        await client.run(_TAKE_WITNESS)
    with witness.expecting(tuple(step["checks"])):
        error = await client.run(step["source"])
    if error and not step["may_fail"]:
        report(cell=step["number"], error=error)
    for check in [check for check in step["instead"] if not witness.is_complete(check)]:
        # The cell names the check, but it's commented out, say, or calls something else of that name.
        await client.run(_TAKE_WITNESS)
        with witness.expecting((check,)):
            await client.run(step["instead"][check])


def _unpack(files: dict[str, str]) -> None:
    for name, content in files.items():
        path = Path("work", name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(content))


def main() -> None:
    """Run the submission that standard input holds."""
    payload = json.loads(sys.stdin.buffer.readline())
    if sys.platform == "linux":
        # Other processes of this user may not read or change this one, or open its channels.
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    report = _Reporter()
    try:
        for name in FOLDERS:
            Path(name).mkdir(exist_ok=True)
        _unpack(cast("dict[str, str]", payload["files"]))
        put_tools_on_path()
    except (KafkaLabError, OSError) as error:
        report(reason=_one_line(str(error)))
        return
    report(began=True)
    asyncio.run(_run(payload["steps"], report))


if __name__ == "__main__":
    main()

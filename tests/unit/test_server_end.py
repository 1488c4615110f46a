"""A server that ends although threads of anyio's wait for work."""

from __future__ import annotations

import subprocess
import sys

from support import PATIENCE

STOPPED_TOO_EARLY = """
import asyncio

import anyio

from kafkalab.cli.server_end import _load_jupyter_server_extension

_load_jupyter_server_extension(None)


async def serve():
    await anyio.to_thread.run_sync(str)
    asyncio.get_running_loop().stop()
    await asyncio.Event().wait()


loop = asyncio.new_event_loop()
task = loop.create_task(serve())
loop.run_forever()
print("stopped", flush=True)
"""


def test_a_loop_that_stops_before_its_task_leaves_no_thread_to_wait_for() -> None:
    done = subprocess.run(
        [sys.executable, "-c", STOPPED_TOO_EARLY], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert (done.returncode, done.stdout) == (0, "stopped\n"), done.stderr

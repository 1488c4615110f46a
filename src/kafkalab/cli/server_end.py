"""An extension of JupyterLab's server: it lets the server end.

Threads in which anyio reads files wait for work until their task ends. A server that is told to end may stop its loop before
that. Python then waits for those threads, and the server stays for ever.
"""

from __future__ import annotations

import threading


def _end_idle_threads() -> None:
    for thread in threading.enumerate():
        if type(thread).__module__.startswith("anyio."):
            thread.queue.put_nowait(None)  # type: ignore[attr-defined] # as anyio does it when a thread's task ends


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    return [{"module": __name__}]


def _load_jupyter_server_extension(_: object) -> None:
    # Called before Python waits for threads. It's how concurrent.futures ends its own.
    threading._register_atexit(_end_idle_threads)  # type: ignore[attr-defined]

"""``python -m kafkalab.lifeline.reaper PID TOKEN``: waits for a process's end, then reaps its runs."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys

import psutil

from kafkalab.errors import BackendUnavailable
from kafkalab.lifeline.runs import Run, _owner_token, reap
from kafkalab.paths import runs_dir


def _wait_for_end(pid: int) -> None:
    # Linux and macOS report the end at once, even while the parent hasn't waited for the process.
    if sys.platform == "linux" and hasattr(os, "pidfd_open"):
        descriptor = os.pidfd_open(pid)
        select.select([descriptor], [], [])
        os.close(descriptor)
    elif sys.platform == "darwin":
        with contextlib.closing(select.kqueue()) as queue:
            ends = select.kevent(pid, select.KQ_FILTER_PROC, select.KQ_EV_ADD, select.KQ_NOTE_EXIT)
            queue.control([ends], 1)
    else:
        psutil.Process(pid).wait()


def main(pid: int, token: str) -> None:
    """Wait for the owner to end, then reap every run that it still claims."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        if _owner_token(pid) == token:
            _wait_for_end(pid)
    except (psutil.NoSuchProcess, ProcessLookupError):
        pass
    claims = runs_dir() / "owners" / token
    for claim in list(claims.iterdir()) if claims.exists() else []:
        with contextlib.suppress(BackendUnavailable):  # `kafkalab clean` ends it, later
            reap(Run(claim.name))
    with contextlib.suppress(OSError):  # gone, or still with claims in it
        claims.rmdir()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])

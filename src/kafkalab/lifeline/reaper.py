"""``python -m kafkalab.lifeline.reaper PID TOKEN``: waits for a process's end, then reaps its runs."""

from __future__ import annotations

import signal
import sys

import psutil

from kafkalab.lifeline.runs import Run, _owner_token, reap
from kafkalab.paths import runs_dir


def main(pid: int, token: str) -> None:
    """Wait for the end of the owner, then reap every run that it still claims."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        owner = psutil.Process(pid)
        if _owner_token(pid) == token:
            owner.wait()
    except psutil.NoSuchProcess:
        pass
    claims = runs_dir() / "owners" / token
    for claim in list(claims.iterdir()) if claims.exists() else []:
        reap(Run(claim.name))
    if claims.exists():
        claims.rmdir()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])

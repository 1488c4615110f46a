"""Start a cluster for a session's first cell, once its server listens.

``python -m kafkalab.cli.hosted.standby PID`` has the server's process id.

Both would be slower if they started at the same time, on a session's one processor. The cluster ends with the server, which
holds the other end of this program's standard input.
"""

from __future__ import annotations

import select
import sys
from pathlib import Path

from jupyter_core.paths import jupyter_runtime_dir

from kafkalab.cluster import standby
from kafkalab.resources import available_memory
from kafkalab.waiting import wait_until

SERVER_SECONDS = 300
LEAST_MEMORY = 1_500_000_000


def has_ended() -> None:
    """End this program if the server has ended."""
    if select.select([sys.stdin], [], [], 0)[0]:
        sys.exit()


def main(server: int) -> None:
    """Wait for the server, and offer a cluster if there is memory for it."""
    note = Path(jupyter_runtime_dir(), f"jpserver-{server}.json")  # written when it listens
    wait_until(note.exists, SERVER_SECONDS, "the server to listen", unless=has_ended)
    if available_memory() >= LEAST_MEMORY:
        standby.main()


if __name__ == "__main__":
    main(int(sys.argv[1]))

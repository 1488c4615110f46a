"""What commands print in a cell is there, also when the machine is slow."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

# A process that is slow between two looks of pexpect: it looks for output, and while it waits for its next turn the command,
# which was told to go on, prints and ends.
SLOW = """
import os, sys
import IPython, pexpect.pty_spawn
from IPython.utils.process import system
from kafkalab.distribution import keep_all_output

go_on, real = sys.argv[1], pexpect.pty_spawn.select_ignore_interrupts
children, spawn = [], pexpect.spawn

def spawned(*args, **settings):
    children.append(spawn(*args, **settings))
    return children[-1]

def slow(reading, writing, errors, timeout=None):
    if not timeout:
        return real(reading, writing, errors, timeout)
    os.close(os.open(go_on, os.O_WRONLY))
    os.waitid(os.P_PID, children[-1].pid, os.WEXITED | os.WNOWAIT)
    return [], [], []

if sys.argv[2] == "mended":
    keep_all_output()
    keep_all_output()
pexpect.spawn, pexpect.pty_spawn.select_ignore_interrupts = spawned, slow
print("status", system(f"read nothing < {go_on}; echo 'the last line'; exit 3"))
"""


@pytest.mark.parametrize(("how", "printed"), [("mended", ["the last line", "status 3"]), ("as it comes", ["status 3"])])
def test_the_last_line_is_kept(tmp_path: Path, how: str, printed: list[str]) -> None:
    """As it comes, IPython loses it: should that change, the mend can go."""
    go_on = tmp_path / "go-on"
    os.mkfifo(go_on)
    done = subprocess.run([sys.executable, "-c", SLOW, go_on, how], capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines() == printed, done.stderr


def test_outside_of_ipython_nothing_is_loaded_for_it() -> None:
    ask = "import sys; from kafkalab.distribution import keep_all_output; keep_all_output(); print('pexpect' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "False\n"

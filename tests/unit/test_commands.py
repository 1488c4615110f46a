"""Kafka's tools are there, and what commands print in a cell is there, also when the machine is slow."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from kafkalab.distribution import CONNECT_TOOLS, TOOLS, ensure_jars, faulty_jars, install_tools
from support import PATIENCE

# A process that is slow between two looks of pexpect: it looks for output, and while it waits for its next turn the command,
# which was told to go on, prints and ends.
SLOW = """
import os, sys
import IPython, pexpect.pty_spawn, psutil
from IPython.utils.process import system
from kafkalab.distribution import keep_all_output
from kafkalab.waiting import wait_until

go_on, real = sys.argv[1], pexpect.pty_spawn.select_ignore_interrupts
children, spawn = [], pexpect.spawn

def spawned(*args, **settings):
    children.append(spawn(*args, **settings))
    return children[-1]

def slow(reading, writing, errors, timeout=None):
    if not timeout:
        return real(reading, writing, errors, timeout)
    os.close(os.open(go_on, os.O_WRONLY))
    child = psutil.Process(children[-1].pid)
    wait_until(lambda: child.status() == psutil.STATUS_ZOMBIE, 30, "the command to end")
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
    done = subprocess.run([sys.executable, "-c", SLOW, go_on, how], capture_output=True, text=True, timeout=PATIENCE)
    assert done.stdout.splitlines() == printed, done.stderr


def test_outside_of_ipython_nothing_is_loaded_for_it() -> None:
    ask = "import sys; from kafkalab.distribution import keep_all_output; keep_all_output(); print('pexpect' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert done.stdout == "False\n"


def test_every_tool_is_in_its_jars() -> None:
    def classes(group: str) -> set[str]:
        return {name for jar in ensure_jars(group) for name in zipfile.ZipFile(jar).namelist()}

    kafka = classes("kafka")
    assert [main for main in TOOLS.values() if f"{main.replace('.', '/')}.class" not in kafka] == []
    if not faulty_jars("mirror"):  # else they are fetched when one of these is first called
        both = kafka | classes("mirror")
        assert [main for main in CONNECT_TOOLS.values() if f"{main.replace('.', '/')}.class" not in both] == []


@pytest.mark.parametrize(
    "name",
    [
        "kafka-delegation-tokens",
        "kafka-jmx",
        "kafka-share-consumer-perf-test",
        "kafka-streams-application-reset",
        "kafka-streams-groups",
        "kafka-verifiable-share-consumer",
    ],
)
def test_a_tool_that_needs_no_broker_for_its_help(name: str) -> None:
    done = subprocess.run(
        [install_tools() / f"{name}.sh", "--help"], check=False, capture_output=True, text=True, timeout=PATIENCE
    )
    assert "--bootstrap-server" in done.stdout + done.stderr or "--jmx-url" in done.stdout + done.stderr
    assert "NoClassDefFoundError" not in done.stderr


@pytest.mark.network
def test_the_tools_of_connect_fetch_their_jars_on_first_use() -> None:
    plugins = ensure_jars("mirror")
    done = subprocess.run(
        [install_tools() / "connect-plugin-path.sh", "list", "--plugin-location", plugins[0].parent],
        check=False, capture_output=True, text=True, timeout=PATIENCE,
    )  # fmt: skip
    assert "org.apache.kafka.connect.mirror.MirrorSourceConnector" in done.stdout, done.stderr[-500:]

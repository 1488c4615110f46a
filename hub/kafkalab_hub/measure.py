"""Measure what a class needs: all learners run a chapter at the same time, each in a server of the hub."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from time import monotonic

from kafkalab_hub.client import Hub

__all__ = ["Measured", "measure", "table"]

# Run in the learner's kernel, in whose control group the chapter runs. What the system keeps of files isn't counted: it gives
# that back when it must.
_RUN = """
import json, os, subprocess, tempfile, time
from pathlib import Path
from kafkalab.cgroups import own_cgroups

groups = own_cgroups("memory", Path("/proc"), Path("/sys/fs/cgroup"))
counted = [folder for folder in groups if (folder / "memory.stat").exists()]
group = max(counted, key=lambda folder: len(folder.parts), default=None)

def used():
    name = "memory.current" if (group / "memory.current").exists() else "memory.usage_in_bytes"
    stat = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
    return int((group / name).read_text()) - int(stat.get("total_inactive_file", stat.get("inactive_file", 0)))

peak, began = 0, time.monotonic()
with tempfile.TemporaryDirectory() as out, open(Path(out, "said"), "w+") as said:
    plain = {name: value for name, value in os.environ.items() if "COLOR" not in name} | {"TERM": "dumb"}
    run = subprocess.Popen(["kafkalab", "run", "--out", out, NOTEBOOK], stdout=said, stderr=subprocess.STDOUT, env=plain)
    while True:
        peak = max(peak, used() if group else 0)
        try:
            run.wait(0.5)
            break
        except subprocess.TimeoutExpired:
            pass
    said.seek(0)
    print(json.dumps([run.returncode, time.monotonic() - began, peak, said.read()[-2000:]]))
"""


@dataclass(frozen=True)
class Measured:
    """How a chapter went on one learner's server.

    Attributes
    ----------
    learner
        The user's name.
    start
        Seconds until the server answered.
    seconds
        How long the chapter took.
    peak
        The most memory that the server and all that it started needed, in bytes.
    failure
        The end of what the run said, if a cell failed.
    """

    learner: str
    start: float
    seconds: float
    peak: int
    failure: str


def measure(hub: Hub, learners: Sequence[str], notebook: str, timeout: float) -> list[Measured]:
    """Start the servers of all learners at once, and then a chapter in each.

    Raises
    ------
    kafkalab_hub.client.HubError
        If a server doesn't start, or a chapter takes longer than so many seconds.
    """
    began = monotonic()
    with ThreadPoolExecutor(len(learners)) as pool:
        servers = list(pool.map(lambda learner: (hub.start(learner), monotonic() - began), learners))
        ran = list(pool.map(lambda started: started[0].run(f"NOTEBOOK = {notebook!r}\n{_RUN}", timeout), servers))
    rows = []
    for (server, start), said in zip(servers, ran, strict=True):
        status, seconds, peak, output = json.loads(said.splitlines()[-1])
        rows.append(Measured(server.learner, start, seconds, peak, output if status else ""))
    return rows


def table(rows: Sequence[Measured]) -> str:
    """Return the measurements as a table in Markdown."""
    lines = ["| learner | server answers after | chapter took | memory at most | |", "| --- | --- | --- | --- | --- |"]
    for row in rows:
        went = next((line for line in row.failure.splitlines() if "✗" in line), "✗") if row.failure else "✓"
        lines.append(f"| {row.learner} | {row.start:.0f} s | {row.seconds:.0f} s | {row.peak / 1e9:.2f} GB | {went} |")
    return "\n".join(lines)

"""What the tests cost: which to start first, and a report of the seconds of each file and each kind.

A group is what one worker runs in order: a file, since a notebook's cells share a kernel and a module's tests a cluster; a
package, where its modules share more, which ends with it; of some files each test alone. The costly groups begin first, as
``seconds.json`` beside this file has them, so that no worker is left with a long one at the end. `make test` writes what it
measured to ``build/seconds.json``; copy it here when the order has become wrong. Nothing but the order depends on it.

What shares a worker's brokers comes after everything else: a broker that nobody asks anything still takes a thirtieth of
a processor, and each worker has three of them from the first such test to the end.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest
from xdist.scheduler import LoadScopeScheduling

ROOT = Path(__file__).parents[1]
KNOWN = Path(__file__).with_name("seconds.json")
REPORT = ROOT / "build/seconds.json"
EACH_ALONE = ("tests/docker/test_chapters.py", "tests/labs/test_labs.py")
SHARED = "three_brokers"  # a fixture that lives as long as its worker
UNKNOWN = 30.0  # what a new file is taken to cost

KINDS = {
    "notebooks": "chapters",
    "pipeline/tests": "unit",
    "solutions": "solutions",
    "tests/binder": "Binder rehearsal",
    "tests/browser": "browser",
    "tests/contract": "contract",
    "tests/docker": "chapters on Docker",
    "tests/faults": "faults",
    "tests/labs": "checks and untouched labs",
    "tests/processes": "Spark and workers",
    "tests/stocks": "the stock-price application",
    "tests/unit": "unit",
}


def group_of(nodeid: str) -> str:
    """What a test is run with."""
    file = nodeid.partition("::")[0]
    if file in EACH_ALONE:
        return nodeid
    folder = Path(file).parent
    return str(folder) if (ROOT / folder / "__init__.py").exists() else file


class ByGroup(LoadScopeScheduling):
    """Hands a group to each worker, in the order of the tests."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)


def costly_first(items: list[pytest.Item]) -> None:
    """Sort groups by their cost, those that share brokers last; within a group, tests keep their order."""
    known: Mapping[str, float] = json.loads(KNOWN.read_text()) if KNOWN.exists() else {}
    sharing = {group_of(item.nodeid) for item in items if SHARED in getattr(item, "fixturenames", ())}

    def place(item: pytest.Item) -> tuple[bool, float, str]:
        group = group_of(item.nodeid)
        return group in sharing, -known.get(group, UNKNOWN), group

    items.sort(key=place)


def kind_of(group: str) -> str:
    """What kind of test a group is."""
    return next((kind for folder, kind in KINDS.items() if group.startswith(folder)), "other")


def measured(reports: Iterable[pytest.TestReport]) -> dict[str, float]:
    """Seconds of each group: its set-up, its tests and what ends it."""
    seconds: dict[str, float] = defaultdict(float)
    for report in reports:
        seconds[group_of(report.nodeid)] += report.duration
    return {name: round(spent, 1) for name, spent in sorted(seconds.items(), key=lambda entry: -entry[1])}


def report(terminal: pytest.TerminalReporter) -> None:
    """Print the seconds of each kind and of the costliest groups, and write all of them to ``build/seconds.json``."""
    reports = [r for stat in terminal.stats.values() for r in stat if isinstance(r, pytest.TestReport)]
    seconds = measured(reports)
    if os.environ.get("KAFKALAB_TEST_REPORT") is None or not seconds:
        return
    kinds: dict[str, float] = defaultdict(float)
    for group, spent in seconds.items():
        kinds[kind_of(group)] += spent
    terminal.section("seconds, summed over the workers")
    for kind, spent in sorted(kinds.items(), key=lambda entry: -entry[1]):
        files = [name for name in seconds if kind_of(name) == kind]
        longest = max(files, key=lambda name: seconds[name])
        terminal.write_line(f"{spent:8.0f}  {kind}: {len(files)}, the longest {longest} with {seconds[longest]:.0f}")
    REPORT.parent.mkdir(exist_ok=True)
    REPORT.write_text(json.dumps(seconds, indent=2) + "\n")

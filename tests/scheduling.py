"""What a worker of xdist runs together, and what comes last.

xdist's own groups are close: ``loadfile`` splits packages, and ``loadgroup`` writes the group into each test's id, which then
can't be pasted into a command.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from xdist.scheduler import LoadScopeScheduling

ROOT = Path(__file__).parents[1]
SHARED = "three_brokers"  # a fixture that lives as long as its worker


def group_of(nodeid: str) -> str:
    """A test's package, whose modules share services; else its file, whose tests share a cluster, or its cells a kernel."""
    file = Path(nodeid.partition("::")[0])
    return str(file.parent if (ROOT / file.parent / "__init__.py").exists() else file)


class ByGroup(LoadScopeScheduling):
    """Hands a group to each worker, in the order of the tests."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)


def in_order(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Put groups that use a worker's shared brokers last; all else keeps its order.

    Three brokers that nobody asks anything take a tenth of a processor, for each worker, from the first such test to the end.
    """
    sharing = {group_of(item.nodeid) for item in items if SHARED in getattr(item, "fixturenames", ())}
    return sorted(items, key=lambda item: group_of(item.nodeid) in sharing)

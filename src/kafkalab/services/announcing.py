"""Progress of what a service downloads or prepares when it is first used, as lines beside a cell's output."""

from __future__ import annotations

import sys

__all__ = ["announce"]


def announce(what: str, done: int, total: int) -> None:
    """A `kafkalab.distribution.Report` that writes a line to standard error: sizes in MB, small numbers as steps."""
    amount = f"{done / 1e6:.0f} of {total / 1e6:.0f} MB" if total > 1000 else f"{done} of {total}"
    print(f"{what}: {amount}", file=sys.stderr, flush=True)

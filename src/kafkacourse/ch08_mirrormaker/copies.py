"""Questions that the mirroring labs ask about copied orders."""

from __future__ import annotations

from collections.abc import Iterable

from kafkalab.checks.context import CheckContext, Unmet

__all__ = ["AFRESH", "no_copy_of_a_copy", "some_of"]

AFRESH = "To begin afresh, run from the first cell on."
"""What helps when MirrorMaker has copied something that it shouldn't have."""


def no_copy_of_a_copy(cluster: str, ctx: CheckContext) -> None:
    """Raise `Unmet` if a topic of orders carries the names of two clusters."""
    if back := [topic for topic in ctx.view().topics if topic.count(".") > 1 and topic.endswith("orders")]:
        raise Unmet(
            f"In {cluster}: {back[0]!r} is a copy of a copy. Which topics do the flows name, and by which policy? {AFRESH}"
        )


def some_of(values: Iterable[str]) -> str:
    """Return a text such as "'message 7' and 3 more", or an empty one."""
    found = sorted(values)
    return f"{found[0]!r}" + (f" and {len(found) - 1} more" if len(found) > 1 else "") if found else ""

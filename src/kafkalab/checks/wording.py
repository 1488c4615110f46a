"""Phrases that the checks' sentences share."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["START_OVER", "counted", "listed_brokers", "quoted"]

START_OVER = "To start over, run `cluster.stop()` and then the cells from the first one on."
"""How a learner gets a new cluster in the same kernel."""

_LONGEST = 60


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, such as "1 record" or "2 records"."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def listed_brokers(ids: Iterable[int]) -> str:
    """Return brokers in words, such as "broker 1" or "brokers 1, 2"."""
    listed = list(ids)
    return f"broker{'' if len(listed) == 1 else 's'} {', '.join(map(str, listed))}"


def quoted(value: str) -> str:
    """Return a value in quotation marks. Only the start of a long one is shown."""
    return repr(value if len(value) <= _LONGEST else f"{value[: _LONGEST - 1]}…")

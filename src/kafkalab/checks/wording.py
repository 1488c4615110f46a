"""Turns of phrase that the checks' sentences share."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["counted", "listed_brokers", "quoted"]

_LONGEST = 60


def counted(number: int, noun: str) -> str:
    """As in "1 record" and "2 records"."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def listed_brokers(ids: Iterable[int]) -> str:
    """As in "broker 1" and "brokers 1, 2"."""
    listed = list(ids)
    return f"broker{'' if len(listed) == 1 else 's'} {', '.join(map(str, listed))}"


def quoted(value: str) -> str:
    """A value in quotation marks, of which a long one shows its beginning only."""
    return repr(value if len(value) <= _LONGEST else f"{value[: _LONGEST - 1]}…")

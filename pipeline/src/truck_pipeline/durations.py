"""Lengths of time in words, as Spark's settings have them: ``5 minutes``."""

from __future__ import annotations

import re

__all__ = ["milliseconds"]

_UNITS = {"millisecond": 1, "second": 1_000, "minute": 60_000, "hour": 3_600_000, "day": 86_400_000}
_LENGTH = re.compile(rf"\s*(\d+)\s*({'|'.join(_UNITS)})s?\s*")


def milliseconds(length: str) -> int:
    """Return a length of time in milliseconds.

    Raises
    ------
    ValueError
        When it isn't a number and a unit. Spark knows more units, such as months, whose lengths differ.
    """
    found = _LENGTH.fullmatch(length)
    if found is None:
        raise ValueError(f"{length!r} isn't a length of time: give a number and {', '.join(_UNITS)}, such as '5 minutes'")
    return int(found[1]) * _UNITS[found[2]]

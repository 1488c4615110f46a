"""Names of seats: two random words, which say nothing about who sits there."""

from __future__ import annotations

import re
import secrets
from collections.abc import Collection

__all__ = ["free_seat", "is_seat"]

_FIRST = (  # noqa: SIM905 - a list would take a line for each word
    "amber bold brave bright calm clever copper early eager fast gentle golden green happy honest keen kind light "
    "lively lucky merry mild neat nimble noble quick quiet rapid red silver smart snowy steady sunny swift tidy "
    "true warm wild wise"
).split()
_SECOND = (  # noqa: SIM905 - a list would take a line for each word
    "badger beaver bison crane crow deer dove eagle falcon finch fox frog gecko goose hare hawk heron horse ibis "
    "jay koala lark lemur lion lynx mole moose newt otter owl panda puffin raven robin salmon seal sparrow stork "
    "swan tiger trout wolf"
).split()
_SEAT = re.compile(r"[a-z]{2,20}(-[a-z0-9]{1,20}){1,2}")


def free_seat(taken: Collection[str]) -> str:
    """Return a random name that isn't taken. After some 1,600 seats, names get a number."""
    free = [name for first in _FIRST for second in _SECOND if (name := f"{first}-{second}") not in taken]
    if free:
        return secrets.choice(free)
    number = 2
    while (name := f"{secrets.choice(_FIRST)}-{secrets.choice(_SECOND)}-{number}") in taken:
        number += 1
    return name


def is_seat(name: str) -> bool:
    """Return whether this may be the name of a seat."""
    return _SEAT.fullmatch(name) is not None

"""Wait for servers that are away for a while."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from kafkalab.errors import WaitTimeout
from kafkalab.waiting import wait_until

__all__ = ["patiently"]

_LOG = logging.getLogger(__name__)

T = TypeVar("T")


def patiently(ask: Callable[[], T], server: str, seconds: float, away: tuple[type[Exception], ...]) -> T:
    """Call a function that asks a server. While the server is away, call it again and again, and say so in the log.

    Parameters
    ----------
    ask
        The function. Calling it again must do no harm.
    server
        The server's name, for people.
    seconds
        For how long it may be away.
    away
        Exceptions of `ask` that mean that the server is away.

    Raises
    ------
    ConnectionError
        When it doesn't come back in time; with its last error.
    """
    last = ""

    def attempt() -> list[T]:  # whatever it answers, a list of it is true
        nonlocal last
        try:
            return [ask()]
        except away as error:
            if not last:
                _LOG.warning("%s doesn't answer (%s); trying again for up to %g s", server, _in_short(error), seconds)
            last = _in_short(error)
            raise

    try:
        [answer] = wait_until(attempt, seconds, server, ignore=away, interval=0.5)
    except WaitTimeout:
        raise ConnectionError(f"{server} hasn't answered for {seconds:g} s: {last}") from None
    return answer


def _in_short(error: Exception) -> str:
    """Return the first line of an error. PostgreSQL's client adds guesses below it."""
    return (str(error) or type(error).__name__).splitlines()[0]

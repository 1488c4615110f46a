"""Wait for servers that are away for a while."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from tenacity import RetryCallState, RetryError, Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

__all__ = ["retry"]

_LOG = logging.getLogger(__name__)

T = TypeVar("T")


def retry(request: Callable[[], T], server: str, seconds: float, outage: tuple[type[Exception], ...]) -> T:
    """Send a request to a server, and repeat it while the server is away. The first failure is logged.

    Parameters
    ----------
    request
        Sends the request, and returns its answer. Repeating it must do no harm.
    server
        The server's name, for messages.
    seconds
        For how long the server may be away.
    outage
        Exceptions that mean that the server is away.

    Raises
    ------
    ConnectionError
        When the server doesn't come back in time; with its last error.
    """

    def log(state: RetryCallState) -> None:
        if state.attempt_number == 1:
            _LOG.warning("%s doesn't answer (%s); trying again for up to %g s", server, _last_error(state), seconds)

    attempts = Retrying(retry=retry_if_exception_type(outage), stop=stop_after_delay(seconds), wait=wait_fixed(0.5), after=log)
    try:
        return attempts(request)
    except RetryError as error:
        last = error.last_attempt.exception()
        raise ConnectionError(f"{server} hasn't answered for {seconds:g} s: {_first_line(last)}") from None


def _last_error(state: RetryCallState) -> str:
    return _first_line(state.outcome.exception() if state.outcome else None)


def _first_line(error: BaseException | None) -> str:
    """Return the first line of an error. PostgreSQL's client adds guesses below it."""
    return (str(error) or type(error).__name__).splitlines()[0]

"""The one way in which kafkalab waits: for a condition, with a message that says what was last seen."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from kafkalab.errors import WaitTimeout

__all__ = ["wait_until"]

T = TypeVar("T")

# Nobody ever sets this event: waiting on it is an interruptible pause between two looks.
_never = threading.Event()


def wait_until(
    condition: Callable[[], T],
    timeout: float,
    what: str,
    *,
    last_seen: Callable[[], object] | None = None,
    ignore: tuple[type[Exception], ...] = (),
    interval: float = 0.05,
) -> T:
    """Wait until `condition` returns something true, and return that.

    Parameters
    ----------
    condition
        Called at once and then every `interval` seconds.
    timeout
        Seconds to wait at most.
    what
        Completes the sentence "waited N s for …".
    last_seen
        Called when time is up; its result ends the error message. Without it, the last result of
        `condition` (or the last ignored exception) is shown.
    ignore
        Exceptions of `condition` that mean "not yet".
    interval
        Seconds between two looks.

    Raises
    ------
    WaitTimeout
        When time is up. The message says for what, how long, and what was last seen.
    """
    deadline = time.monotonic() + timeout
    while True:
        try:
            seen: object = condition()
            if seen:
                return seen  # type: ignore[return-value]
        except ignore as error:
            seen = f"{type(error).__name__}: {error}"
        if time.monotonic() >= deadline:
            if last_seen is not None:
                seen = last_seen()
            raise WaitTimeout(f"waited {timeout:g} s for {what}; last seen: {seen}")
        _never.wait(interval)

"""Wait for a condition. The hub's environment hasn't got the course's package, which waits in the same way."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

__all__ = ["wait_until"]

T = TypeVar("T")

# This event is never set: waiting on it is an interruptible pause between two checks.
_never = threading.Event()


def wait_until(
    condition: Callable[[], T], timeout: float, what: str, *, last_seen: Callable[[], object], interval: float = 0.2
) -> T:
    """Wait until `condition` returns a true value, and return that.

    Parameters
    ----------
    condition
        Called at once and then every `interval` seconds.
    timeout
        Seconds to wait at most.
    what
        Completes the sentence "waited N s for …".
    last_seen
        Called when time runs out. The error's message shows its result.

    Raises
    ------
    TimeoutError
        If time runs out.
    """
    until = time.monotonic() + timeout
    while not (result := condition()):
        if time.monotonic() > until:
            raise TimeoutError(f"waited {timeout:g} s for {what}; last seen: {last_seen()}")
        _never.wait(interval)
    return result

"""Wait for a condition, with an error message that shows the last observed state. kafkalab waits in no other way."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from kafkalab import underway
from kafkalab.errors import WaitTimeout

__all__ = ["wait_until"]

T = TypeVar("T")

# This event is never set: waiting on it is an interruptible pause between two checks.
_never = threading.Event()


def wait_until(
    condition: Callable[[], T],
    timeout: float,
    what: str,
    *,
    last_seen: Callable[[], object] | None = None,
    ignore: tuple[type[Exception], ...] = (),
    unless: Callable[[], object] | None = None,
    interval: float = 0.05,
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
        Called when time runs out. The error message shows its result (or its exception), and the exception that the last
        check ended with, if it was an ignored one. Without it, the message shows the last result of `condition` (or the last
        ignored exception).
    ignore
        Exceptions of `condition` that mean "not yet".
    unless
        Called whenever `condition` isn't true yet. It raises if that can't come any more, and so ends the wait. `ignore`
        doesn't apply to it.
    interval
        Seconds between two checks.

    Raises
    ------
    WaitTimeout
        If time runs out. The message says what it waited for, how long, and what it last saw.
    """
    deadline = time.monotonic() + timeout
    with contextlib.ExitStack() as ends:
        is_shown = False
        while True:
            ignored = ""
            try:
                state: object = condition()
                if state:
                    return state  # type: ignore[return-value]
            except ignore as error:
                state = ignored = f"{type(error).__name__}: {error}"
            if unless is not None:
                unless()
            if time.monotonic() >= deadline:
                if last_seen is not None:
                    try:
                        state = last_seen()
                    except Exception as error:  # what was waited for matters more
                        state = f"{type(error).__name__}: {error}"
                # Its own words may be from before: the error of the last check is the reason.
                also = f"; last error: {ignored}" if ignored and ignored not in str(state) else ""
                raise WaitTimeout(f"waited {timeout:g} s for {what}; last seen: {state}{also}")
            if not is_shown:  # not before: most conditions are true at once
                is_shown = True
                ends.enter_context(_shown(what))
            _never.wait(interval)


def _shown(what: str) -> contextlib.AbstractContextManager[object]:
    """Show what a cell waits for, unless that's part of something that is shown already. Other threads keep nobody waiting."""
    in_cell = threading.current_thread() is threading.main_thread()
    return underway.task(f"Waiting for {what}") if in_cell and not underway.now.tasks else contextlib.nullcontext()

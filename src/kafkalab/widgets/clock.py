"""The time that displays go by, so that a test can set it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from kafkalab.widgets.attention import ATTENTION

__all__ = ["Clock", "repeat"]


class Clock:
    """The machine's clock."""

    def now(self) -> float:
        """Return the time in seconds since some moment."""
        return time.monotonic()

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Wait for an event, at most this long. Returns whether it happened."""
        return event.wait(seconds)


def repeat(act: Callable[[], object], interval: float, until: threading.Event, name: str, clock: Clock) -> None:
    """Act in a thread of this name, now and then `interval` seconds after each end, until the event happens.

    While nobody looks it doesn't act (see `kafkalab.widgets.attention`).
    """

    def loop() -> None:
        while not until.is_set():
            if ATTENTION.paid:
                act()
            clock.wait(until, interval)

    threading.Thread(target=loop, name=name, daemon=True).start()

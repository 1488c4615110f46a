"""A clock that a test moves, so that it can assert how long something takes on a machine of any speed."""

from __future__ import annotations

import threading
from collections.abc import Callable

from kafkalab.widgets.clock import Clock
from support import PATIENCE

__all__ = ["VirtualClock"]


class VirtualClock(Clock):
    """Stands still until a test moves it. It then goes from one wake-up of a thread to the next.

    Parameters
    ----------
    threads
        How many threads sleep by this clock. It moves on when all of them sleep.
    """

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._now = 0.0
        self._wake_ups: dict[int, float] = {}  # by thread
        self._changed = threading.Condition()

    def now(self) -> float:
        return self._now

    def wait(self, event: threading.Event, seconds: float) -> bool:
        with self._changed:
            wake_up = self._wake_ups[threading.get_ident()] = self._now + seconds
            self._changed.notify_all()
            while self._now < wake_up and not event.is_set():
                self._changed.wait(0.01)  # an event doesn't notify
            del self._wake_ups[threading.get_ident()]
        return event.is_set()

    def advance(self, seconds: float) -> None:
        """Let so many seconds pass."""
        end = self._now + seconds
        while self._next_wake_up() <= end:
            self.move_to(self._next_wake_up())
        self.move_to(end)

    def seconds_until(self, condition: Callable[[], object]) -> float:
        """Let time pass until the condition holds, and return how much did."""
        began = self._now
        self._next_wake_up()
        while not condition():
            assert self._now < began + PATIENCE, "it never happened"
            self.move_to(self._next_wake_up())
            self._next_wake_up()
        return round(self._now - began, 6)

    def _next_wake_up(self) -> float:
        """The moment of the next wake-up, as soon as all threads sleep."""

        def all_sleep() -> bool:
            return len(self._wake_ups) == self._threads and min(self._wake_ups.values()) > self._now

        with self._changed:
            assert self._changed.wait_for(all_sleep, PATIENCE), f"{len(self._wake_ups)} of {self._threads} threads sleep"
            return min(self._wake_ups.values())

    def move_to(self, moment: float) -> None:
        """Go to a moment at once."""
        with self._changed:
            self._now = moment
            self._changed.notify_all()

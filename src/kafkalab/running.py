"""What runs in this process, for displays that show it. Everything announces itself here when it has started."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

__all__ = ["Register", "clusters", "spark_clusters"]


class Stoppable(Protocol):
    """What runs until it's stopped, and calls functions before that."""

    def on_stop(self, callback: Callable[[], None]) -> None: ...


T = TypeVar("T", bound=Stoppable)


class Register(Generic[T]):
    """The running things of one kind."""

    def __init__(self) -> None:
        self._running: list[T] = []
        self._callbacks: list[Callable[[T], object]] = []
        self._lock = threading.RLock()

    def announce(self, started: T) -> None:
        """Add something that has started. It's removed when it stops."""
        with self._lock:
            self._running.append(started)
            started.on_stop(lambda: self._running.remove(started))
            for callback in self._callbacks:
                callback(started)

    def for_each(self, callback: Callable[[T], object]) -> None:
        """Call a function for each that runs, and for each one that starts from now on."""
        with self._lock:
            self._callbacks.append(callback)
            for running in self._running:
                callback(running)


# Any, because this module stays below the packages that announce themselves.
clusters: Register[Any] = Register()
spark_clusters: Register[Any] = Register()

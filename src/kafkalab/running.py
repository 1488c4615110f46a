"""What runs in this process, for displays that show it. Everything announces itself here when it has started."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

__all__ = [
    "OnStop",
    "Register",
    "clusters",
    "connect_clusters",
    "mirrors",
    "registries",
    "spark_clusters",
    "spark_sessions",
    "streams_apps",
]

OnStop = Callable[[Callable[[], None]], None]
"""Registers a function that is called when something stops."""

T = TypeVar("T")


class Register(Generic[T]):
    """The running things of one kind."""

    def __init__(self) -> None:
        self._running: list[tuple[T, OnStop]] = []
        self._callbacks: list[Callable[[T, OnStop], object]] = []
        self._lock = threading.RLock()

    def announce(self, started: T, on_stop: OnStop) -> None:
        """Register one that has started, until it stops. Does nothing if it's registered: it may start again after a crash."""
        with self._lock:
            if any(one is started for one, _ in self._running):
                return
            self._running.append((started, on_stop))
            on_stop(lambda: self._running.remove((started, on_stop)))
            for callback in self._callbacks:
                callback(started, on_stop)

    def for_each(self, callback: Callable[[T, OnStop], object]) -> None:
        """Call a function with each that runs and its `OnStop`, and with each one that starts from now on."""
        with self._lock:
            self._callbacks.append(callback)
            for started, on_stop in self._running:
                callback(started, on_stop)


# Any, because this module stays below the packages that announce themselves.
clusters: Register[Any] = Register()
connect_clusters: Register[Any] = Register()
mirrors: Register[Any] = Register()
registries: Register[Any] = Register()
spark_clusters: Register[Any] = Register()
spark_sessions: Register[Any] = Register()
streams_apps: Register[Any] = Register()

"""The clusters that run in this process, for displays that show them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from kafkalab.cluster.cluster import Cluster
    from kafkalab.spark.standalone import SparkCluster

__all__ = ["Register", "clusters", "spark_clusters"]


class Stopping(Protocol):
    """What runs until it's stopped, and says so before."""

    def on_stop(self, callback: Callable[[], None]) -> None: ...


T = TypeVar("T", bound=Stopping)


class Register(Generic[T]):
    """What runs of a kind."""

    def __init__(self) -> None:
        self._running: list[T] = []
        self._callbacks: list[Callable[[T], object]] = []
        self._lock = threading.RLock()

    def announce(self, started: T) -> None:
        """Note that one has started, until it stops."""
        with self._lock:
            self._running.append(started)
            started.on_stop(lambda: self._running.remove(started))
            for callback in self._callbacks:
                callback(started)

    def for_each(self, callback: Callable[[T], object]) -> None:
        """Call a function for each that runs, and for each one that starts from now on."""
        with self._lock:
            self._callbacks.append(callback)
            for one in self._running:
                callback(one)


clusters: Register[Cluster] = Register()
spark_clusters: Register[SparkCluster] = Register()

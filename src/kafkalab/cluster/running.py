"""The clusters that run in this process, for displays that show them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafkalab.cluster.cluster import Cluster

__all__ = ["announce", "for_each"]

_running: list[Cluster] = []
_callbacks: list[Callable[[Cluster], object]] = []
_lock = threading.RLock()


def announce(cluster: Cluster) -> None:
    """Note that a cluster has started, until it stops."""
    with _lock:
        _running.append(cluster)
        cluster.on_stop(lambda: _running.remove(cluster))
        for callback in _callbacks:
            callback(cluster)


def for_each(callback: Callable[[Cluster], object]) -> None:
    """Call a function for each running cluster, and for each one that starts from now on."""
    with _lock:
        _callbacks.append(callback)
        for cluster in _running:
            callback(cluster)

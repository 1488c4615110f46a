"""What tests of labs on mirroring use: records whose partition is known."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kafkalab import Cluster
from support import create, put

__all__ = ["Named", "add", "fill"]

Named = Callable[..., list[Cluster]]
"""What the fixture `named` gives."""


def fill(cluster: Cluster, topic: str, values: Iterable[str], partitions: int = 3) -> None:
    """Make a topic with these values, in turn in partitions 0 to 2 (or 0)."""
    create(cluster, topic, partitions, copies=1)
    add(cluster, topic, values, min(partitions, 3))


def add(cluster: Cluster, topic: str, values: Iterable[str], partitions: int = 3) -> None:
    """Send values to partitions in turn; the key names the partition."""
    put(cluster, topic, [(f"key {n % partitions}", value, n % partitions) for n, value in enumerate(values)])

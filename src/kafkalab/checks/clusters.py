"""What checks ask of several clusters at once: each one's topics, records and groups, with its name in every sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from kafkalab.checks.context import CheckContext, Unmet
from kafkalab.checks.groups import read_everything
from kafkalab.checks.topics import existing
from kafkalab.cluster import Cluster

__all__ = ["clusters", "has_read_everything_in", "naming", "values_in"]


def clusters(ctx: CheckContext, *others: str) -> dict[str, CheckContext]:
    """The cluster that is checked, and those that were given besides it, by name."""
    found = {ctx.cluster.name: ctx}
    for name in others:
        other = ctx.answer(name, Cluster, "your cluster of that name")
        if not other.running:
            raise Unmet(f"The cluster {name} isn't running.")
        found[name] = CheckContext(other, ctx.answers)
    return found


@contextmanager
def naming(cluster: str) -> Iterator[None]:
    """Within it, every complaint says which cluster was looked at."""
    try:
        yield
    except Unmet as unmet:
        raise Unmet(f"In {cluster}: {unmet}") from unmet


def values_in(cluster: str, ctx: CheckContext, topic: str) -> Counter[str]:
    """Values of the records of a topic that must be there, and how often each one is."""
    with naming(cluster):
        existing(ctx, topic)
    return Counter(ctx.values(topic))


def has_read_everything_in(cluster: str, ctx: CheckContext, group: str, topic: str) -> None:
    """A group that must have committed the end of every partition of a topic that holds records."""
    with naming(cluster):
        read_everything(ctx, group, topic)

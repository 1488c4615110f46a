"""Questions about several clusters at once: their topics, records and groups, with the cluster's name in every sentence."""

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
    """Return the checked cluster and the further ones the learner passed, by name."""
    contexts = {ctx.cluster.name: ctx}
    for name in others:
        other = ctx.answer(name, Cluster, "your cluster of that name")
        if not other.nodes.running:
            raise Unmet(f"The cluster {name} isn't running.")
        contexts[name] = CheckContext(other, ctx.answers)
    return contexts


@contextmanager
def naming(cluster: str) -> Iterator[None]:
    """Put the cluster's name into every `Unmet` raised inside the ``with`` block."""
    try:
        yield
    except Unmet as unmet:
        raise Unmet(f"In {cluster}: {unmet}") from unmet


def values_in(cluster: str, ctx: CheckContext, topic: str) -> Counter[str]:
    """Return the values of a topic's records, with their counts. Raise `Unmet` if the topic doesn't exist."""
    with naming(cluster):
        existing(ctx, topic)
    return Counter(ctx.values(topic))


def has_read_everything_in(cluster: str, ctx: CheckContext, group: str, topic: str) -> None:
    """Raise `Unmet` unless a group has committed the end of every partition that holds records."""
    with naming(cluster):
        read_everything(ctx, group, topic)

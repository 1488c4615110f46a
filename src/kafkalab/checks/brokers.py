"""Questions about nodes: whether they run, which feature levels they have, and which faults they got."""

from __future__ import annotations

from collections.abc import Mapping

from kafkalab.checks.context import CheckContext, Unmet
from kafkalab.checks.probes import parametrized
from kafkalab.checks.wording import listed_brokers
from kafkalab.cluster.view import BrokerView, ClusterView

__all__ = [
    "DOWN",
    "DOWN_VERBS",
    "all_up",
    "are_up",
    "faulted",
    "has_level",
    "is_down",
    "isolated",
    "nodes",
    "was_down_and_came_back",
]

DOWN = ("dead", "stopped")
"""States of a node whose process has ended."""

DOWN_VERBS = ("kill", "stop")
"""Faults that end a broker's process."""


def nodes(ctx: CheckContext) -> Mapping[int, BrokerView]:
    """Return all nodes by id. Leave groups out, because asking for them takes long while their coordinators are down."""
    view: ClusterView = ctx.cluster.describe(groups=False)
    return view.brokers


def faulted(ctx: CheckContext, *verbs: str) -> list[int]:
    """Return the brokers that got one of these faults, in order."""
    return [f.broker for f in ctx.cluster.nodes.faults if f.verb in verbs]


def isolated(ctx: CheckContext) -> list[int]:
    """Return the running brokers that are cut off from their peers. `heal` or `restart` connects them again."""
    return [i for i, node in nodes(ctx).items() if node.state == "isolated"]


@parametrized
def are_up(ctx: CheckContext, *ids: int) -> None:
    """The cluster must have these brokers, and all of them must run."""
    brokers = nodes(ctx)
    if absent := [i for i in ids if i not in brokers]:
        raise Unmet(f"The cluster has {listed_brokers(brokers)}. It should have {listed_brokers(absent)}, too.")
    if down := [i for i in ids if brokers[i].state != "up"]:
        raise Unmet(f"Broker {down[0]} is {brokers[down[0]].state}.")


def all_up(ctx: CheckContext) -> None:
    """Raise `Unmet` unless all nodes run and reach each other."""
    if amiss := [f"{i} is {node.state}" for i, node in sorted(nodes(ctx).items()) if node.state != "up"]:
        raise Unmet(f"Not every node is up: {', '.join(amiss)}.")


@parametrized
def is_down(ctx: CheckContext, broker: int) -> None:
    """The process of a broker must have ended."""
    brokers = nodes(ctx)
    if broker not in brokers:
        raise Unmet(f"There is no broker {broker}. The cluster has {listed_brokers(brokers)}.")
    if brokers[broker].state in DOWN:
        return
    if others := [i for i, node in brokers.items() if node.state in DOWN]:
        raise Unmet(f"{listed_brokers(others).capitalize()} is down, but broker {broker} is {brokers[broker].state}.")
    raise Unmet(f"Broker {broker} is {brokers[broker].state}.")


@parametrized
def was_down_and_came_back(ctx: CheckContext, broker: int) -> None:
    """The process of a broker must have ended, and run again."""
    if broker not in faulted(ctx, *DOWN_VERBS):
        raise Unmet(f"Broker {broker} hasn't been down yet. Did you stop it with a verb of the cluster?")
    if (state := nodes(ctx)[broker].state) != "up":
        raise Unmet(f"Broker {broker} is {state}. Did you restart it?")


@parametrized
def has_level(ctx: CheckContext, feature: str, level: int) -> None:
    """Every broker must report this level of a feature as finalized; 0 is off."""
    for broker, features in ctx.cluster.nodes.features().items():
        if (finalized := features.finalized.get(feature, 0)) != level:
            raise Unmet(f"Broker {broker} says that {feature} is finalized at level {finalized}, not {level}.")

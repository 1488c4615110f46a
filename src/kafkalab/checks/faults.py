"""Questions about faults: which broker went down, and whether it came back."""

from __future__ import annotations

from collections.abc import Callable

from kafkalab.checks.brokers import faulted, nodes
from kafkalab.checks.context import CheckContext, Unmet

__all__ = ["DOWN_VERBS", "was_down_and_came_back"]

DOWN_VERBS = ("kill", "stop")
"""Faults that end a broker's process."""


def was_down_and_came_back(broker: int) -> Callable[[CheckContext], None]:
    """Return a probe: this broker's process must have ended, and run again."""

    def probe(ctx: CheckContext) -> None:
        if broker not in faulted(ctx, *DOWN_VERBS):
            raise Unmet(f"Broker {broker} hasn't been down yet. Did you stop it with a verb of the cluster?")
        if (state := nodes(ctx)[broker].state) != "up":
            raise Unmet(f"Broker {broker} is {state}. Did you restart it?")

    return probe

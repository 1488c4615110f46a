"""Probes with parameters: the same question about another topic, group or broker."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec

from kafkalab.checks.context import CheckContext
from kafkalab.checks.requirements import Probe

__all__ = ["parametrized"]

P = ParamSpec("P")


def parametrized(question: Callable[Concatenate[CheckContext, P], object]) -> Callable[P, Probe]:
    """Turn a question about a cluster and some parameters into a function of the parameters that returns a probe.

    ``in_sync(ctx, topic)`` becomes ``in_sync(topic)``, which is a probe to register, or to call with a context.
    """

    @wraps(question)
    def with_parameters(*args: P.args, **kwargs: P.kwargs) -> Probe:
        def probe(ctx: CheckContext) -> None:
            question(ctx, *args, **kwargs)

        return probe

    return with_parameters

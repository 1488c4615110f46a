"""Questions about when records were sent: while a broker was down, or at another time."""

from __future__ import annotations

import math
from collections.abc import Sequence

from confluent_kafka import Message

from kafkalab.checks.brokers import DOWN_VERBS
from kafkalab.checks.context import CheckContext, Unmet, text_of
from kafkalab.checks.probes import parametrized
from kafkalab.checks.wording import START_OVER, quoted

__all__ = ["CLOCK", "created", "sent_while_down"]

CLOCK = 0.05
"""Seconds. A record's time is in whole milliseconds, and a fault is timed slightly before or after it happens."""


def created(message: Message) -> float:
    """Return when the producer got the record, in seconds since the epoch."""
    _, milliseconds = message.timestamp()
    return float(milliseconds) / 1000


@parametrized
def sent_while_down(ctx: CheckContext, topic: str, values: Sequence[str], broker: int) -> None:
    """The records with these values must have been sent while this broker was down, whichever time."""
    faults = [fault for fault in ctx.cluster.nodes.faults if fault.broker == broker]
    ends = [*(fault.at for fault in faults[1:]), math.inf]
    down = [(fault.at, end) for fault, end in zip(faults, ends, strict=False) if fault.verb in DOWN_VERBS]
    if not down:
        raise Unmet(f"Broker {broker} hasn't been down yet. Did you stop it with a verb of the cluster?")
    records = [m for m in ctx.records(topic) if text_of(m) in values]
    if wrong := [m for m in records if not any(begin - CLOCK <= created(m) <= end + CLOCK for begin, end in down)]:
        raise Unmet(
            f"You sent {quoted(text_of(wrong[0]))} while broker {broker} was up, so it doesn't show that others take "
            f"over. {START_OVER}"
        )

"""Questions about when records were sent: before a broker went down, while it was down, or afterwards."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from confluent_kafka import Message

from kafkalab.checks.brokers import DOWN_VERBS
from kafkalab.checks.context import CheckContext, Unmet, text_of
from kafkalab.checks.wording import START_OVER, quoted

__all__ = ["CLOCK", "created", "sent_after_it_went_down"]

CLOCK = 0.05
"""Seconds. A record's time is in whole milliseconds, and a fault is timed slightly before or after it happens."""


def created(message: Message) -> float:
    """Return when the producer got the record, in seconds since the epoch."""
    _, milliseconds = message.timestamp()
    return float(milliseconds) / 1000


def sent_after_it_went_down(topic: str, values: Sequence[str], broker: int) -> Callable[[CheckContext], None]:
    """Return a probe: the records with these values must have been sent after this broker went down the last time."""

    def probe(ctx: CheckContext) -> None:
        down = [fault.at for fault in ctx.cluster.faults if fault.broker == broker and fault.verb in DOWN_VERBS]
        if not down:
            raise Unmet(f"Broker {broker} hasn't been down yet. Did you stop it with a verb of the cluster?")
        records = [m for m in ctx.records(topic) if text_of(m) in values]
        if early := [m for m in records if created(m) < down[-1] - CLOCK]:
            raise Unmet(
                f"You sent {quoted(text_of(early[0]))} before broker {broker} went down, so it doesn't show that others take "
                f"over. {START_OVER}"
            )

    return probe

"""What checks ask of ledgers: which records a producer was told are written, and whether they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, cast

from kafkalab.checks.context import CheckContext, Unmet

__all__ = ["Entry", "Ledger", "ledger_of"]


class Entry(Protocol):
    """An acknowledged record."""

    @property
    def value(self) -> str:
        """Its value as text."""

    @property
    def partition(self) -> int:
        """Where it stands."""

    @property
    def offset(self) -> int:
        """Where it stands."""

    @property
    def at(self) -> float:
        """When the acknowledgement came, in seconds since the epoch."""


class Ledger(Protocol):
    """What a check looks at in a `LedgerProducer`."""

    @property
    def entries(self) -> Sequence[Entry]:
        """The acknowledged records."""

    @property
    def sent(self) -> int:
        """How many records it sent."""

    @property
    def failed(self) -> int:
        """How many records it gave up."""

    @property
    def settings(self) -> Mapping[str, object]:
        """The settings that the learner gave it."""


def ledger_of(ctx: CheckContext, topic: str) -> Ledger:
    """The ledger that the learner gave for this topic, in the answer `ledgers`."""
    ledgers = ctx.answer("ledgers", dict[str, object], "your LedgerProducers by topic")
    if topic not in ledgers:
        raise Unmet(f"`ledgers` has no {topic!r}.")
    if not hasattr(ledgers[topic], "entries"):
        raise Unmet(f"`ledgers[{topic!r}]` should be a LedgerProducer, not {type(ledgers[topic]).__name__}.")
    return cast(Ledger, ledgers[topic])

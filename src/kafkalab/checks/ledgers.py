"""Questions about ledgers: which records were acknowledged, when, and whether they are in the log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, cast

from kafkalab.checks.context import CheckContext, Unmet
from kafkalab.checks.probes import parametrized
from kafkalab.checks.topics import existing
from kafkalab.checks.wording import START_OVER, counted, quoted
from kafkalab.history.judgement import judge
from kafkalab.history.verdict import TERMS, Kind, Verdict

__all__ = ["Entry", "Ledger", "is_complete", "ledger_of", "require_no", "verdict_of", "wrote_throughout"]


class Entry(Protocol):
    """An acknowledged record."""

    @property
    def value(self) -> str:
        """Its value as text."""

    @property
    def partition(self) -> int:
        """Its partition."""

    @property
    def offset(self) -> int:
        """Its offset."""

    @property
    def at(self) -> float:
        """When its acknowledgement arrived, in seconds since the epoch."""


class Ledger(Protocol):
    """The parts of a `LedgerProducer` that a check looks at."""

    @property
    def entries(self) -> Sequence[Entry]:
        """The acknowledged records."""

    @property
    def sent(self) -> int:
        """The number of records it sent."""

    @property
    def failed(self) -> int:
        """The number of failed records."""

    @property
    def settings(self) -> Mapping[str, object]:
        """The settings that the learner passed."""


def ledger_of(ctx: CheckContext, topic: str) -> Ledger:
    """Return the learner's ledger for this topic, from the answer `ledgers`."""
    ledger = ctx.answer("ledgers", dict[str, object], "your LedgerProducers by topic", keys=[topic])[topic]
    if not hasattr(ledger, "entries"):
        raise Unmet(f"`ledgers[{topic!r}]` should be a LedgerProducer, not {type(ledger).__name__}.")
    return cast(Ledger, ledger)


@parametrized
def wrote_throughout(ctx: CheckContext, topic: str, *verbs: str) -> None:
    """A ledger must have records from before the first of these faults and from after the last.

    Another requirement checks that the faults happened.
    """
    used = [fault for fault in ctx.cluster.nodes.faults if fault.verb in verbs]
    acknowledged = [entry.at for entry in ledger_of(ctx, topic).entries]
    if not acknowledged or min(acknowledged) > used[0].at:
        raise Unmet(f"The ledger has no record from before the first {used[0].verb}. Start the producer first. {START_OVER}")
    if max(acknowledged) < used[-1].at:
        ending = f"The ledger ends before the last {used[-1].verb}"
        raise Unmet(f"{ending}. Let the producer go on until all nodes are back. {START_OVER}")


@parametrized
def is_complete(ctx: CheckContext, topic: str) -> None:
    """A topic must have no lost write and no duplicate, and its ledger no failed record."""
    existing(ctx, topic)
    ledger = ledger_of(ctx, topic)
    verdict = verdict_of(ledger, ctx.values(topic), topic)
    require_no(verdict, "lost write", topic, f"Did the producer ask for acks='all'? {START_OVER}")
    require_no(verdict, "duplicate", topic, f"Which setting prevents that when a producer retries? {START_OVER}")
    if ledger.failed:
        raise Unmet(
            f"The producer gave {counted(ledger.failed, 'record')} up. How many replicas were in sync at that time? "
            f"{START_OVER}"
        )


def verdict_of(ledger: Ledger, log: Sequence[str], topic: str) -> Verdict:
    """Return the verdict on a topic that should have each value of a ledger, and has those in `log`."""
    return judge(sent=list(dict.fromkeys(entry.value for entry in ledger.entries)), log=log, topic=topic)


def require_no(verdict: Verdict, kind: Kind, topic: str, question: str, of: str = "") -> None:
    """Raise `Unmet` with this question if a verdict on a topic has an anomaly of a kind; `of` says whose it is."""
    if anomalies := verdict[kind]:
        example = quoted(str(anomalies[0].record.value))
        raise Unmet(f"{topic} has {counted(len(anomalies), kind)}{of}, such as {example}. {TERMS[kind]} {question}")

"""Questions about transactions: which records belong to one, and how it ended, from a partition's log."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field

from kafkalab.checks.context import CheckContext, Unmet
from kafkalab.checks.logs import view_of
from kafkalab.checks.topics import existing
from kafkalab.checks.wording import quoted
from kafkalab.cluster.record_batches import Record, RecordBatch
from kafkalab.errors import WaitTimeout
from kafkalab.waiting import wait_until

__all__ = ["Transaction", "log_of", "text", "transaction_with", "transactions"]

_MARKER_SECONDS = 3.0


@dataclass
class Transaction:
    """A transaction in one partition.

    Attributes
    ----------
    producer_id, epoch
        The producer that wrote its records.
    records
        The records it wrote there.
    end
        Its marker: ``commit`` or ``abort``, or empty while it's open.
    marker_epoch
        The producer epoch in the marker. It's higher than `epoch` if not the producer, but a successor or the coordinator
        ended the transaction of a client without KIP-890, such as librdkafka.
    seconds
        From the time of its first record, by the producer's clock, to that of its marker, by the broker's.
    """

    producer_id: int
    epoch: int
    records: list[Record] = field(default_factory=list)
    end: str = ""
    marker_epoch: int = -1
    seconds: float = 0.0


def text(data: bytes | None) -> str:
    """Return a key or a value as text, or an empty text."""
    return (data or b"").decode(errors="replace")


def log_of(ctx: CheckContext, topic: str, partition: int = 0) -> list[RecordBatch]:
    """Return the batches of a partition with their records, including control batches, from its leader's log."""
    return [batch for segment in view_of(ctx, topic, partition=partition).segments for batch in segment.batches]


def transactions(ctx: CheckContext, topic: str) -> list[Transaction]:
    """Return the transactions in partition 0 of a topic, in the order in which they began. Raise `Unmet` if there is no topic.

    They get a few seconds to end, because a coordinator answers a commit before it writes the markers.
    """
    existing(ctx, topic)
    known: list[Transaction] = []

    def all_ended() -> bool:
        known[:] = _transactions(ctx, topic)
        return all(transaction.end for transaction in known)

    with suppress(WaitTimeout):  # one is open
        wait_until(all_ended, _MARKER_SECONDS, "markers", interval=0.2)
    return known


def _transactions(ctx: CheckContext, topic: str) -> list[Transaction]:
    known: list[Transaction] = []
    under_way: dict[int, Transaction] = {}
    for batch in log_of(ctx, topic):
        if not batch.transactional:
            continue
        if batch.control:
            ended = under_way.pop(batch.producer_id, None)
            if ended and batch.records:
                [marker] = batch.records
                ended.end, ended.marker_epoch = marker.marker, batch.producer_epoch
                ended.seconds = (marker.timestamp - ended.records[0].timestamp) / 1000
            continue
        if batch.producer_id not in under_way:
            under_way[batch.producer_id] = Transaction(batch.producer_id, batch.producer_epoch)
            known.append(under_way[batch.producer_id])
        under_way[batch.producer_id].records += batch.records or ()
    return known


def transaction_with(ctx: CheckContext, topic: str, value: str) -> Transaction:
    """Return the transaction that wrote this value. Raise `Unmet` unless the value is there once."""
    holding = [t for t in transactions(ctx, topic) if value in (text(record.value) for record in t.records)]
    if not holding:
        if value in (text(r.value) for batch in log_of(ctx, topic) for r in batch.records or ()):
            raise Unmet(f"{quoted(value)} is in {topic}, but no transaction wrote it. Which call comes before produce()?")
        raise Unmet(f"No transaction wrote {quoted(value)} to {topic} yet.")
    if len(holding) > 1:
        raise Unmet(
            f"{len(holding)} transactions wrote {quoted(value)} to {topic}. Did you run a cell twice? Run the cells again from "
            f"the one that creates {topic} on: it begins with a new topic."
        )
    return holding[0]

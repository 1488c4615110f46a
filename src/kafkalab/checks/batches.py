"""Questions about record batches: the records, bytes and codec of each on a broker's disk."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from kafkalab.checks.context import CheckContext, Unmet
from kafkalab.cluster.record_batches import CODECS, RecordBatch, batches_in

__all__ = ["CODECS", "RecordBatch", "batches_on_disk", "some_batches"]


def batches_on_disk(ctx: CheckContext, broker: int, *topics: str) -> dict[str, list[RecordBatch]]:
    """Return the batches of these topics on a broker's disk, without their records. The broker may be down."""
    copy = ctx.cluster.disk.copy_log_dir(broker, *topics)
    try:
        return {topic: [batch for segment in _segments(copy, topic) for batch in _batches_of(segment)] for topic in topics}
    finally:
        shutil.rmtree(copy, ignore_errors=True)


def some_batches(ctx: CheckContext, *topics: str) -> dict[str, list[RecordBatch]]:
    """Return the batches of these topics on broker 0. Raise `Unmet` if a topic has none."""
    batches_of = batches_on_disk(ctx, 0, *topics)
    for topic, batches in batches_of.items():
        if not batches:
            raise Unmet(f"{topic} is empty. Did you send everything that the text lists?")
    return batches_of


def _segments(folder: Path, topic: str) -> list[Path]:
    partitions = (p for p in folder.glob(f"{topic}-*") if p.name.removeprefix(f"{topic}-").isdigit())
    return sorted(segment for partition in partitions for segment in partition.glob("*.log"))


def _batches_of(segment: Path) -> Iterator[RecordBatch]:
    with open(segment, "rb") as file:
        yield from batches_in(file)

# Written in the lab 04_positions.
"""Choose where to start, whatever is committed: callbacks for ``subscribe(…, on_assign=…)``."""

from __future__ import annotations

from collections.abc import Callable

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer, TopicPartition

from kafkacourse.stocks.loop import begin

__all__ = ["Callback", "at_offset", "at_the_beginning", "at_the_end", "at_time"]

Callback = Callable[[Consumer, list[TopicPartition]], None]


def at_offset(offset: int) -> Callback:
    """Start each partition at this offset, but only when it's assigned for the first time.

    A rebalance assigns partitions again. A consumer that went back each time would never reach the end.

    Parameters
    ----------
    offset
        A number, ``OFFSET_BEGINNING`` or ``OFFSET_END``. If a partition doesn't have that offset, ``auto.offset.reset``
        decides.

    Returns
    -------
    Callback
        For one consumer, with any group protocol.
    """
    seen: set[tuple[str, int]] = set()

    def on_assign(consumer: Consumer, partitions: list[TopicPartition]) -> None:
        for partition in partitions:
            place = (partition.topic, partition.partition)
            if place not in seen:
                seen.add(place)
                partition.offset = offset
        begin(consumer, partitions)

    return on_assign


def at_the_beginning() -> Callback:
    """Read everything again."""
    return at_offset(OFFSET_BEGINNING)


def at_the_end() -> Callback:
    """Read only new records."""
    return at_offset(OFFSET_END)


def at_time(milliseconds: int) -> Callback:
    """Start each partition at its first record from this time or later, or at the end if there is none.

    A partition that is assigned again continues from its committed offset, as with `at_offset`.

    Parameters
    ----------
    milliseconds
        Milliseconds since 1970, as in a record's timestamp.

    Returns
    -------
    Callback
        For one consumer, with any group protocol.
    """
    seen: set[tuple[str, int]] = set()

    def on_assign(consumer: Consumer, partitions: list[TopicPartition]) -> None:
        new = [p for p in partitions if (p.topic, p.partition) not in seen]
        seen.update((p.topic, p.partition) for p in new)
        asked = [TopicPartition(p.topic, p.partition, milliseconds) for p in new]
        found = consumer.offsets_for_times(asked, timeout=10) if asked else []
        begin(consumer, [p for p in partitions if p not in new] + found)

    return on_assign

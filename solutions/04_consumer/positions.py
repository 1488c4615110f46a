# Written in the lab 04_positions.
"""Where to begin, whatever was committed: callbacks for ``subscribe(…, on_assign=…)``."""

from __future__ import annotations

from collections.abc import Callable

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer, TopicPartition

from stocks.loop import begin

__all__ = ["Callback", "at_offset", "at_the_beginning", "at_the_end", "at_time"]

Callback = Callable[[Consumer, list[TopicPartition]], None]


def at_offset(offset: int) -> Callback:
    """Begin at that offset in each partition, but only in those that are assigned for the first time.

    A group that shares anew assigns partitions again; who went back each time would never come to an end.

    Parameters
    ----------
    offset
        A number, or ``OFFSET_BEGINNING`` or ``OFFSET_END``. ``auto.offset.reset`` has the answer where it is not there.

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
    """Read all again."""
    return at_offset(OFFSET_BEGINNING)


def at_the_end() -> Callback:
    """Read only what is new."""
    return at_offset(OFFSET_END)


def at_time(milliseconds: int) -> Callback:
    """Begin with the first record of each partition that is not older; at the end, where there is none.

    A partition that is assigned again goes on where it was, as with `at_offset`.

    Parameters
    ----------
    milliseconds
        Since 1970, as in a record's timestamp.

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

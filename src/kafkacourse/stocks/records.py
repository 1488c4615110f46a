"""Find a record's place in the log."""

from __future__ import annotations

from confluent_kafka import Message

__all__ = ["place"]


def place(record: Message) -> tuple[str, int, int]:
    """Return topic, partition and offset of a record that was read or acknowledged.

    Parameters
    ----------
    record
        The record. Before it's acknowledged, it has no offset.

    Returns
    -------
    tuple
        Topic, partition and offset.

    Raises
    ------
    ValueError
        If the record isn't in a log.
    """
    topic, partition, offset = record.topic(), record.partition(), record.offset()
    if topic is None or partition is None or offset is None:
        raise ValueError("this record isn't in a log, so it has no place there")
    return topic, partition, offset

"""Measure what transactions cost a producer."""

from __future__ import annotations

import time

from confluent_kafka import Producer

__all__ = ["transaction_rate"]

_VALUE = bytes(100)
_FLUSHED = 1000  # records between two flushes, without transactions


def transaction_rate(producer: Producer, topic: str, size: int | None, seconds: float = 1.0) -> float:
    """Commit one transaction after the other for a while, and return the committed records per second.

    A first one isn't counted: in it, the producer finds the leaders and connects to them.

    Parameters
    ----------
    producer
        A producer with a transactional id, after ``init_transactions()``.
    topic
        The topic that it writes to.
    size
        Records per transaction. None to send without transactions; then the producer needs no transactional id.
    seconds
        For how long. The last transaction is counted, too.
    """
    _send(producer, topic, size)
    records, began = 0, time.monotonic()
    while (took := time.monotonic() - began) < seconds or not records:
        _send(producer, topic, size)
        records += size or _FLUSHED
    return records / took


def _send(producer: Producer, topic: str, size: int | None) -> None:
    if size is not None:
        producer.begin_transaction()
    for _ in range(size or _FLUSHED):
        producer.produce(topic, _VALUE)
    if size is not None:
        producer.commit_transaction()
    else:
        producer.flush()

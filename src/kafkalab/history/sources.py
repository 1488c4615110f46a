"""Turn what a notebook has (a ledger, delivery reports, messages, Spark's rows, values) into a history."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from confluent_kafka import KafkaError

from kafkalab.history.records import History, Outcome, Poll, Record, Send

__all__ = ["Sources", "history_of"]

Sources = Any
"""A `LedgerProducer`, an iterable of its entries, of messages, of rows or of values, or a dict of these by name."""

# These errors mean the record was rejected before it was written. After any other error it may have been written.
_REFUSED = {
    KafkaError.INVALID_MSG,
    KafkaError.INVALID_RECORD,
    KafkaError.INVALID_REQUIRED_ACKS,
    KafkaError.MSG_SIZE_TOO_LARGE,
    KafkaError.NOT_ENOUGH_REPLICAS,
    KafkaError.POLICY_VIOLATION,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
}


def history_of(
    sent: Sources = (), aborted: Sources = (), log: Sources | None = None, polled: Sources = (), topic: str | None = None
) -> History:
    """Combine these sources into one history. The parameters are those of `judge`.

    Raises
    ------
    ValueError
        If a source doesn't name its topic and there are several, or if two sent records have the same value.
    """
    produced, withdrawn, consumed = _named(sent, "producer"), _named(aborted, "producer"), _named(polled, "consumer")
    read = [] if log is None else _named({"": log}, "")
    every = [source for sources in (produced, withdrawn, consumed, read) for source in sources]
    topic = _only_topic(topic, every)
    sends = [send for source in produced for send in source.sends(topic)]
    sends += [send for source in withdrawn for send in source.sends(topic, "aborted")]
    _require_different(sends)
    return History(
        tuple(sends),
        None if log is None else tuple(record for source in read for record in source.records(topic)),
        tuple(poll for source in consumed for poll in source.polls(topic)),
    )


def _named(sources: Sources, who: str) -> list[_Source]:
    if isinstance(sources, Mapping):
        return [_Source.of(source, name) for name, source in sources.items()]
    source = _Source.of(sources, who)
    return [source] if source.items else []


def _only_topic(topic: str | None, sources: list[_Source]) -> str:
    """Return the topic of sources that don't name one."""
    if topic is not None:
        return topic
    names = {name for source in sources for name in source.topics}
    topics = sorted(name for name in names if name is not None)
    if len(topics) > 1 and None in names:
        raise ValueError(f"some records don't say which topic they belong to: {' or '.join(topics)}? Say it with topic=…")
    return topics[0] if topics else "the topic"


def _require_different(sends: list[Send]) -> None:
    sent: set[tuple[str, str | None]] = set()
    for send in sends:
        name = send.topic, send.value
        if name in sent and send.value is not None:
            raise ValueError(
                f"{send.value!r} was sent to {send.topic} twice, so nobody can say which copy is which: "
                "give each record a value of its own"
            )
        sent.add(name)


@dataclass(frozen=True)
class _Source:
    """One list of items, with its owner and topic."""

    who: str
    topic: str | None
    items: list[Any]

    @classmethod
    def of(cls, source: Any, who: str) -> _Source:
        if hasattr(source, "entries"):  # a ledger
            ordered = sorted(source.entries, key=lambda entry: entry.seq)  # the ledger is in order of acknowledgement
            return cls(source.name if who == "producer" else who, source.topic, ordered)
        return cls(who, None, list(source))

    @property
    def topics(self) -> set[str | None]:
        """Topics that the items name, and None if an item names no topic."""
        if self.topic is not None:
            return {self.topic}
        return {_field(item, "topic") for batch in self._batches() for item in batch}

    def records(self, topic: str) -> Iterator[Record]:
        for batch in self._batches():
            for item in batch:
                yield Record(*self._place(item, topic), _text(item))

    def polls(self, topic: str) -> Iterator[Poll]:
        for call, batch in enumerate(self._batches()):
            for item in batch:
                yield Poll(*self._place(item, topic), _text(item), self.who, call)

    def sends(self, topic: str, outcome: Outcome | None = None) -> Iterator[Send]:
        for batch in self._batches():
            for item in batch:
                yield Send(*self._place(item, topic), _text(item), self.who, outcome or _outcome(item), *_times(item))

    def _batches(self) -> Iterator[list[Any]]:
        """Yield the items of one call: a list within the list, or a single item."""
        for item in self.items:
            yield item if isinstance(item, list) else [item]

    def _place(self, item: Any, topic: str) -> tuple[str, int | None, int | None]:
        offset = _field(item, "offset")
        known = offset is not None and offset >= 0  # acks=0 gives -1, an error -1001
        return _field(item, "topic") or self.topic or topic, _field(item, "partition"), offset if known else None


def _field(item: Any, name: str) -> Any:
    """Return a field of a row or an entry, or the result of a message's method of that name, or None."""
    if isinstance(item, str | bytes):
        return None
    value = getattr(item, name, None)
    return value() if callable(value) else value


def _text(item: Any) -> str | None:
    value = _field(item, "value") if hasattr(item, "value") else item
    if isinstance(value, bytes | bytearray):
        return value.decode("utf-8", "backslashreplace")
    return None if value is None else str(value)


def _outcome(item: Any) -> Outcome:
    error = _field(item, "error")
    if error is None:
        return "acknowledged"
    return "failed" if error.code() in _REFUSED else "unknown"


def _times(item: Any) -> tuple[float | None, float | None]:
    """Return when the record was sent and when its outcome was known."""
    ended = _field(item, "at")
    if ended is not None:  # a line of a ledger
        return ended - item.ms / 1000, ended
    stamp = _field(item, "timestamp")
    if isinstance(stamp, datetime):  # a row from Spark
        return stamp.timestamp(), None
    if stamp is None or stamp[1] <= 0:
        return None, None
    began, latency = stamp[1] / 1000, _field(item, "latency")
    return began, None if latency is None else began + latency

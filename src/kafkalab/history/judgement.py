"""Find what is wrong with a history."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TypeVar

from kafkalab.history.records import History, Place, Poll, Record, Send
from kafkalab.history.sources import Sources, history_of
from kafkalab.history.verdict import TERMS, Anomaly, Verdict

__all__ = ["judge", "verdict_on"]

_Event = TypeVar("_Event", Send, Poll)


def judge(
    *, sent: Sources = (), log: Sources | None = None, polled: Sources = (), aborted: Sources = (), topic: str | None = None
) -> Verdict:
    """Compare what was sent with what is in the log and what consumers got.

    Each source is a `LedgerProducer`, or a list of: its entries, messages (from a consumer or a delivery report),
    Spark's rows (``topic``, ``partition``, ``offset``, ``value``; only ``value`` is required), or values. A dict holds
    several sources by name. Values tell records apart, so send each value only once.

    The terms are those of Maelstrom's Kafka workload (`TERMS`).

    Parameters
    ----------
    sent
        What producers sent. Delivery reports show which records failed, and which may have failed.
    log
        The log, read to its end. Without it, a record counts as lost only if later records were polled.
    polled
        What consumers got, in the order in which they got it. A list within the list holds the records of one poll.
    aborted
        What was sent in aborted transactions.
    topic
        The topic of sources that don't name one, if there are several topics.

    Raises
    ------
    ValueError
        If two sent records have the same value, or a source's topic is unknown.

    Examples
    --------
    >>> judge(sent=["a", "b"], log=["a", "a"])
    the topic: 2 acknowledged, 2 in the log
    1 lost write. Kafka acknowledged the record, and it isn't in the log.
       b: sent by producer, acknowledged in the topic
    1 duplicate. The record was sent once, and it's in the log more than once.
       a: 2 times in the topic
    """
    return verdict_on(history_of(sent, aborted, log, polled, topic))


def verdict_on(history: History) -> Verdict:
    """Return the verdict on a history."""
    evidence = _Evidence(history)
    anomalies = [
        *_lost_and_unseen(history, evidence),
        *_aborted_reads(history, evidence),
        *_duplicates(history, evidence),
        *_inconsistent_offsets(history, evidence),
        *_backward_sends(history, evidence),
        *_poll_jumps(history, evidence),
    ]
    ranks = {kind: rank for rank, kind in enumerate(TERMS)}
    return Verdict(history, tuple(sorted(anomalies, key=lambda anomaly: ranks[anomaly.kind])))


class _Evidence:
    """What the log and consumers have shown, by value and by place."""

    def __init__(self, history: History) -> None:
        self.copies: defaultdict[tuple[str, str], list[Record]] = defaultdict(list)
        self.offsets: defaultdict[tuple[str, int | None], list[int]] = defaultdict(list)
        self.at: dict[Place, Record] = {}
        self.polls: defaultdict[tuple[str, str], list[Poll]] = defaultdict(list)
        self.bad = {(s.topic, s.value) for s in history.sends if s.outcome in ("aborted", "failed")}
        counted: set[tuple[Place, str | None]] = set()
        for record in history.log if history.log is not None else history.polls:
            twice = record.offset is not None and (record.place, record.value) in counted  # polled again, not a second copy
            unplaced = history.log is None and record.offset is None
            if record.value is not None and not twice and not unplaced:
                self.copies[record.topic, record.value].append(record)
            counted.add((record.place, record.value))
        for record in (*(history.log or ()), *history.polls):
            if record.offset is not None and (record.topic, record.value) not in self.bad and record.place not in self.at:
                self.at[record.place] = record
                self.offsets[record.topic, record.partition].append(record.offset)
        for offsets in self.offsets.values():
            offsets.sort()
        for poll in history.polls:
            if poll.value is not None:
                self.polls[poll.topic, poll.value].append(poll)

    def between(self, before: Record, after: Record) -> tuple[Record, ...]:
        """Return the records between two offsets of a partition."""
        if before.offset is None or after.offset is None:
            return ()
        offsets = self.offsets[after.topic, after.partition]
        inside = offsets[bisect_right(offsets, before.offset) : bisect_left(offsets, after.offset)]
        return tuple(self.at[after.topic, after.partition, offset] for offset in inside)

    def offset(self, send: Send) -> int | None:
        """Return its offset in the partition: the acknowledged one, or else that of its first copy."""
        if send.offset is not None or send.value is None:
            return send.offset
        copies = self.copies.get((send.topic, send.value), ())
        return next((copy.offset for copy in copies if copy.partition == send.partition), None)


def _lost_and_unseen(history: History, evidence: _Evidence) -> Iterator[Anomaly]:
    reach = _reach(history.polls)
    for send in history.sends:
        if send.outcome != "acknowledged" or send.value is None:
            continue
        name = send.topic, send.value
        first, last = reach.get((send.topic, send.partition), (0, -1))
        passed = send.offset is not None and first < send.offset < last
        if name not in evidence.copies and (history.log is not None or (passed and name not in evidence.polls)):
            yield Anomaly("lost write", send)
        elif history.polls and name not in evidence.polls and not passed:
            yield Anomaly("unseen", send)


def _reach(polls: Iterable[Poll]) -> dict[tuple[str, int | None], tuple[int, int]]:
    """Return the lowest and the highest polled offset of each partition."""
    reach: dict[tuple[str, int | None], tuple[int, int]] = {}
    for poll in polls:
        if poll.offset is not None:
            first, last = reach.get((poll.topic, poll.partition), (poll.offset, poll.offset))
            reach[poll.topic, poll.partition] = min(first, poll.offset), max(last, poll.offset)
    return reach


def _aborted_reads(history: History, evidence: _Evidence) -> Iterator[Anomaly]:
    for send in history.sends:
        if send.outcome in ("aborted", "failed") and send.value is not None:
            name = send.topic, send.value
            readers = (*evidence.polls.get(name, ()), *(evidence.copies.get(name, ()) if history.log is not None else ()))
            if readers:
                yield Anomaly("aborted read", send, readers)


def _duplicates(history: History, evidence: _Evidence) -> Iterator[Anomaly]:
    sends = {(send.topic, send.value): send for send in history.sends}
    for name, copies in evidence.copies.items():
        if len(copies) > 1:
            yield Anomaly("duplicate", sends.get(name, copies[-1]), tuple(copies))


def _inconsistent_offsets(history: History, evidence: _Evidence) -> Iterator[Anomaly]:
    records_at: dict[Place, dict[str | None, Record]] = defaultdict(dict)
    acknowledged = (send for send in history.sends if send.outcome == "acknowledged")
    for record in (*acknowledged, *(history.log or ()), *history.polls):
        if record.offset is not None and record.partition is not None:
            records_at[record.place].setdefault(record.value, record)
    for records in records_at.values():
        if len(records) > 1:
            first, *conflicting = records.values()
            yield Anomaly("inconsistent offset", first, tuple(conflicting))


def _backward_sends(history: History, evidence: _Evidence) -> Iterator[Anomaly]:
    for sends in _by_partition(send for send in history.sends if send.outcome == "acknowledged"):
        for before, after in pairwise(sends):
            previous, current = evidence.offset(before), evidence.offset(after)
            if previous is not None and current is not None and current <= previous:
                yield Anomaly("non-monotonic send", after, (before,))


def _poll_jumps(history: History, evidence: _Evidence) -> Iterator[Anomaly]:
    for polls in _by_partition(history.polls):
        for before, after in pairwise(polls):
            if before.offset is None or after.offset is None:
                continue
            internal = before.call == after.call
            if after.offset <= before.offset:
                yield Anomaly("non-monotonic poll", after, (before,), internal)
            elif skipped := evidence.between(before, after):
                yield Anomaly("poll skip", after, skipped, internal)


def _by_partition(records: Iterable[_Event]) -> Iterable[Sequence[_Event]]:
    lanes: defaultdict[tuple[str, str, int | None], list[_Event]] = defaultdict(list)
    for record in records:
        lanes[record.who, record.topic, record.partition].append(record)
    return lanes.values()

"""Arrange a space-time diagram: arrows between lines in time order, with many folded into few."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from kafkalab.history.records import History, Place, Poll, Record, Send
from kafkalab.history.verdict import TERMS, Kind, Verdict

__all__ = ["Arrow", "Lane", "Run", "SpaceTimeLayout", "Status", "lay_out"]

_IN_FULL = 4  # a run of up to this many arrows is drawn in full; of a longer one, only the first and the last
_RANKS: dict[str, int] = {kind: rank for rank, kind in enumerate(TERMS)}
_OFFENDING = 12  # runs of offending records that are drawn; further ones are folded, too

Lane = tuple[Literal["producer", "partition", "consumer"], str]
"""The kind of a line, and its name."""

Status = Kind | Literal["right", "not acknowledged", "folded"]
"""What is wrong with a record. Some of the ``folded`` ones are offending."""


@dataclass(frozen=True, slots=True, eq=False)
class Arrow:
    """A record on its way from one line to another. One without a known sender stays on its partition's line.

    Attributes
    ----------
    source, target
        The lines.
    start, end
        Start and end as places in the order of all events.
    record
        Which record.
    status
        What's wrong with it, if anything.
    arrives
        False if the record isn't there in the end.
    """

    source: Lane
    target: Lane
    start: float
    end: float
    record: Record
    status: Status = "right"
    arrives: bool = True


@dataclass(frozen=True)
class Run:
    """Consecutive arrows between two lines with the same status."""

    status: Status
    arrows: tuple[Arrow, ...]

    @property
    def folded(self) -> bool:
        """Whether only the first and the last arrow are drawn, with a band between them."""
        return len(self.arrows) > _IN_FULL

    @property
    def shown(self) -> tuple[Arrow, ...]:
        """The arrows that are drawn one by one."""
        return (self.arrows[0], self.arrows[-1]) if self.folded else self.arrows

    @property
    def offending(self) -> bool:
        """Whether something is wrong with its records."""
        return self.status in TERMS


@dataclass(frozen=True)
class SpaceTimeLayout:
    """Everything in the diagram.

    Attributes
    ----------
    verdict
        The verdict on the history shown.
    lanes
        The lines, from the top.
    runs
        The arrows.
    clock
        Places with a known time, each with it (seconds since the epoch), in order.
    """

    verdict: Verdict
    lanes: tuple[Lane, ...]
    runs: tuple[Run, ...]
    clock: tuple[tuple[float, float], ...]

    def order_at(self, moment: float) -> float | None:
        """Return a moment's place in the order, or None if it's unknown."""
        if not self.clock or not self.clock[0][1] <= moment <= self.clock[-1][1]:
            return None
        return self.clock[bisect_left(self.clock, moment, key=lambda known: known[1])][0] - 0.5


def lay_out(verdict: Verdict) -> SpaceTimeLayout:
    """Arrange a verdict's history."""
    log = _read(verdict.history)
    order = _Order(verdict.history, log)
    statuses = _statuses(verdict)
    groups = [*_sent(verdict, log, order, statuses), *_polled(verdict, log, order, statuses)]
    runs = [[Run(status, tuple(run)) for status, run in groupby(group, key=lambda arrow: arrow.status)] for group in groups]
    lanes = {lane for group in groups for arrow in group for lane in (arrow.source, arrow.target)}
    return SpaceTimeLayout(verdict, tuple(sorted(lanes, key=_from_the_top)), tuple(_fewer(runs)), order.clock)


def _from_the_top(lane: Lane) -> tuple[int, str, int]:
    kind, name = lane
    head, _, number = name.rpartition("-")
    named = (head, int(number)) if number.isdigit() else (name, -1)
    return ("producer", "partition", "consumer").index(kind), *named


def _lane(record: Record) -> Lane:
    """Return the line of a record's partition."""
    return "partition", record.topic if record.partition is None else f"{record.topic}-{record.partition}"


def _statuses(verdict: Verdict) -> dict[Record, Status]:
    """Return the worst problem of each record."""
    statuses: dict[Record, Status] = {}
    for anomaly in verdict.anomalies:
        offending = (anomaly.record, *(anomaly.others if anomaly.kind == "aborted read" else ()))
        for record in offending:
            # A duplicate consists of its further copies, a skip of the skipped records: each has its own arrow.
            if anomaly.kind not in ("duplicate", "poll skip"):
                statuses.setdefault(record, anomaly.kind)
    return statuses


class _Log:
    """The records of the log in order. If the log wasn't read, the records that consumers got, each once."""

    def __init__(self, records: Iterable[Record]) -> None:
        self.records = sorted(records, key=lambda record: -1 if record.offset is None else record.offset)
        self.copies: defaultdict[tuple[str, str | None], list[Record]] = defaultdict(list)
        self.at: dict[tuple[Place, str | None], Record] = {}
        for record in self.records:
            self.copies[record.topic, record.value].append(record)
            self.at.setdefault((record.place, record.value), record)

    def of(self, send: Send) -> tuple[Record | None, list[Record]]:
        """Return the acknowledged copy (or the one that might be it), and all further ones."""
        copies = self.copies.get((send.topic, send.value), [])
        own = next((copy for copy in copies if copy.offset == send.offset), copies[0] if copies else None)
        return own, [copy for copy in copies if copy is not own]

    def under(self, poll: Poll) -> Record | None:
        """Return the record that a consumer got."""
        record = self.at.get((poll.place, poll.value))
        return record or next(iter(self.copies.get((poll.topic, poll.value), ())), None)


def _read(history: History) -> _Log:
    if history.log is not None:
        return _Log(history.log)
    return _Log(Record(*place, value) for place, value in dict.fromkeys((poll.place, poll.value) for poll in history.polls))


class _Order:
    """The order of all events. Without complete timestamps, it follows the order of the lists."""

    def __init__(self, history: History, log: _Log) -> None:
        ends = [send.ended for send in history.sends if send.outcome == "acknowledged"]
        timed = bool(ends) and None not in ends
        number: Counter[str] = Counter()
        moments: dict[tuple[str, Record], float] = {}
        for send in history.sends:
            number[send.who] += 1
            began = send.began if timed and send.began is not None else float(number[send.who])
            moments["sent", send] = began
            moments["ended", send] = send.ended if timed and send.ended is not None else began + 0.5
        self._came = self._into_log(history, log, moments)
        last = max(moments.values(), default=0.0)
        moments |= {("polled", poll): last + 1 + count for count, poll in enumerate(history.polls)}
        events = sorted(moments.items(), key=lambda event: event[1])  # stable: events with the same time keep their order
        self._order = {event: float(place) for place, (event, _) in enumerate(events)}
        known = [(float(place), moment) for place, ((what, _), moment) in enumerate(events) if what in ("sent", "ended")]
        self.clock = tuple(known) if timed else ()

    @staticmethod
    def _into_log(history: History, log: _Log, moments: dict[tuple[str, Record], float]) -> dict[Record, tuple[str, Record]]:
        """Return the event that brought each record into the log: its acknowledgement, or one after the previous record."""
        own = {record: send for send in history.sends for record in [log.of(send)[0]] if record is not None}
        came: dict[Record, tuple[str, Record]] = {}
        last: dict[Lane, float] = {}
        first = min(moments.values(), default=0.0)
        for number, record in enumerate(log.records):
            lane, send = _lane(record), own.get(record)
            before = last.get(lane, first)
            if send is not None:
                came[record] = "ended", send
            else:
                came[record] = "copied", record
                moments["copied", record] = before if history.sends else float(number)
            last[lane] = max(before, moments[came[record]])
        return came

    def sent(self, send: Send) -> float:
        return self._order["sent", send]

    def ended(self, send: Send) -> float:
        return self._order["ended", send]

    def came(self, record: Record) -> float:
        """Return the place at which a record came into the log."""
        return self._order[self._came[record]]

    def polled(self, poll: Poll) -> float:
        return self._order["polled", poll]


def _sent(verdict: Verdict, log: _Log, order: _Order, statuses: dict[Record, Status]) -> Iterator[list[Arrow]]:
    """Yield arrows from producers into the log, and records there without a known sender."""
    first: defaultdict[tuple[Lane, Lane], list[Arrow]] = defaultdict(list)
    further: defaultdict[tuple[Lane, Lane], dict[int, list[Arrow]]] = defaultdict(dict)
    sent: set[Record] = set()
    for send in verdict.history.sends:
        producer: Lane = "producer", send.who
        own, copies = log.of(send)
        end = order.ended(send) if own is None else order.came(own)
        status: Status = statuses.get(send, "right" if send.outcome == "acknowledged" else "not acknowledged")
        arrives = own is not None or (send.outcome == "acknowledged" and status != "lost write")
        first[producer, _lane(own or send)].append(
            Arrow(producer, _lane(own or send), order.sent(send), end, send, status, arrives)
        )
        for copy in copies:
            arrow = Arrow(producer, _lane(copy), order.sent(send), order.came(copy), copy, statuses.get(copy, "duplicate"))
            further[producer, _lane(copy)].setdefault(len(first[producer, _lane(own or send)]), []).append(arrow)
        sent |= {record for record in (own, *copies) if record is not None}
    yield from first.values()
    for numbered in further.values():  # of consecutive sends only, because many correct ones may lie between others
        for _, neighbours in groupby(enumerate(numbered), key=lambda item: item[1] - item[0]):
            yield [arrow for _, number in neighbours for arrow in numbered[number]]
    alone: defaultdict[Lane, list[Arrow]] = defaultdict(list)
    for record in log.records:
        if record not in sent:
            lane, at = _lane(record), order.came(record)
            copied = record is not log.copies[record.topic, record.value][0]
            alone[lane].append(Arrow(lane, lane, at, at, record, statuses.get(record, "duplicate" if copied else "right")))
    yield from alone.values()


def _polled(verdict: Verdict, log: _Log, order: _Order, statuses: dict[Record, Status]) -> Iterator[list[Arrow]]:
    """Yield arrows from the log to consumers, including polls that should have returned a record but didn't."""
    skips = {anomaly.record: anomaly.others for anomaly in verdict["poll skip"]}
    groups: defaultdict[tuple[Lane, Lane], list[Arrow]] = defaultdict(list)
    for poll in verdict.history.polls:
        consumer: Lane = "consumer", poll.who
        arrows, end = groups[_lane(poll), consumer], order.polled(poll)
        for skipped in skips.get(poll, ()):
            record = log.at.get((skipped.place, skipped.value))
            start = end - 1 if record is None else order.came(record)
            arrows.append(Arrow(_lane(poll), consumer, start, end - 0.5, skipped, "poll skip", arrives=False))
        record = log.under(poll)
        start = end - 1 if record is None else order.came(record)
        arrows.append(Arrow(_lane(poll), consumer, start, end, poll, statuses.get(poll, "right")))
    yield from groups.values()


def _fewer(groups: Sequence[Sequence[Run]]) -> Iterator[Run]:
    """Fold all but the worst of the offending runs into their neighbours."""
    offending = [run for runs in groups for run in runs if run.offending]
    worst = sorted(offending, key=lambda run: (_RANKS[run.status], run.arrows[0].start))
    kept = set(map(id, worst[:_OFFENDING]))
    for runs in groups:
        alone = kept | {id(run) for run in runs if run.status == "not acknowledged"}
        for _, neighbours in groupby(runs, key=lambda run: id(run) if id(run) in alone else 0):
            several = list(neighbours)
            arrows = tuple(arrow for run in several for arrow in run.arrows)
            as_it_is = len(several) == 1 and (id(several[0]) in kept or not several[0].offending)
            yield several[0] if as_it_is else Run("folded", arrows)

"""What is wrong with a history, in the terms of Maelstrom's Kafka workload.

https://github.com/jepsen-io/maelstrom/blob/main/doc/workloads.md#workload-kafka explains the terms.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from kafkalab.history.records import History, Poll, Record, Send

__all__ = ["TERMS", "Anomaly", "Kind", "Verdict"]

Kind = Literal[
    "lost write",
    "aborted read",
    "duplicate",
    "inconsistent offset",
    "non-monotonic send",
    "non-monotonic poll",
    "poll skip",
    "unseen",
]
"""What can be wrong, the worst first."""

TERMS: Mapping[Kind, str] = {
    "lost write": "Kafka acknowledged the record, and it isn't in the log.",
    "aborted read": "A reader got a record that was aborted or refused.",
    "duplicate": "The record was sent once, and it's in the log more than once.",
    "inconsistent offset": "Two different records were said to be at one offset.",
    "non-monotonic send": "The producer's next record got a lower offset than the one before.",
    "non-monotonic poll": "The consumer got an offset again, or went back to a lower one.",
    "poll skip": "The consumer jumped over records that are in the log.",
    "unseen": "No consumer has polled the record yet, which isn't wrong by itself.",
}
"""Each term in one sentence."""

_SHOWN = 3  # how many anomalies of each kind the text shows


@dataclass(frozen=True)
class Anomaly:
    """One anomaly.

    Attributes
    ----------
    kind
        Its name.
    record
        The offending record: a `Send`, a `Poll`, or a `Record` of the log.
    others
        The evidence: a duplicate's copies in the log, the record that now has the offset, the previous send or poll,
        the skipped records, or the polls of an aborted record.
    internal
        For polls: True within the records of one poll, False between two polls. None for other kinds.
    """

    kind: Kind
    record: Record
    others: tuple[Record, ...] = ()
    internal: bool | None = None

    def __str__(self) -> str:
        words = {
            "lost write": self._lost,
            "aborted read": self._aborted,
            "duplicate": self._duplicate,
            "inconsistent offset": self._inconsistent,
            "non-monotonic send": self._back,
            "non-monotonic poll": self._back,
            "poll skip": self._skip,
            "unseen": self._lost,
        }
        return f"{self.record.value}: {words[self.kind]()}"

    def _lost(self) -> str:
        return f"sent by {_who(self.record)}, acknowledged in {self.record.where}"

    def _aborted(self) -> str:
        fate = self.record.outcome if isinstance(self.record, Send) else "aborted"
        readers = sorted({_who(other) for other in self.others})
        return f"sent by {_who(self.record)} and {fate}, read by {', '.join(readers)} in {self.others[0].where}"

    def _duplicate(self) -> str:
        if self.record.offset is None:
            return f"{len(self.others)} times in {self.record.topic}"
        return f"in {' and '.join(copy.where for copy in self.others)}"

    def _inconsistent(self) -> str:
        return f"{self._event()}, like {' and '.join(str(other.value) for other in self.others)}"

    def _back(self) -> str:
        [before] = self.others
        return f"{self._event()}, after offset {before.offset}{self._call()}"

    def _skip(self) -> str:
        count, first = len(self.others), self.others[0].offset
        jump = f"{count:,} record{'s' if count > 1 else ''} from offset {first} on"
        return f"{self._event()}, after a jump over {jump}{self._call()}"

    def _event(self) -> str:
        done = (
            "acknowledged to" if isinstance(self.record, Send) else "polled by" if isinstance(self.record, Poll) else "read by"
        )
        return f"{done} {_who(self.record)} in {self.record.where}"

    def _call(self) -> str:
        return " in the same poll" if self.internal else ""


@dataclass(frozen=True, repr=False)
class Verdict:
    """The anomalies of a history.

    ``verdict["lost write"]`` returns those of one kind, and `found` names the kinds that occurred. Its text explains
    each kind that occurred, and shows the first records of it. `SpaceTime` draws it.

    Attributes
    ----------
    history
        The history that was judged.
    anomalies
        All anomalies by kind, the worst first.
    """

    history: History
    anomalies: tuple[Anomaly, ...]

    def __getitem__(self, kind: Kind) -> tuple[Anomaly, ...]:
        if kind not in TERMS:
            raise KeyError(f"{kind!r} is none of {', '.join(get_args(Kind))}")
        return tuple(anomaly for anomaly in self.anomalies if anomaly.kind == kind)

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong. Records that are only unseen may still arrive."""
        return all(anomaly.kind == "unseen" for anomaly in self.anomalies)

    @property
    def counts(self) -> dict[Kind, int]:
        """The number of anomalies of each kind that occurred, the worst first."""
        return {kind: len(self[kind]) for kind in TERMS if self[kind]}

    @property
    def found(self) -> str:
        """The names of the kinds that occurred, or ``no anomaly``."""
        return ", ".join(self.counts) or "no anomaly"

    @property
    def summary(self) -> str:
        """A summary of the history in one line."""
        history = self.history
        acknowledged = sum(send.outcome == "acknowledged" for send in history.sends)
        parts = [f"{acknowledged:,} acknowledged"] if history.sends else []
        parts += [f"{len(history.sends) - acknowledged:,} not"] if acknowledged < len(history.sends) else []
        parts += [f"{len(history.log):,} in the log"] if history.log is not None else []
        parts += [f"{len(history.polls):,} polled"] if history.polls else []
        return f"{', '.join(history.topics) or 'nothing'}: {', '.join(parts) or 'no records'}"

    def __repr__(self) -> str:
        lines = [self.summary]
        for kind, count in self.counts.items():
            lines.append(f"{counted(count, kind)}. {TERMS[kind]}")
            lines += [f"   {anomaly}" for anomaly in self[kind][:_SHOWN]]
            lines += [f"   … and {count - _SHOWN:,} more"] if count > _SHOWN else []
        return "\n".join(lines if self.anomalies else [*lines, "No anomaly."])


def counted(count: int, kind: Kind) -> str:
    """Return a number of anomalies with their kind, in words."""
    return f"{count:,} {kind if count == 1 or kind == 'unseen' else f'{kind}s'}"


def _who(record: Record) -> str:
    return record.who if isinstance(record, Send | Poll) else "the reader of the log"

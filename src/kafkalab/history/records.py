"""A history: records that were sent, records in the log, and records that consumers polled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["History", "Outcome", "Place", "Poll", "Record", "Send"]

Outcome = Literal["acknowledged", "failed", "unknown", "aborted"]
"""The outcome of a send. A ``failed`` record was rejected, so it isn't in the log; an ``unknown`` one may be there or not."""

Place = tuple[str, int | None, int | None]
"""Topic, partition and offset."""


# Compared by identity: two polls of one record are two events.
@dataclass(frozen=True, slots=True, eq=False)
class Record:
    """A record in the log.

    Attributes
    ----------
    topic, partition, offset
        Its place as far as it's known. For a list of values, partition and offset are None.
    value
        Its value as text. It tells the records of a topic apart, so it must be unique. None for a tombstone.
    """

    topic: str
    partition: int | None
    offset: int | None
    value: str | None

    @property
    def place(self) -> Place:
        """Its topic, partition and offset."""
        return self.topic, self.partition, self.offset

    @property
    def where(self) -> str:
        """Its place in words."""
        log = self.topic if self.partition is None else f"{self.topic}-{self.partition}"
        return log if self.offset is None else f"{log} at offset {self.offset}"


@dataclass(frozen=True, slots=True, eq=False)
class Send(Record):
    """A record that a producer sent. Its place is the acknowledged one.

    Attributes
    ----------
    who
        The producer's name.
    outcome
        Whether it was acknowledged; see `Outcome`.
    began, ended
        When it was sent and when its outcome was known, in seconds since the epoch, or None.
    """

    who: str
    outcome: Outcome
    began: float | None
    ended: float | None


@dataclass(frozen=True, slots=True, eq=False)
class Poll(Record):
    """A record that a consumer got.

    Attributes
    ----------
    who
        The consumer's name.
    call
        The number of the poll that returned it, per consumer.
    """

    who: str
    call: int


@dataclass(frozen=True)
class History:
    """All sends, the log and all polls.

    Attributes
    ----------
    sends
        Each producer's sends in order.
    log
        The log, read to its end, or None if it wasn't read.
    polls
        Each consumer's polls in order.
    """

    sends: tuple[Send, ...] = ()
    log: tuple[Record, ...] | None = None
    polls: tuple[Poll, ...] = ()

    @property
    def topics(self) -> tuple[str, ...]:
        """Names of all topics in it, sorted."""
        return tuple(sorted({record.topic for part in (self.sends, self.log or (), self.polls) for record in part}))

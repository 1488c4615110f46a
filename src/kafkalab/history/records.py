"""A history: records that were sent, records in the log, and records that consumers polled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["History", "Outcome", "Place", "Poll", "Record", "Send"]

Outcome = Literal["acknowledged", "failed", "unknown", "aborted"]
"""What became of a send: ``failed`` was refused, so it isn't in the log; ``unknown`` may be there or not."""

Place = tuple[str, int | None, int | None]
"""Topic, partition and offset."""


# Compared by identity: two polls of one record are two events.
@dataclass(frozen=True, slots=True, eq=False)
class Record:
    """A record in the log.

    Attributes
    ----------
    topic, partition, offset
        Where it is, as far as that is known: what a list of values says nothing about is None.
    value
        Its value as text. It tells records of a topic apart, so it must be there once only. None for a tombstone.
    """

    topic: str
    partition: int | None
    offset: int | None
    value: str | None

    @property
    def place(self) -> Place:
        """Where it is."""
        return self.topic, self.partition, self.offset

    @property
    def where(self) -> str:
        """The same in words."""
        log = self.topic if self.partition is None else f"{self.topic}-{self.partition}"
        return log if self.offset is None else f"{log} at offset {self.offset}"


@dataclass(frozen=True, slots=True, eq=False)
class Send(Record):
    """A record that a producer sent; its place is the one that was acknowledged.

    Attributes
    ----------
    who
        The producer's name.
    outcome
        What became of it.
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
        The number of the poll that brought it, per consumer.
    """

    who: str
    call: int


@dataclass(frozen=True)
class History:
    """All of it.

    Attributes
    ----------
    sends
        Each producer's in the order in which it sent them.
    log
        The log as it was read to its end, or None if nobody did.
    polls
        Each consumer's in the order in which it got them.
    """

    sends: tuple[Send, ...] = ()
    log: tuple[Record, ...] | None = None
    polls: tuple[Poll, ...] = ()

    @property
    def topics(self) -> tuple[str, ...]:
        """Names of all topics in it, sorted."""
        return tuple(sorted({record.topic for part in (self.sends, self.log or (), self.polls) for record in part}))

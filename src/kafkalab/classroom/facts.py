"""What the class knows of its seats: the latest event for each thing that a seat can tell."""

from __future__ import annotations

import math
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeGuard

from kafkalab.classroom.events import Event
from kafkalab.classroom.released import Results

__all__ = ["Facts", "Seat", "Seen", "Struggle"]

_REQUIREMENTS = range(1, 100)  # of a check
_MOST = 1000  # things that one seat can tell; the course has a tenth, and a seat that makes up more gets no room for them


@dataclass(frozen=True)
class Seen:
    """An event, and when the broker appended it, in seconds since 1970."""

    event: Event
    appended: float


@dataclass(frozen=True)
class Struggle:
    """A requirement that a seat hasn't met: since when, in seconds since 1970, and how often it was tried."""

    since: float
    attempts: int


@dataclass
class Seat:
    """What is known of a seat.

    Attributes
    ----------
    latest
        The latest event by kind, subject and round.
    unmet
        Requirements that the last check didn't find met, by check and number.
    foreign
        How many records of its topic aren't events.
    last_seen
        When its last event came, in seconds since 1970. None if none has.
    """

    latest: dict[tuple[str, str, int], Seen] = field(default_factory=dict)
    unmet: dict[tuple[str, int], Struggle] = field(default_factory=dict)
    foreign: int = 0
    last_seen: float | None = None

    def newest(self, *kinds: str) -> Seen | None:
        """Return the newest event of these kinds, whatever it's about."""
        seen = [one for (kind, _, _), one in self.latest.items() if kind in kinds]
        return max(seen, key=lambda one: one.event.at, default=None)


class Facts:
    """The facts about all seats. Several threads may use it.

    Whatever comes twice changes nothing: of events with the same seat, kind, subject and round, the one with the highest
    `Event.at` counts, and a record that isn't an event is counted by its offset.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._seats: defaultdict[str, Seat] = defaultdict(Seat)
        self._counted: dict[tuple[str, int], int] = {}  # the highest offset of what isn't an event, by seat and partition
        self._lowered: dict[str, int] = {}  # `at` of the help call that the instructor has lowered
        self._followers: list[Callable[[], object]] = []

    def upsert(self, events: Iterable[tuple[str, Event, float]]) -> None:
        """Take events: seat, event, and when the broker appended it (seconds since 1970)."""
        with self._lock:
            for seat, event, appended in sorted(events, key=lambda one: one[1].at):
                self._take(seat, Seen(event, appended))
        self._tell()

    def count_foreign(self, records: Iterable[tuple[str, int, int]]) -> None:
        """Take records that aren't events: seat, partition and offset. Those of a partition come in the order of offsets."""
        with self._lock:
            for seat, partition, offset in sorted(records):
                if offset > self._counted.get((seat, partition), -1):
                    self._counted[seat, partition] = offset
                    self._seats[seat].foreign += 1
        self._tell()

    def lower(self, seat: str) -> None:
        """Lower a seat's call for help, because somebody helps. A new call of the seat shows again."""
        with self._lock:
            if (call := self._seats[seat].newest("help")) is not None:
                self._lowered[seat] = call.event.at
        self._tell()

    def call(self, seat: str) -> Seen | None:
        """Return a seat's call for help if it's raised."""
        with self._lock:
            call = self._seats[seat].newest("help") if seat in self._seats else None
            if call is None or not call.event.raised or call.event.at <= self._lowered.get(seat, -1):
                return None
            return call

    def seats(self, names: Iterable[str]) -> dict[str, Seat]:
        """Return copies of seats, in the order of their names. A seat that hasn't sent anything is there, too."""
        with self._lock:
            found = {name: self._seats[name] if name in self._seats else Seat() for name in sorted(names)}
            return {
                name: Seat(dict(seat.latest), dict(seat.unmet), seat.foreign, seat.last_seen) for name, seat in found.items()
            }

    def results(self, question: str, n_options: int, names: Iterable[str]) -> Results:
        """Return how these seats voted on a question, and what they measured. Numbers are sorted: their order says nothing.

        Parameters
        ----------
        question
            Its id.
        n_options
            How many options it has. Votes for others aren't counted. 0 if it asks for a number.
        names
            The seats.
        """
        seats = self.seats(names).values()
        votes: list[Counter[int | None]] = [Counter(), Counter()]
        guesses: list[float] = []
        measured: list[float] = []
        for seat in seats:
            both = [seat.latest.get(("voted", question, number)) for number in (1, 2)]
            for count, vote in zip(votes, both, strict=True):
                if vote is not None:
                    count[vote.event.option] += 1
            last = both[1] or both[0]
            if last is not None and _is_finite(last.event.number):
                guesses.append(float(last.event.number))
            experiment = seat.latest.get(("measured", question, 0))
            if experiment is not None and _is_finite(experiment.event.number):
                measured.append(float(experiment.event.number))
        first, second = ([count[option] for option in range(n_options)] for count in votes)
        return Results(first, second, sorted(guesses), sorted(measured))

    def voters(self, question: str, number: int, n_options: int, names: Iterable[str]) -> int:
        """Return how many of these seats have voted on a question in a round, for one of its options or with a number."""
        votes = [seat.latest.get(("voted", question, number)) for seat in self.seats(names).values()]
        return sum(vote is not None and _is_vote(vote.event, n_options) for vote in votes)

    def ran(self, question: str, names: Iterable[str]) -> int:
        """Return how many of these seats have run the cell that answers a question."""
        return sum(("measured", question, 0) in seat.latest for seat in self.seats(names).values())

    def on_change(self, follower: Callable[[], object]) -> None:
        """Call a function after each change, from the thread that made it."""
        self._followers.append(follower)

    def _tell(self) -> None:
        for follower in self._followers:
            follower()

    def _take(self, name: str, new: Seen) -> None:
        seat, event = self._seats[name], new.event
        key = (event.kind, event.subject, event.round if event.kind == "voted" else 0)
        old = seat.latest.get(key)
        if old is None and len(seat.latest) >= _MOST:
            return
        if old is not None and event.at <= old.event.at:
            return
        if event.kind == "checked":
            _struggle(seat.unmet, old.event if old else None, new)
        if event.kind == "help" and old is not None and old.event.raised and old.event.at > self._lowered.get(name, -1):
            new = Seen(event, old.appended)  # if it's raised, it was all the time
        seat.latest[key] = new
        seat.last_seen = max(seat.last_seen or 0.0, new.appended)


def _struggle(unmet: dict[tuple[str, int], Struggle], before: Event | None, new: Seen) -> None:
    """Update what a check finds unmet. A requirement that waits for another one hasn't been looked at: it stays as it was."""
    check = new.event
    for number in check.met:
        unmet.pop((check.subject, number), None)
    for number in set(check.unmet).intersection(_REQUIREMENTS):
        more = max(1, check.attempt - (before.attempt if before else 0))  # checks in one batch are one event here
        old = unmet.get((check.subject, number), Struggle(new.appended, 0))
        unmet[check.subject, number] = Struggle(old.since, old.attempts + more)


def _is_finite(number: float | None) -> TypeGuard[float]:
    return number is not None and math.isfinite(number)


def _is_vote(vote: Event, n_options: int) -> bool:
    return (vote.option is not None and 0 <= vote.option < n_options) if n_options else _is_finite(vote.number)

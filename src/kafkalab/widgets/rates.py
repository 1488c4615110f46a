"""How many records a second producers write and consumer groups read, by the offsets that looks at a cluster find."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from kafkalab.cluster.view import ClusterView

__all__ = ["AT_REST", "Place", "RateMeter", "Rates", "rate_words", "where_led"]

Place = tuple[str, int]
"""A topic and the number of a partition."""

K = TypeVar("K", bound=Hashable)

# Seconds after which a log that doesn't grow counts as at rest: looks come twice a second, and one may be late.
_WRITING = 1.25
# For a group: consumers commit every 5 s by default (auto.commit.interval.ms).
_READING = 6.0
# A new rate that differs by less than this part of the last one doesn't replace it, so that displays stay as they are.
_STEADY = 0.15
# A look that follows the last one so closely tells nothing new of the rate.
_LEAST = 0.25


@dataclass(frozen=True)
class Rates:
    """Records per second. What is at rest has none.

    Attributes
    ----------
    written
        By partition.
    read
        By group and partition: what the group commits.
    """

    written: Mapping[Place, float] = field(default_factory=dict)
    read: Mapping[tuple[str, Place], float] = field(default_factory=dict)


AT_REST = Rates()


def rate_words(rate: float) -> str:
    """Return a rate in words, to two digits: ``410/s``. Empty for none."""
    if not rate:
        return ""
    return f"{float(f'{rate:.2g}'):,.0f}/s" if rate >= 1 else "under 1/s"


def where_led(view: ClusterView, rates: Rates) -> Rates:
    """Return the rates without partitions that have no leader, or whose leader isn't up: nothing can move there."""
    led = {
        (p.topic, p.partition)
        for partitions in view.topics.values()
        for p in partitions
        if p.leader is not None and p.leader in view.brokers and view.brokers[p.leader].state == "up"
    }
    written = {place: rate for place, rate in rates.written.items() if place in led}
    return Rates(written, {(group, place): rate for (group, place), rate in rates.read.items() if place in led})


class RateMeter:
    """Measures rates from one look to the next."""

    def __init__(self) -> None:
        self._written = _Offsets[Place](_WRITING)
        self._read = _Offsets[tuple[str, Place]](_READING)
        self._at = float("-inf")
        self._rates = AT_REST

    def note(self, view: ClusterView, at: float) -> Rates:
        """Return the rates now.

        Parameters
        ----------
        view
            What a look with groups found.
        at
            The time of the look in seconds since some moment.
        """
        if at - self._at < _LEAST:
            return self._rates
        committed = {
            (id_, place): view.ends[place] - lag
            for id_, group in view.groups.items()
            for place, lag in group.lag.items()
            if place in view.ends
        }
        self._at = at
        self._rates = Rates(self._written.note(view.ends, at), self._read.note(committed, at))
        return self._rates


class _Offsets(Generic[K]):
    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._runs: dict[K, _Run] = {}
        self._shown: dict[K, float] = {}

    def note(self, offsets: Mapping[K, int], at: float) -> dict[K, float]:
        for key, offset in offsets.items():
            if key not in self._runs:
                self._runs[key] = _Run(offset, at, self._patience)
            self._runs[key].note(offset, at)
        self._runs = {key: run for key, run in self._runs.items() if at - run.seen <= self._patience}
        rates = {key: rate for key, run in self._runs.items() if (rate := run.rate(at))}
        self._shown = {key: _steady(rate, self._shown.get(key)) for key, rate in rates.items()}
        return self._shown


class _Run:
    """The steps in which an offset has grown without a rest. There's always one: where it stood before."""

    def __init__(self, offset: int, at: float, patience: float) -> None:
        self._patience = patience
        self._steps = [(at, offset)]
        self.seen = at

    def note(self, offset: int, at: float) -> None:
        grown_at, last = self._steps[-1]
        if offset < last:  # the topic or the group's offsets were made anew
            self._steps = [(at, offset)]
        elif offset > last:
            if at - grown_at > self._patience:
                self._steps = [(self.seen, last)]
            self._steps.append((at, offset))
            while len(self._steps) > 2 and self._steps[1][0] <= at - self._patience:
                del self._steps[0]
        self.seen = at

    def rate(self, at: float) -> float:
        (began, first), (grown_at, last) = self._steps[0], self._steps[-1]
        if last == first or at - grown_at > self._patience:
            return 0.0
        seconds = grown_at - began
        # After a single step nobody knows how long it will be until the next one.
        return (last - first) / (seconds if len(self._steps) > 2 else max(seconds, self._patience))


def _steady(rate: float, shown: float | None) -> float:
    return shown if shown is not None and abs(rate - shown) <= _STEADY * shown else rate

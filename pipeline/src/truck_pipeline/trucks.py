"""Simulated trucks and their reports, with all that goes wrong on the way. A seed makes them the same on every machine."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["NORMAL", "ROUTES", "Event", "Report", "Trucks"]

NORMAL = "Normal"
_DANGERS = ("Overspeed", "Lane Departure", "Unsafe tail distance", "Unsafe following distance")
_KINDS = (NORMAL,) * 8 + _DANGERS

_START = 1_506_974_400_000  # 2017-10-02 20:00:00 UTC
_TOUR = 900_000  # milliseconds from one end of a route to the other and back

ROUTES: dict[int, tuple[str, tuple[float, float], tuple[float, float]]] = {
    1198242881: ("Saint Louis to Chicago", (38.63, -90.20), (41.88, -87.63)),
    1390372503: ("Kansas City to Des Moines", (39.10, -94.58), (41.59, -93.62)),
    160405074: ("Springfield to Davenport", (39.78, -89.65), (41.52, -90.58)),
    1927624662: ("Des Moines to Chicago", (41.59, -93.62), (41.88, -87.63)),
    803014426: ("Saint Louis to Kansas City", (38.63, -90.20), (39.10, -94.58)),
}
"""Routes by their ids: name, and latitude and longitude of both ends."""

_FIRST_DRIVERS = (10, 11, 12, 21, 28)


class Event(NamedTuple):
    """What a truck reports.

    Attributes
    ----------
    timestamp
        When it happened, in milliseconds since 1970.
    truck, driver, route
        Their ids.
    kind
        ``Normal``, or what was dangerous.
    latitude, longitude
        In the American Midwest.
    correlation
        An id that no other event has. A report that is sent again has the same.
    """

    timestamp: int
    truck: int
    driver: int
    route: int
    kind: str
    latitude: float
    longitude: float
    correlation: str

    @property
    def dangerous(self) -> bool:
        """Whether its kind isn't ``Normal``."""
        return self.kind != NORMAL


@dataclass(frozen=True)
class Report:
    """A record for the topic: an event, or a malformed value.

    Attributes
    ----------
    driver
        Who drives: the record's key.
    event
        What happened; None where the value is malformed.
    malformed
        The value in the event's place.
    """

    driver: int
    event: Event | None = None
    malformed: bytes = b""


@dataclass(frozen=True)
class Trucks:
    """A fleet. The same settings make the same reports, in every version of Python.

    Attributes
    ----------
    number
        How many trucks; each has a driver of its own.
    seed
        Another one makes other events.
    interval
        Milliseconds from one event to the next, by the clocks of the trucks.
    disorder
        How many events may overtake a report on its usual way.
    late, late_by
        The share of reports that wait for a network, and how many events later they come at most.
    twice, malformed
        The shares of reports that are sent again, and that arrive as something else.
    """

    number: int = 12
    seed: int = 11
    interval: int = 50
    disorder: int = 20
    late: float = 0.03
    late_by: int = 600
    twice: float = 0.02
    malformed: float = 0.01

    def reports(self, events: int) -> list[Report]:
        """Return the reports of so many events in the order they're sent, with late, repeated and malformed ones among them."""
        # Of all generators, `random.Random.random` alone is promised to give the same numbers in every Python.
        draw = random.Random(self.seed).random
        sent: list[tuple[float, Report]] = []
        for number in range(events):
            event = self._event(number, draw)
            leaves = number + draw() * (self.late_by if draw() < self.late else self.disorder)
            sent.append((leaves, Report(event.driver, event)))
            if draw() < self.twice:
                sent.append((leaves + draw() * self.disorder, Report(event.driver, event)))
            if draw() < self.malformed:
                sent.append((leaves, Report(event.driver, malformed=_spoilt(number, draw))))
        return [report for _, report in sorted(sent, key=lambda entry: entry[0])]

    def _event(self, number: int, draw: Callable[[], float]) -> Event:
        truck = int(draw() * self.number)
        route, (_, start, end) = list(ROUTES.items())[truck % len(ROUTES)]
        driver = _FIRST_DRIVERS[truck] if truck < len(_FIRST_DRIVERS) else 30 + truck
        # Drivers differ: the later in the list, the more often they are in danger.
        kind = _KINDS[int(draw() * len(_KINDS))] if draw() < (1 + truck % 7) / 7 else NORMAL
        timestamp = _START + number * self.interval
        way = (timestamp - _START) / _TOUR + truck / self.number
        along = 0.5 - 0.5 * math.cos(2 * math.pi * way)  # there and back
        bend = 0.15 * math.sin(2 * math.pi * (2 * along + truck / 3)) * math.sin(math.pi * along)  # roads aren't straight
        latitude, longitude = (round(a + (b - a) * along + bend, 4) for a, b in zip(start, end, strict=True))
        return Event(timestamp, 100 + truck, driver, route, kind, latitude, longitude, f"{100 + truck}-{number:06d}")


def _spoilt(number: int, draw: Callable[[], float]) -> bytes:
    """Return a value that isn't an event, of one of several kinds."""
    kinds = (
        b"18,28,1198242881,Normal,39.77,-92.94",  # as text
        b"\x00\x7f\xff\xff\xffevent",  # in the form of a registry's client, with a schema that nobody registered
        b"\x00\x00",  # cut off
        b"",
    )
    return kinds[(number + int(draw() * len(kinds))) % len(kinds)]

"""The answers that the tables must have, computed from a sender's ledger without Kafka and Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from truck_pipeline.drivers import DRIVERS, Driver
from truck_pipeline.trucks import Event

__all__ = ["Answers", "answers"]


@dataclass(frozen=True)
class Answers:
    """The pipeline's answers.

    Attributes
    ----------
    counts
        Numbers of events and of dangerous events, by window (the second in which it starts) and driver.
    dangerous
        Driver and name of each dangerous event, by its correlation id. The name is None if the driver is unknown.
    """

    counts: dict[tuple[int, int], tuple[int, int]]
    dangerous: dict[str, tuple[int, str | None]]

    @property
    def events(self) -> int:
        """How many events were counted in all."""
        return sum(events for events, _ in self.counts.values())

    def lacks(self, other: Answers) -> int:
        """Return how many events of the other one are missing here, counted window by window."""
        return sum(max(0, events - self.counts.get(key, (0, 0))[0]) for key, (events, _) in other.counts.items())


def answers(events: Iterable[Event], drivers: Iterable[Driver] = DRIVERS, window: int = 60) -> Answers:
    """Compute the answers for events in any order. A repeated event counts once.

    Parameters
    ----------
    events
        Events of one or more ledgers.
    drivers
        The table of drivers.
    window
        Seconds in a window.
    """
    names = {driver.id: f"{driver.first_name} {driver.last_name}" for driver in drivers}
    counts: Counter[tuple[int, int]] = Counter()
    alarms: Counter[tuple[int, int]] = Counter()
    dangerous: dict[str, tuple[int, str | None]] = {}
    for event in {event.correlation: event for event in events}.values():
        key = (event.timestamp // 1000 // window * window, event.driver)
        counts[key] += 1
        if event.dangerous:
            alarms[key] += 1
            dangerous[event.correlation] = (event.driver, names.get(event.driver))
    return Answers({key: (number, alarms[key]) for key, number in counts.items()}, dangerous)

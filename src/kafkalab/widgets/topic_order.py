"""Which topics the live map shows first, and which it folds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kafkalab.cluster.view import ClusterView, PartitionView
from kafkalab.widgets.events import Event

__all__ = ["Arrangement", "TopicOrder", "arrange"]

# Changes that follow each other so closely belong together: the topics that a fault touches keep their order while its
# consequences come in.
_TOGETHER = 10.0

_WIDTH = 400  # pixels: the rows are measured for a panel of 420
_ROOM = 360  # pixels for rows, of the 900 that the map may be high
_CHIP_LINES = 3
_CHIP = 48  # pixels of a chip besides the topic's name
_ISR = 70  # pixels that an incomplete ISR adds to it
_REPLICA = 24  # pixels
_ROWS_FOR_SINGLES = 2  # that many topics of one partition have a row each


class TopicOrder:
    """The order of the topics: those that the caller named, then those that changed last, then by name."""

    def __init__(self, named: Sequence[str]) -> None:
        self._named = {topic: place for place, topic in enumerate(named)}
        self._touched: dict[str, int] = {}  # the number of the last burst of changes that touched a topic
        self._burst = 0
        self._last = float("-inf")

    def note(self, events: Iterable[Event]) -> None:
        """Take note of which topics changed."""
        for event in events:
            if event.topic is not None:
                if event.at - self._last > _TOGETHER:
                    self._burst += 1
                self._last = event.at
                self._touched[event.topic] = self._burst

    def of(self, topics: Iterable[str]) -> list[str]:
        """Return topics in order."""
        last = len(self._named)
        return sorted(topics, key=lambda topic: (self._named.get(topic, last), -self._touched.get(topic, 0), topic))


@dataclass(frozen=True)
class Arrangement:
    """Topics by where they stand: with a row, as one chip each, or folded."""

    rows: tuple[str, ...]
    chips: tuple[str, ...]
    folded: tuple[str, ...]


def arrange(view: ClusterView, order: Sequence[str], named: Sequence[str], columns: int) -> Arrangement:
    """Return where each topic stands, so that all of the map fits.

    Parameters
    ----------
    view
        The cluster.
    order
        Its topics in order.
    named
        Topics that the caller named. They never become chips.
    columns
        The number of brokers.
    """
    singles = [topic for topic in order if len(view.topics[topic]) == 1 and topic not in named]
    as_chips = set(singles) if len(singles) > _ROWS_FOR_SINGLES else set()
    rows: list[str] = []
    used = 0.0
    for topic in order:
        if topic not in as_chips:
            used += _height(view.topics[topic], columns)
            if rows and used > _ROOM:
                break
            rows.append(topic)
    chips: list[str] = []
    length = 0.0
    for topic in order:
        if topic in as_chips:
            (partition,) = view.topics[topic]
            length += 7 * len(topic) + _CHIP + (_ISR if len(partition.isr) < len(partition.replicas) else 0)
            if length > _CHIP_LINES * _WIDTH:
                break
            chips.append(topic)
    shown = {*rows, *chips}
    return Arrangement(tuple(rows), tuple(chips), tuple(topic for topic in order if topic not in shown))


def _height(partitions: Sequence[PartitionView], columns: int) -> float:
    held: dict[int, int] = {}
    for partition in partitions:
        for broker in partition.replicas:
            held[broker] = held.get(broker, 0) + 1
    in_line = max(1, _WIDTH // max(1, columns) // _REPLICA)
    return 23 + 22 * -(-max(held.values(), default=1) // in_line)

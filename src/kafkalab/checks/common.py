"""What the checks of several labs ask, and how they say it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

from kafkalab.checks.lab import Unmet
from kafkalab.checks.sight import Sight
from kafkalab.cluster import PartitionView

__all__ = ["Place", "answer", "any_answer", "behind", "counted", "each_once", "existing", "has_shape", "listed_brokers", "shaped"]

Place = tuple[int, int]
"""Partition and offset."""


def existing(sight: Sight, topic: str) -> tuple[PartitionView, ...]:
    """Partitions of a topic that must be there."""
    topics = sight.view().topics
    if topic not in topics:
        raise Unmet(f"There is no topic {topic!r} yet. The cluster's topics: {', '.join(topics) or 'none'}.")
    return topics[topic]


def shaped(sight: Sight, topic: str, partitions: int, copies: int) -> tuple[PartitionView, ...]:
    """Partitions of a topic that must have so many of them, each with so many replicas."""
    found = existing(sight, topic)
    if len(found) != partitions:
        raise Unmet(
            f"It has {counted(len(found), 'partition')}. How many does the text ask for? (Delete the topic and make it "
            "anew: partitions can be added, but not taken away.)"
        )
    differ = sorted({len(p.replicas) for p in found} - {copies})
    if differ:
        raise Unmet(f"Each partition has {counted(differ[0], 'replica')}, not {copies}. Which setting says on how many brokers it is kept?")
    return found


def has_shape(topic: str, partitions: int, copies: int) -> Callable[[Sight], None]:
    """Asks whether a topic has so many partitions, each with so many replicas."""

    def probe(sight: Sight) -> None:
        shaped(sight, topic, partitions, copies)

    return probe


def answer(sight: Sight, name: str, what: str) -> object:
    """What the learner gave to `check` under this name, which must not be empty."""
    given = sight.answers.get(name)
    if not given:
        raise _not_given(name, what)
    return given


def any_answer(sight: Sight, name: str, what: str) -> object:
    """As `answer`, but it may be empty."""
    if sight.answers.get(name) is None:
        raise _not_given(name, what)
    return sight.answers[name]


def _not_given(name: str, what: str) -> Unmet:
    return Unmet(f"Give check() your answer as {name}=…: {what}.")


def behind(sight: Sight, lag: Mapping[tuple[str, int], int], topic: str) -> Iterator[tuple[int, int, int | None]]:
    """Partitions where not all is committed, by a group's lag: number, end offset, and the lag (None: nothing is committed there)."""
    for partition, end in sight.end_offsets(topic).items():
        if end and lag.get((topic, partition)) != 0:
            yield partition, end, lag.get((topic, partition))


def each_once(read: Iterable[Place], wanted: Iterable[Place], who: str) -> None:
    """Raise `Unmet` unless all that was wanted was read, and no record twice."""
    counts, wanted = Counter(tuple(place) for place in read), set(wanted)
    if missing := sorted(wanted - counts.keys()):
        raise Unmet(f"{who} did not read offset {missing[0][1]} of partition {missing[0][0]} ({len(missing)} of {len(wanted)} are missing).")
    if twice := sorted(place for place, n in counts.items() if n > 1):
        raise Unmet(f"{who} read offset {twice[0][1]} of partition {twice[0][0]} more than once.")


def counted(number: int, noun: str) -> str:
    """As in "1 record" and "2 records"."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def listed_brokers(ids: Iterable[int]) -> str:
    """As in "broker 1" and "brokers 1, 2"."""
    listed = list(ids)
    return f"broker{'' if len(listed) == 1 else 's'} {', '.join(map(str, listed))}"

"""Chapter 04: threads, and a pool of workers."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from kafkalab.checks.lab import Lab, Requirement, Unmet
from kafkalab.checks.sight import Sight

__all__ = ["LABS"]

Place = tuple[int, int]
"""Partition and offset."""


# -- what several labs ask ------------------------------------------------------------------------------------------


def _answer(sight: Sight, name: str, what: str) -> object:
    given = sight.answers.get(name)
    if not given:
        raise Unmet(f"Give check() your answer as {name}=…: {what}.")
    return given


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _places(sight: Sight, topic: str) -> set[Place]:
    if not sight.partitions(topic):
        raise Unmet(f"There is no topic {topic!r} yet.")
    return {(p, offset) for p, end in sight.end_offsets(topic).items() for offset in range(end)}


def _members(sight: Sight, group: str) -> list[int]:
    """How many partitions each member has."""
    groups = sight.view().groups
    return sorted(len(m.partitions) for m in groups[group].members) if group in groups else []


def _each_once(sight: Sight, topic: str, read: Iterable[Place], who: str) -> None:
    counts, wanted = Counter(tuple(place) for place in read), _places(sight, topic)
    if missing := sorted(wanted - counts.keys()):
        raise Unmet(f"{who} did not read offset {missing[0][1]} of partition {missing[0][0]} ({len(missing)} of {len(wanted)} are missing).")
    if twice := sorted(place for place, n in counts.items() if n > 1):
        raise Unmet(f"{who} read offset {twice[0][1]} of partition {twice[0][0]} more than once.")


def _committed_to_the_end(group: str, topic: str) -> Callable[[Sight], None]:
    def probe(sight: Sight) -> None:
        _places(sight, topic)
        lag = {p: n for (name, p), n in sight.committed(group).items() if name == topic}
        for partition, end in sight.end_offsets(topic).items():
            if end and partition not in lag:
                raise Unmet(f"{group} has committed nothing in partition {partition}, where {_count(end, 'record')} stand.")
            if end and lag[partition]:
                raise Unmet(f"In partition {partition} {group} is {_count(lag[partition], 'record')} behind the end.")

    return probe


# -- a consumer for each thread -------------------------------------------------------------------------------------

_THREE, _FIVE = "stock-prices-3", "stock-prices-5"


def _read_by(sight: Sight, topic: str) -> Mapping[str, list[Place]]:
    given = _answer(sight, "read", "who read what: {topic: {thread: [(partition, offset), …]}}")
    if not given.get(topic):  # type: ignore[attr-defined]
        raise Unmet(f"Nothing was read from {topic} yet.")
    return given[topic]  # type: ignore[index]


def _two_idle(sight: Sight) -> None:
    sizes = _members(sight, _THREE)
    if len(sizes) == 1:
        raise Unmet(f"The group {_THREE} has one member. Does each thread have a consumer of its own?")
    if sizes != [0, 0, 1, 1, 1]:
        raise Unmet(f"The group {_THREE} has {_count(len(sizes), 'member')}, which own {sum(sizes)} partitions. Five threads, still running, are asked for.")


def _three_read(sight: Sight) -> None:
    read = _read_by(sight, _THREE)
    _each_once(sight, _THREE, [place for places in read.values() for place in places], "The threads")
    busy = [name for name, places in read.items() if places]
    if len(busy) != 3:
        raise Unmet(f"{_count(len(busy), 'thread')} read anything. Were the prices sent when the group had settled?")


def _all_five_read(sight: Sight) -> None:
    read = _read_by(sight, _FIVE)
    _each_once(sight, _FIVE, [place for places in read.values() for place in places], "The threads")
    if len(read) != 5 or not all(read.values()):
        busy = sum(1 for places in read.values() if places)
        raise Unmet(f"{_count(busy, 'thread')} read anything, not 5. Were the prices sent when the group had settled?")


def _left(sight: Sight) -> None:
    _committed_to_the_end(_FIVE, _FIVE)(sight)
    if sizes := _members(sight, _FIVE):
        raise Unmet(f"The group {_FIVE} still has {_count(len(sizes), 'member')}. Who closes the consumer of a thread that is told to stop?")


# -- workers --------------------------------------------------------------------------------------------------------

_LOAD, _POOL = "stock-prices-load", "contiguous"


def _account(sight: Sight, taken: Iterable[int], finished: Iterable[int]) -> tuple[int | None, int]:
    """What a learner's class says after these calls."""
    make = _answer(sight, "progress", "your class")
    try:
        account = make()  # type: ignore[operator]
        for offset in taken:
            account.taken(offset)
        for offset in finished:
            account.finished(offset)
        return account.committable(), len(account)
    except Exception as error:
        raise Unmet(f"taken: {list(taken)}, finished: {list(finished)}: your class raised {type(error).__name__}: {error}") from error


def _in_order(sight: Sight) -> None:
    if (found := _account(sight, [], [])[0]) is not None:
        raise Unmet(f"Before anything was taken, {found} may be committed? There is nothing to commit: None.")
    if (found := _account(sight, [4, 5, 6], [])[0]) is not None:
        raise Unmet(f"4, 5, 6 taken, none finished: {found}. There is nothing to commit: None.")
    for finished, wanted in (([4], 5), ([4, 5, 6], 7)):
        found, _ = _account(sight, [4, 5, 6], finished)
        if found is None:
            raise Unmet(f"4, 5, 6 taken, {finished} finished: nothing to commit.")
        if found == wanted - 1:
            raise Unmet(f"4, 5, 6 taken, {finished} finished: {found}. Committed is the *next* offset to read.")
        if found != wanted:
            raise Unmet(f"4, 5, 6 taken, {finished} finished: {found}.")


def _held_back(sight: Sight) -> None:
    for finished, wanted in (([5, 6], None), ([4, 6], 5), ([6, 4], 5), ([6, 5, 4], 7), ([5, 4], 6)):
        found, _ = _account(sight, [4, 5, 6], finished)
        if found != wanted and found is not None and (wanted is None or found > wanted):
            raise Unmet(f"4, 5, 6 taken, {finished} finished in this order: {found}. What becomes of the unfinished one in a crash?")
        if found != wanted:
            raise Unmet(f"4, 5, 6 taken, {finished} finished in this order: {found}. More is done than that.")


def _with_gaps(sight: Sight) -> None:
    for finished, wanted in (([3, 7], 8), ([7, 3, 12], 13), ([7, 12], None)):
        found, _ = _account(sight, [3, 7, 12], finished)
        if found != wanted:
            raise Unmet(f"3, 7, 12 taken, {finished} finished: {found}. There is no record between them; which one is the next that was taken?")


def _bounded(sight: Sight) -> None:
    for finished, wanted in (([], 3), ([5, 6], 3), ([4], 2), ([5, 4], 1), ([6, 5, 4], 0)):
        _, found = _account(sight, [4, 5, 6], finished)
        if found != wanted:
            raise Unmet(f"4, 5, 6 taken, {finished} finished: len() says {found}, but {wanted} may not be committed yet.")


def _nothing_passed(sight: Sight) -> None:
    path = Path(str(_answer(sight, "folder", "where the trials left their journals")), f"{_POOL}.json")
    if not path.is_file():
        raise Unmet(f"No trial of the group {_POOL!r} was made yet.")
    killed = json.loads(path.read_text())
    processed = {tuple(place) for place in killed["processed"]}
    below = {(int(p), offset) for p, end in killed["committed"].items() for offset in range(end)}
    if not below:
        raise Unmet("When it was killed, the pool had committed nothing at all.")
    if wrong := sorted(below - processed):
        raise Unmet(
            f"When it was killed, offset {wrong[0][1]} of partition {wrong[0][0]} was unprocessed, and a later one committed "
            f"({_count(len(wrong), 'record')} in all)."
        )


def _nothing_lost(sight: Sight) -> None:
    path = Path(str(_answer(sight, "folder", "where the trials left their journals")), f"{_POOL}.txt")
    if not path.is_file():
        raise Unmet(f"No trial of the group {_POOL!r} was made yet.")
    processed = {tuple(map(int, line.split())) for line in path.read_text().splitlines()}
    if lost := _places(sight, _LOAD) - processed:
        raise Unmet(f"{_count(len(lost), 'price')} {'was' if len(lost) == 1 else 'were'} never processed.")
    _committed_to_the_end(_POOL, _LOAD)(sight)


_THREADS = (
    Lab(
        "04_threads",
        "A consumer for each thread",
        (
            Requirement("five threads share three partitions, and two of them are idle", _two_idle),
            Requirement("three threads read every price, each once", _three_read),
            Requirement("five threads share five partitions, and all of them read", _all_five_read),
            Requirement("threads that were told to stop have committed and left", _left),
        ),
        (
            "Make the consumer in `run`, and use it nowhere else. `__init__` keeps what `run` needs, and makes the stop flag.",
            "The flag is a `threading.Event`: `run` loops `while not self.stopping.is_set()`, `stop` sets it and joins.",
            "Per batch: `consumer.consume(20, timeout=0.1)`, `handle(records)`, `consumer.commit(asynchronous=False)`. Close in `finally`.",
            "Or let `stocks.loop.read_batches` do it: its `stopping` is `self.stopping.is_set`.",
        ),
    ),
    Lab(
        "04_workers",
        "A pool of workers that commits nothing unfinished",
        (
            Requirement("what is finished in order may be committed", _in_order),
            Requirement("nothing is committed that comes after an unfinished record", _held_back),
            Requirement("offsets may have gaps", _with_gaps),
            Requirement("it knows how many may not be committed yet", _bounded),
            Requirement("when it was killed, no unprocessed record was below the committed offset", _nothing_passed),
            Requirement("in the end every price was processed and committed", _nothing_lost),
        ),
        (
            "Keep the offsets in the order in which they were taken, and a set of those that are not finished.",
            "Whenever one is finished: while the first of the row is finished, take it off the row. The last one taken off, + 1, may be committed.",
            "A `collections.deque` has `append` and `popleft`. `len()` is how many stand in the row, finished or not.",
        ),
    ),
)

LABS = _THREADS

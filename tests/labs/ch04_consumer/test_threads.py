"""Threads, and a pool of workers: each wrong answer gets its sentence, and the right ones pass."""

from __future__ import annotations

import json
from collections import deque
from pathlib import Path

import pytest

from kafkalab import Cluster
from support import Place, Verdict, commit, create, members, put

pytestmark = pytest.mark.cluster

# -- 04_threads -----------------------------------------------------------------------------------------------------

THREE, FIVE = "stock-prices-3", "stock-prices-5"


def test_threads(clean: Cluster, verdict: Verdict) -> None:
    verdict.says("There is no consumer group", "04_threads", clean, read={THREE: {"a": [(0, 0)]}})
    read: dict[str, dict[str, list[Place]]] = {}
    for topic, partitions in ((THREE, 3), (FIVE, 5)):
        create(clean, topic, partitions)
        places = put(clean, topic, [("IBM", "a price", n % partitions) for n in range(30)])
        read[topic] = {f"thread-{n}": [place for place in places if place[0] == n] for n in range(5)}
        commit(clean, topic, topic, dict.fromkeys(range(partitions), 30 // partitions))
    with members(clean, THREE, THREE, 5):
        verdict.passes("04_threads", clean, read=read)
        by_one = {**dict.fromkeys(read[THREE], ()), "thread-0": [p for places in read[THREE].values() for p in places]}
        wrong = {**read, THREE: by_one}  # sent too early
        verdict.says("1 thread read from stock-prices-3, not 3", "04_threads", clean, read=wrong)
        twice = {**read[THREE], "thread-1": [*read[THREE]["thread-1"], (0, 0)]}  # as in groups of their own
        verdict.says("read offset 0 of partition 0 more than once", "04_threads", clean, read={**read, THREE: twice})
        idle = {**read[FIVE], "thread-0": [], "thread-1": read[FIVE]["thread-1"] + read[FIVE]["thread-0"]}
        verdict.says("4 threads read from stock-prices-5, not 5", "04_threads", clean, read={**read, FIVE: idle})
        verdict.says("(6 of 30 are missing)", "04_threads", clean, read={**read, FIVE: {**read[FIVE], "thread-0": []}})
        verdict.says("Nothing was read from stock-prices-5", "04_threads", clean, read={THREE: read[THREE]})
        verdict.says("Give check() your answer as read=", "04_threads", clean)
    verdict.says("has 0 members", "04_threads", clean, read=read)  # stopped before the check
    with members(clean, THREE, THREE, 1):
        verdict.says("Does each thread have a consumer of its own?", "04_threads", clean, read=read)  # one for all
    with members(clean, FIVE, FIVE, 1):
        verdict.says("still has 1 member. Who closes the consumer", "04_threads", clean, read=read)
    commit(clean, FIVE, FIVE, {4: 5})
    verdict.says("stock-prices-5 has committed offset 5 in partition 4", "04_threads", clean, read=read)


# -- 04_workers -----------------------------------------------------------------------------------------------------

LOAD, TRIAL, GROUP = "stock-prices-load", "contiguous", "contiguous-1a2b3c"


class Right:
    def __init__(self) -> None:
        self.row: deque[int] = deque()
        self.open: set[int] = set()
        self.next: int | None = None

    def __len__(self) -> int:
        return len(self.row)

    def taken(self, offset: int) -> None:
        self.row.append(offset)
        self.open.add(offset)

    def finished(self, offset: int) -> None:
        self.open.remove(offset)
        while self.row and self.row[0] not in self.open:
            self.next = self.row.popleft() + 1

    def committable(self) -> int | None:
        return self.next


class Stub(Right):
    """The untouched lab."""

    def committable(self) -> None:
        return None


class HighestFinished(Right):
    """Passes what is unfinished."""

    def __init__(self) -> None:
        super().__init__()
        self.highest: int | None = None

    def finished(self, offset: int) -> None:
        super().finished(offset)
        self.highest = max(offset, self.highest or 0)

    def committable(self) -> int | None:
        return None if self.highest is None else self.highest + 1


class LastFinished(HighestFinished):
    """Commits what was finished last, so that it even goes back."""

    def finished(self, offset: int) -> None:
        Right.finished(self, offset)
        self.highest = offset


class WithoutPlusOne(Right):
    def committable(self) -> int | None:
        return None if self.next is None else self.next - 1


class FromZero(Right):
    def committable(self) -> int:
        return self.next or 0


class NoGaps(Right):
    """Counts up instead of looking at what was taken."""

    def __init__(self) -> None:
        super().__init__()
        self.first: int | None = None
        self.done: set[int] = set()

    def taken(self, offset: int) -> None:
        super().taken(offset)
        self.first = offset if self.first is None else self.first

    def finished(self, offset: int) -> None:
        super().finished(offset)
        self.done.add(offset)

    def committable(self) -> int | None:
        following = self.first
        while following in self.done:
            following += 1
        return None if following == self.first else following


class OnlyUnfinishedCount(Right):
    def __len__(self) -> int:
        return len(self.open)


class OneStep(Right):
    """Looks at the first of the row only once."""

    def finished(self, offset: int) -> None:
        self.open.remove(offset)
        if self.row[0] not in self.open:
            self.next = self.row.popleft() + 1


class Raises(Right):
    def finished(self, offset: int) -> None:
        raise IndexError("pop from an empty deque")


@pytest.fixture
def trial(clean: Cluster, tmp_path: Path) -> Path:
    """A topic of 60 prices, and what a right trial leaves."""
    create(clean, LOAD, 3)
    places = put(clean, LOAD, [("IBM", "a price", n % 3) for n in range(60)])
    commit(clean, GROUP, LOAD, dict.fromkeys(range(3), 20))
    leave(tmp_path, committed={0: 5, 1: 10}, processed=[place for place in places if place != (0, 5)], journal=places)
    return tmp_path


def leave(folder: Path, *, committed: dict[int, int], processed: list[Place], journal: list[Place]) -> None:
    (folder / f"{TRIAL}.json").write_text(json.dumps({"group": GROUP, "committed": committed, "processed": processed}))
    (folder / f"{TRIAL}.txt").write_text("".join(f"{p} {offset}\n" for p, offset in journal))


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (Stub, "4, 5, 6 taken, [4] finished: your class says that nothing may be committed"),
        (HighestFinished, "What happens to the unfinished record in a crash?"),
        (LastFinished, "What happens to the unfinished record in a crash?"),
        (WithoutPlusOne, "A committed offset is the *next* one to read"),
        (FromZero, "Nothing is taken yet, and your class says that 0 may be committed"),
        (NoGaps, "There is no record between them"),
        (OnlyUnfinishedCount, "len() says 1, but 3 may not be committed yet"),
        (OneStep, "More than that is finished"),
        (Raises, "your class raised IndexError: pop from an empty deque"),
    ],
)
def test_workers_wrong_classes(clean: Cluster, trial: Path, verdict: Verdict, wrong: type, says: str) -> None:
    verdict.says(says, "04_workers", clean, tracker=wrong, folder=trial)


def test_workers_right_and_wrong_trials(clean: Cluster, trial: Path, verdict: Verdict) -> None:
    verdict.passes("04_workers", clean, tracker=Right, folder=trial)
    verdict.says("Give check() your answer as tracker=", "04_workers", clean, folder=trial)
    elsewhere = trial / "elsewhere"
    verdict.says("There was no trial with the name 'contiguous'", "04_workers", clean, tracker=Right, folder=elsewhere)
    places = [(p, offset) for p in range(3) for offset in range(20)]
    for says, left in {
        "offset 5 of partition 0 was unprocessed, and a later one committed (1 record in all)": {"committed": {0: 6}},
        "had committed nothing at all": {"committed": {}},
        "1 price was never processed": {"journal": places[1:]},
    }.items():
        right = {"committed": {0: 5, 1: 10}, "processed": [place for place in places if place != (0, 5)], "journal": places}
        leave(trial, **{**right, **left})
        verdict.says(says, "04_workers", clean, tracker=Right, folder=trial)
    leave(trial, **right)
    commit(clean, GROUP, LOAD, {2: 17})
    verdict.says(f"{GROUP} has committed offset 17 in partition 2", "04_workers", clean, tracker=Right, folder=trial)

"""The labs of chapter 04 on threads and priorities: wrong answers are told apart from the right one, with a sentence that helps."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from kafkalab import Cluster, ConsoleConsumer
from kafkalab.workers import wait_until_shared

from .support import Verdict

pytestmark = pytest.mark.cluster

Place = tuple[int, int]


def create(cluster: Cluster, topic: str, partitions: int) -> None:
    admin = AdminClient(cluster.client_config())
    admin.create_topics([NewTopic(topic, partitions, 3)])[topic].result()
    cluster.wait_for(lambda view: topic in view.topics and None not in view.leaders(topic).values(), topic)


def send(cluster: Cluster, topic: str, records: list[tuple[str, int]]) -> list[Place]:
    """Send a record for each (key, partition); where they are."""
    places: list[Place] = []
    producer = Producer({**cluster.client_config(), "on_delivery": lambda _, m: places.append((m.partition(), m.offset()))})
    for name, partition in records:
        producer.produce(topic, key=name, value=name, partition=partition)
    assert producer.flush(20) == 0
    return sorted(places)


def commit(cluster: Cluster, group: str, topic: str, offsets: dict[int, int]) -> None:
    """Commit, without joining the group."""
    consumer = Consumer(cluster.client_config(group_id=group))
    consumer.commit(offsets=[TopicPartition(topic, p, offset) for p, offset in offsets.items()], asynchronous=False)
    consumer.close()


@contextmanager
def members(cluster: Cluster, topic: str, number: int) -> Iterator[None]:
    """So many members in the group of a topic's name."""
    with ExitStack() as stack:
        wait_until_shared(*[stack.enter_context(ConsoleConsumer(cluster, topic, group=topic)) for _ in range(number)])
        yield


# -- 04_threads -----------------------------------------------------------------------------------------------------

THREE, FIVE = "stock-prices-3", "stock-prices-5"


def test_threads(clean: Cluster, verdict: Verdict) -> None:
    verdict.says("There is no topic", "04_threads", clean, read={THREE: {"a": [(0, 0)]}})
    read: dict[str, dict[str, list[Place]]] = {}
    for topic, partitions in ((THREE, 3), (FIVE, 5)):
        create(clean, topic, partitions)
        places = send(clean, topic, [("IBM", n % partitions) for n in range(30)])
        read[topic] = {f"thread-{n}": [place for place in places if place[0] == n] for n in range(5)}
        commit(clean, topic, topic, dict.fromkeys(range(partitions), 30 // partitions))
    with members(clean, THREE, 5):
        verdict.passes("04_threads", clean, read=read)
        by_one = {**dict.fromkeys(read[THREE], ()), "thread-0": [p for places in read[THREE].values() for p in places]}
        verdict.says("1 thread read anything", "04_threads", clean, read={**read, THREE: by_one})  # sent too early
        twice = {**read[THREE], "thread-1": [*read[THREE]["thread-1"], (0, 0)]}  # as in groups of their own
        verdict.says("read offset 0 of partition 0 more than once", "04_threads", clean, read={**read, THREE: twice})
        idle = {**read[FIVE], "thread-0": [], "thread-1": read[FIVE]["thread-1"] + read[FIVE]["thread-0"]}
        verdict.says("4 threads read anything, not 5", "04_threads", clean, read={**read, FIVE: idle})
        verdict.says("(6 of 30 are missing)", "04_threads", clean, read={**read, FIVE: {**read[FIVE], "thread-0": []}})
        verdict.says("Nothing was read from stock-prices-5", "04_threads", clean, read={THREE: read[THREE]})
        verdict.says("Give check() your answer as read=", "04_threads", clean)
    verdict.says("has 0 members", "04_threads", clean, read=read)  # stopped before the check
    with members(clean, THREE, 1):
        verdict.says("Does each thread have a consumer of its own?", "04_threads", clean, read=read)  # one for all
    with members(clean, FIVE, 1):
        verdict.says("still has 1 member. Who closes the consumer", "04_threads", clean, read=read)
    commit(clean, FIVE, FIVE, {4: 5})
    verdict.says("In partition 4 stock-prices-5 is 1 record behind", "04_threads", clean, read=read)


# -- 04_workers -----------------------------------------------------------------------------------------------------

LOAD, POOL = "stock-prices-load", "contiguous"


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
    places = send(clean, LOAD, [("IBM", n % 3) for n in range(60)])
    commit(clean, POOL, LOAD, dict.fromkeys(range(3), 20))
    leave(tmp_path, committed={0: 5, 1: 10}, processed=[place for place in places if place != (0, 5)], journal=places)
    return tmp_path


def leave(folder: Path, *, committed: dict[int, int], processed: list[Place], journal: list[Place]) -> None:
    (folder / f"{POOL}.json").write_text(json.dumps({"committed": committed, "processed": processed}))
    (folder / f"{POOL}.txt").write_text("".join(f"{p} {offset}\n" for p, offset in journal))


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (Stub, "4, 5, 6 taken, [4] finished: nothing to commit"),
        (HighestFinished, "What becomes of the unfinished one in a crash?"),
        (LastFinished, "What becomes of the unfinished one in a crash?"),
        (WithoutPlusOne, "Committed is the *next* offset to read"),
        (FromZero, "Before anything was taken, 0 may be committed?"),
        (NoGaps, "There is no record between them"),
        (OnlyUnfinishedCount, "len() says 1, but 3 may not be committed yet"),
        (OneStep, "More is done than that"),
        (Raises, "your class raised IndexError: pop from an empty deque"),
    ],
)
def test_workers_wrong_classes(clean: Cluster, trial: Path, verdict: Verdict, wrong: type, says: str) -> None:
    verdict.says(says, "04_workers", clean, progress=wrong, folder=trial)


def test_workers_right_and_wrong_trials(clean: Cluster, trial: Path, verdict: Verdict) -> None:
    verdict.passes("04_workers", clean, progress=Right, folder=trial)
    verdict.says("Give check() your answer as progress=", "04_workers", clean, folder=trial)
    verdict.says("No trial of the group 'contiguous'", "04_workers", clean, progress=Right, folder=trial / "elsewhere")
    places = [(p, offset) for p in range(3) for offset in range(20)]
    for says, left in {
        "offset 5 of partition 0 was unprocessed, and a later one committed (1 record in all)": {"committed": {0: 6}},
        "had committed nothing at all": {"committed": {}},
        "1 price was never processed": {"journal": places[1:]},
    }.items():
        right = {"committed": {0: 5, 1: 10}, "processed": [place for place in places if place != (0, 5)], "journal": places}
        leave(trial, **{**right, **left})  # type: ignore[arg-type]
        verdict.says(says, "04_workers", clean, progress=Right, folder=trial)
    leave(trial, **right)  # type: ignore[arg-type]
    commit(clean, POOL, LOAD, {2: 17})
    verdict.says("In partition 2 contiguous is 3 records behind", "04_workers", clean, progress=Right, folder=trial)


# -- 04_priority ----------------------------------------------------------------------------------------------------

PRICES, READERS, FIRST = "stock-prices", "partition-readers", "important-first"
OTHERS = [("SUN", 0), ("ABC", 1), ("XYZ", 2), ("DEF", 3)]
IMPORTANT = [("IBM", 4), ("UBER", 4)]
ENDS = dict.fromkeys(range(4), 10) | {4: 20}


def test_priority(clean: Cluster, verdict: Verdict) -> None:
    create(clean, PRICES, 5)
    places = send(clean, PRICES, [*OTHERS, *IMPORTANT] * 10)
    right = {"readers": [*range(5)], "read": places, "at_once": dict.fromkeys(range(4), 1) | {4: 2}}
    verdict.says("Nothing was ever committed under the name", "04_priority", clean, **right)
    commit(clean, READERS, PRICES, ENDS)
    verdict.passes("04_priority", clean, **right)
    for says, wrong in {
        "Give check() your answer as readers=": {"readers": []},
        "Give check() your answer as read=": {"read": []},
        "4 readers for 5 partitions": {"readers": [*range(4)]},
        "did not read offset 0 of partition 2 (10 of 60 are missing)": {"read": [place for place in places if place[0] != 2]},
        "read offset 3 of partition 2 more than once": {"read": [*places, (2, 3)]},  # a reader was assigned more than its own
        "No two prices of the last partition were processed at once": {"at_once": dict.fromkeys(range(5), 1)},
        "Partition 0 had 2 workers at once": {"at_once": dict.fromkeys(range(5), 2)},
        "so two of one stock, and their order is left to chance": {"at_once": {**right["at_once"], 4: 4}},
    }.items():
        verdict.says(says, "04_priority", clean, **{**right, **wrong})
    commit(clean, READERS, PRICES, {4: 19})  # the last one read instead of the next one
    verdict.says("In partition 4 partition-readers is 1 record behind", "04_priority", clean, **right)
    send(clean, PRICES, [("IBM", 0), ("SUN", 4)])
    verdict.says("The last partition holds IBM, SUN, UBER", "04_priority", clean, **right)


def test_priority_by_subscription(clean: Cluster, verdict: Verdict) -> None:
    create(clean, PRICES, 5)
    send(clean, PRICES, [*OTHERS, *IMPORTANT])
    commit(clean, READERS, PRICES, {0: 1})
    with ConsoleConsumer(clean, PRICES, group=READERS) as subscriber:
        wait_until_shared(subscriber)
        verdict.says("has 1 member. Who assigns the partitions here?", "04_priority", clean, readers=[0], read=[(0, 0)], at_once={4: 2})


# -- 04_pause -------------------------------------------------------------------------------------------------------


def test_pause(clean: Cluster, verdict: Verdict) -> None:
    create(clean, PRICES, 5)
    places = send(clean, PRICES, [*OTHERS, *IMPORTANT] * 10)
    commit(clean, FIRST, PRICES, ENDS)
    late = 12  # 12 wait at the beginning, 8 are sent in the middle
    others = [place for place in places if place[0] != 4]
    first, then = [(4, offset) for offset in range(12)], [(4, offset) for offset in range(12, 20)]
    still, later = [0, 0, 0, 0], [5, 5, 5, 5]
    right = {"handled": [*first, *others[:20], *then, *others[20:]], "late": late, "positions": [still] * 12 + [later] * 8}
    verdict.passes("04_pause", clean, **right)
    mixed = [place for pair in zip(then, others[20:28], strict=True) for place in pair]
    for says, wrong in {
        "Give check() your answer as handled=": {"handled": []},
        "after 0 of them one of the others was handled": {"handled": [*others, *first, *then]},  # by number of partition
        "Others were handled between the important prices": {"handled": [*first, *others[:20], *mixed, *others[28:]]},  # paused once
        "handled last, after all the others": {"handled": [*first, *others, *then]},  # looks only when it is their turn
        "None of the important prices that were sent in the middle": {"handled": [*first, *others]},
        "did not read offset 5 of partition 0 (20 of 60 are missing)": {
            "handled": [*first, *[p for p in others if p[1] < 5], *then]
        },  # never resumed, the second time
        "moved between two important prices": {"positions": [still] * 11 + [later] * 9},
    }.items():
        verdict.says(says, "04_pause", clean, **{**right, **wrong})
    commit(clean, FIRST, PRICES, {0: 3})
    verdict.says("In partition 0 important-first is 7 records behind", "04_pause", clean, **right)

"""The stock-price application's worker pool without a cluster: what may be committed, whatever is finished when."""

from __future__ import annotations

import random
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from contiguous import Contiguous

from kafkacourse.stocks import workers_app
from kafkacourse.stocks.workers import WorkerPool
from kafkalab.waiting import wait_until
from support import PATIENCE

Place = tuple[int, int]


# -- what may be committed ------------------------------------------------------------------------------------------


def account(taken: list[int], finished: list[int]) -> tuple[int | None, int]:
    contiguous = Contiguous()
    for offset in taken:
        contiguous.taken(offset)
    for offset in finished:
        contiguous.finished(offset)
    return contiguous.committable(), len(contiguous)


@pytest.mark.parametrize(
    ("taken", "finished", "committable", "left"),
    [
        ([], [], None, 0),
        ([7, 8, 9], [], None, 3),
        ([7, 8, 9], [7], 8, 2),
        ([7, 8, 9], [8, 9], None, 3),  # the first one holds the others back
        ([7, 8, 9], [9, 7], 8, 2),
        ([7, 8, 9], [9, 8, 7], 10, 0),
        ([7, 9, 14], [7, 9], 10, 1),  # compaction, or a transaction's marker
        ([7, 9, 14], [9, 14], None, 3),
        ([7, 9, 14], [14, 7, 9], 15, 0),
        ([0], [0], 1, 0),
    ],
)
def test_contiguous(taken: list[int], finished: list[int], committable: int | None, left: int) -> None:
    assert account(taken, finished) == (committable, left)


def test_contiguous_goes_on_after_it_was_empty() -> None:
    contiguous = Contiguous()
    for offset in (5, 6, 9):
        contiguous.taken(offset)
        contiguous.finished(offset)
        assert (contiguous.committable(), len(contiguous)) == (offset + 1, 0)


def test_contiguous_refuses_what_is_not_under_way() -> None:
    contiguous = Contiguous()
    contiguous.taken(3)
    contiguous.finished(3)
    for offset in (3, 4):
        with pytest.raises(KeyError):
            contiguous.finished(offset)
    contiguous.taken(4)  # what was refused before left nothing behind
    assert (contiguous.committable(), len(contiguous)) == (4, 1)


@pytest.mark.parametrize("seed", range(50))
def test_contiguous_in_any_order_is_what_the_definition_says(seed: int) -> None:
    chance = random.Random(seed)
    offsets = sorted(chance.sample(range(200), 60))
    contiguous, taken, finished = Contiguous(), [], set()
    last = None
    while len(finished) < len(offsets):
        under_way = [offset for offset in taken if offset not in finished]
        if len(taken) < len(offsets) and (not under_way or chance.random() < 0.5):
            taken.append(offsets[len(taken)])
            contiguous.taken(taken[-1])
        else:
            chosen = chance.choice(under_way)
            finished.add(chosen)
            contiguous.finished(chosen)
        unfinished = [offset for offset in taken if offset not in finished]
        done = [offset for offset in taken if not unfinished or offset < unfinished[0]]
        assert contiguous.committable() == (done[-1] + 1 if done else None)
        assert len(contiguous) == len(taken) - len(done)
        assert last is None or contiguous.committable() >= last  # it never goes back
        last = contiguous.committable()


# -- the pool, with a consumer that does what the test says ---------------------------------------------------------

TOPIC = "stock-prices"


@dataclass(frozen=True)
class Record:
    """What a pool asks of a message."""

    part: int
    place: int
    name: bytes | None

    def error(self) -> None:
        return None

    def topic(self) -> str:
        return TOPIC

    def partition(self) -> int:
        return self.part

    def offset(self) -> int:
        return self.place

    def key(self) -> bytes | None:
        return self.name


class FakeConsumer:
    """A consumer of partitions with so many records each; a record's key is its offset modulo `keys`, or none."""

    def __init__(self, ends: Mapping[int, int], keys: int | None = 5) -> None:
        self.ends, self.keys = dict(ends), keys
        self.positions: dict[int, int] = {}
        self.paused: set[int] = set()
        self.committed: dict[int, int] = {}
        self.events: list[object] = []
        self.orders: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self.refusal: int | None = None
        self.before_commit: Callable[[Mapping[int, int]], None] = lambda offsets: None
        self._quiet = threading.Event()

    # what the pool calls

    def subscribe(self, topics: list[str], **callbacks: Callable) -> None:
        assert topics == [TOPIC]
        self.callbacks = callbacks

    def poll(self, timeout: float) -> Record | None:
        if not self.orders.empty():
            self.orders.get()()
            return None
        for partition, position in self.positions.items():
            if partition not in self.paused and position < self.ends[partition]:
                self.positions[partition] += 1
                key = None if self.keys is None else b"%d" % (position % self.keys)
                return Record(partition, position, key)
        self._quiet.wait(0.002)
        return None

    def commit(self, *, offsets: list[TopicPartition], asynchronous: bool) -> list[TopicPartition]:
        assert not asynchronous and "closed" not in self.events
        if self.refusal is not None:
            raise KafkaException(KafkaError(self.refusal))
        told = {p.partition: p.offset for p in offsets}
        assert told.keys() <= self.positions.keys(), "a partition that is not ours"
        self.before_commit(told)
        self.committed |= told
        self.events.append(told)
        return offsets

    def pause(self, partitions: list[TopicPartition]) -> None:
        self.paused |= {p.partition for p in partitions}
        self.events.append("paused")

    def resume(self, partitions: list[TopicPartition]) -> None:
        self.paused -= {p.partition for p in partitions}
        self.events.append("resumed")

    def unsubscribe(self) -> None:
        self.orders.put(lambda: self._take("on_revoke", *self.positions))

    def close(self) -> None:
        assert self.orders.empty(), "closed beside a rebalance: that may wait for ever"
        self.events.append("closed")

    # what the test calls, from its own thread; done inside `poll`

    def give(self, *partitions: int) -> None:
        self._order(lambda: self._give(*partitions))

    def take(self, *partitions: int, why: str = "on_revoke") -> None:
        self._order(lambda: self._take(why, *partitions))

    def order_take(self, *partitions: int, why: str = "on_revoke") -> threading.Event:
        """As `take`, without waiting: returns what tells when it is done."""
        done = threading.Event()
        self.orders.put(lambda: (self._take(why, *partitions), done.set()))
        return done

    def _order(self, order: Callable[[], None]) -> None:
        done = threading.Event()
        self.orders.put(lambda: (order(), done.set()))
        assert done.wait(PATIENCE)

    def _give(self, *partitions: int) -> None:
        self.callbacks["on_assign"](self, [TopicPartition(TOPIC, p) for p in partitions])
        self.positions |= {p: self.committed.get(p, 0) for p in partitions}

    def _take(self, why: str, *partitions: int) -> None:
        self.callbacks[why](self, [TopicPartition(TOPIC, p) for p in partitions])
        self.events.append(why)
        for p in partitions:
            del self.positions[p]


class Work:
    """Processes records. Those at `held` wait until they are let go."""

    def __init__(self, *held: Place) -> None:
        self.gates = {place: threading.Event() for place in held}
        self.begun: list[Place] = []
        self.done: list[Place] = []
        self.at_once: Counter[bytes | None] = Counter()
        self.most: Counter[bytes | None] = Counter()
        self._counting = threading.Lock()

    def __call__(self, record: Record) -> None:
        place = (record.part, record.place)
        with self._counting:
            self.begun.append(place)
            self.at_once[record.name] += 1
            self.most[record.name] = max(self.most[record.name], self.at_once[record.name])
        if place in self.gates:
            assert self.gates[place].wait(PATIENCE)
        with self._counting:
            self.at_once[record.name] -= 1
            self.done.append(place)


@contextmanager
def running(consumer: FakeConsumer, work: Callable, **settings: object) -> Iterator[Callable[[], BaseException | None]]:
    """A pool at work; call what comes for its end, which tells what it raised."""
    pool = WorkerPool(consumer, work, Contiguous, **{"commit_every": 0.01, "patience": 5.0} | settings)
    stop, raised = threading.Event(), []

    def run() -> None:
        try:
            pool.run(TOPIC, stop.is_set)
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()

    def end() -> BaseException | None:
        stop.set()
        thread.join(PATIENCE)
        assert not thread.is_alive()
        return raised[0] if raised else None

    try:
        yield end
    finally:
        for gate in getattr(work, "gates", {}).values():
            gate.set()
        end()
    assert "closed" in consumer.events


def until(condition: Callable[[], object], what: str) -> None:
    wait_until(condition, PATIENCE, what, interval=0.002)


def test_nothing_is_committed_that_comes_after_an_unfinished_record() -> None:
    consumer, work = FakeConsumer({0: 10}, keys=10), Work((0, 3))
    with running(consumer, work) as end:
        consumer.give(0)
        until(lambda: len(work.done) == 9, "all the others")
        until(lambda: consumer.committed == {0: 3}, "a commit of all before it")  # fewer may have been committed earlier
        assert all(event[0] <= 3 for event in consumer.events if isinstance(event, dict)), consumer.events
        work.gates[0, 3].set()
        until(lambda: consumer.committed == {0: 10}, "the rest")
        assert end() is None


def test_a_key_stays_in_order_and_keys_are_processed_at_once() -> None:
    consumer, work = FakeConsumer({0: 40}, keys=4), Work((0, 0), (0, 1), (0, 2))
    with running(consumer, work, workers=4):
        consumer.give(0)
        until(lambda: len(work.begun) == 13, "three that wait, and all of the fourth key")
        for gate in work.gates.values():
            gate.set()
        until(lambda: len(work.done) == 40, "all of them")
    assert work.most == {b"%d" % key: 1 for key in range(4)}
    for key in range(4):
        assert [offset for _, offset in work.done if offset % 4 == key] == list(range(key, 40, 4))


def test_records_without_a_key_need_no_order() -> None:
    consumer, work = FakeConsumer({0: 4}, keys=None), Work(*((0, offset) for offset in range(4)))
    with running(consumer, work, workers=4):
        consumer.give(0)
        until(lambda: len(work.begun) == 4, "all four at once")


def test_a_partition_that_has_too_much_under_way_is_paused_and_the_others_are_not() -> None:
    consumer, work = FakeConsumer({0: 100, 1: 100}, keys=50), Work((0, 0))
    with running(consumer, work, workers=3, limit=10) as end:
        consumer.give(0, 1)
        until(lambda: consumer.committed.get(1) == 100, "partition 1")
        assert consumer.paused == {0} and consumer.positions[0] == 10  # not one more was taken
        work.gates[0, 0].set()
        until(lambda: consumer.committed.get(0) == 100, "partition 0")
        assert not consumer.paused and end() is None
    assert sorted(work.done) == [(p, o) for p in (0, 1) for o in range(100)]


def test_a_partition_that_is_taken_away_is_finished_where_it_is_begun_and_dropped_where_it_is_not() -> None:
    consumer, work = FakeConsumer({0: 50, 1: 50}, keys=50), Work((0, 10), (0, 11))
    with running(consumer, work, workers=2) as end:
        consumer.give(0)
        until(lambda: {(0, 10), (0, 11)} <= set(work.begun), "both workers to be busy")
        taken = consumer.order_take(0)
        assert not taken.wait(0.2)  # it waits for what is begun
        work.gates[0, 11].set()
        assert not taken.wait(0.1)
        work.gates[0, 10].set()
        assert taken.wait(PATIENCE)
        assert consumer.committed == {0: 12} and consumer.events[-2:] == [{0: 12}, "on_revoke"]
        consumer.give(1)
        until(lambda: consumer.committed.get(1) == 50, "the other partition")
        assert end() is None
    assert sorted(p for p in work.begun if p[0] == 0) == [(0, offset) for offset in range(12)]


def test_what_takes_too_long_is_left_to_the_next_owner_and_counts_no_more() -> None:
    consumer, work = FakeConsumer({0: 50}, keys=50), Work((0, 0))
    with running(consumer, work, workers=2, patience=0.05) as end:
        consumer.give(0)
        until(lambda: len(work.done) >= 3, "some of the others")
        consumer.take(0)
        assert consumer.committed == {}
        work.gates[0, 0].set()
        until(lambda: (0, 0) in work.done, "the late one")
        assert end() is None
    assert consumer.committed == {}


def test_a_partition_that_comes_back_begins_anew_whatever_late_workers_report() -> None:
    consumer, work = FakeConsumer({0: 5}, keys=5), Work((0, 0), (0, 2))
    with running(consumer, work, workers=5, patience=0.05) as end:
        consumer.give(0)
        until(lambda: len(work.done) == 3, "the other three")
        consumer.take(0)
        assert consumer.committed == {}
        consumer.give(0)
        until(lambda: work.done.count((0, 4)) == 2, "those that are read again")
        assert work.begun.count((0, 0)) == 1  # the same key: it waits for the late one
        work.gates[0, 0].set()
        until(lambda: work.done.count((0, 0)) == 2, "the first one, once late and once again")
        until(lambda: consumer.committed == {0: 2}, "what is contiguous")  # offset 2 is late still, and not begun again
        assert work.begun.count((0, 2)) == 1
        work.gates[0, 2].set()
        until(lambda: consumer.committed == {0: 5}, "all of it")
        assert end() is None
    assert Counter(work.done) == dict.fromkeys([(0, offset) for offset in range(5)], 2)


def test_the_late_report_of_an_old_share_is_not_taken_for_the_new_one() -> None:
    consumer, gates, begun = FakeConsumer({0: 1}, keys=None), [threading.Event(), threading.Event()], []

    def work(record: Record) -> None:
        begun.append(gates[len(begun)])
        assert begun[-1].wait(PATIENCE)

    with running(consumer, work, workers=2, patience=0.05) as end:
        consumer.give(0)
        until(lambda: len(begun) == 1, "the first time")
        consumer.take(0)
        consumer.give(0)
        gates[0].set()
        until(lambda: len(begun) == 2, "the second time, after the late one")
        consumer._order(lambda: None)
        consumer._order(lambda: None)
        assert consumer.committed == {}
        gates[1].set()
        until(lambda: consumer.committed == {0: 1}, "the commit")
        assert end() is None


def test_what_was_lost_is_neither_waited_for_nor_committed() -> None:
    consumer, work = FakeConsumer({0: 20}, keys=20), Work((0, 5), (0, 6))
    with running(consumer, work, workers=2, commit_every=60) as end:
        consumer.give(0)
        until(lambda: (0, 5) in work.begun and (0, 6) in work.begun, "both workers to be busy")
        consumer.take(0, why="on_lost")
        assert consumer.committed == {}
        for gate in work.gates.values():
            gate.set()
        assert end() is None
    assert consumer.committed == {} and len(work.begun) == 7


def test_a_paused_partition_is_not_paused_when_it_comes_back() -> None:
    consumer, work = FakeConsumer({0: 30}, keys=30), Work((0, 0))
    with running(consumer, work, workers=2, limit=4, patience=0.05) as end:
        consumer.give(0)
        until(lambda: consumer.paused == {0}, "the pause")
        consumer.take(0)
        assert not consumer.paused
        work.gates[0, 0].set()
        consumer.give(0)
        until(lambda: consumer.committed == {0: 30}, "all of it")
        assert end() is None


def test_the_end_finishes_what_is_begun_commits_it_and_leaves() -> None:
    consumer, work = FakeConsumer({0: 50}, keys=50), Work((0, 7), (0, 8))
    with running(consumer, work, workers=2, commit_every=60) as end:
        consumer.give(0)
        until(lambda: len(work.begun) == 9, "both workers to be busy")
        threading.Timer(0.1, lambda: [gate.set() for gate in work.gates.values()]).start()
        assert end() is None
    assert consumer.events[0] == {0: 9} and consumer.events[-1] == "closed"
    assert len(work.done) == 9


def test_an_end_does_not_wait_for_ever() -> None:
    consumer, work = FakeConsumer({0: 50}, keys=50), Work((0, 7))
    with running(consumer, work, workers=1, patience=0.1) as end:
        consumer.give(0)
        until(lambda: (0, 7) in work.begun, "the one that hangs")
        assert end() is None
        assert consumer.committed == {0: 7} and consumer.events[-1] == "closed"


def test_what_a_worker_raises_ends_the_pool_and_its_record_is_not_committed() -> None:
    consumer, done = FakeConsumer({0: 50}, keys=5), []

    def work(record: Record) -> None:
        if record.place == 10:
            raise ValueError("no price")
        done.append(record.place)

    with running(consumer, work, workers=1) as end:
        consumer.give(0)
        until(lambda: "closed" in consumer.events, "the end")
        error = end()
    assert isinstance(error, ValueError)
    assert consumer.committed == {0: 10}
    assert max(done) < 15 and 15 not in done  # nor was a later record of the same key processed


@pytest.mark.parametrize("code", [KafkaError.REBALANCE_IN_PROGRESS, KafkaError.ILLEGAL_GENERATION, KafkaError.NOT_COORDINATOR])
def test_a_commit_that_fails_is_made_up_for(code: int) -> None:
    consumer, work = FakeConsumer({0: 20}), Work()
    consumer.refusal = code
    with running(consumer, work) as end:
        consumer.give(0)
        until(lambda: len(work.done) == 20, "the work")
        consumer._order(lambda: None)
        assert consumer.committed == {}
        consumer.refusal = None
        until(lambda: consumer.committed == {0: 20}, "a commit")
        assert end() is None


def test_a_commit_that_is_forbidden_ends_the_pool() -> None:
    consumer = FakeConsumer({0: 20})
    consumer.refusal = KafkaError.GROUP_AUTHORIZATION_FAILED
    with running(consumer, Work()) as end:
        consumer.give(0)
        until(lambda: "closed" in consumer.events, "the end")
        error = end()
    assert isinstance(error, KafkaException) and error.args[0].code() == KafkaError.GROUP_AUTHORIZATION_FAILED


@pytest.mark.parametrize("seed", range(8))
def test_whatever_comes_and_goes_no_commit_passes_what_is_unfinished_and_nothing_is_left_out(seed: int) -> None:
    chance, quiet = random.Random(seed), threading.Event()
    consumer, done, passed = FakeConsumer({0: 300, 1: 300, 2: 300}, keys=7), set(), []

    def work(record: Record) -> None:
        quiet.wait(chance.choice([0, 0, 0.0005, 0.005]))
        done.add((record.part, record.place))

    def look(offsets: Mapping[int, int]) -> None:
        passed.extend((p, offset) for p, end in offsets.items() for offset in range(end) if (p, offset) not in done)

    consumer.before_commit = look
    with running(consumer, work, workers=6, limit=30, patience=chance.choice([0.001, 1.0])) as end:
        consumer.give(0, 1, 2)
        for _ in range(30):
            some = chance.sample(range(3), chance.randint(1, 3))
            consumer.take(*some, why=chance.choice(["on_revoke", "on_revoke", "on_lost"]))
            quiet.wait(chance.uniform(0, 0.01))
            consumer.give(*some)
            quiet.wait(chance.uniform(0, 0.02))
        until(lambda: consumer.committed == consumer.ends, "all of it")
        assert end() is None
    assert not passed
    assert done == {(p, offset) for p in range(3) for offset in range(300)}


def test_brokers_that_do_not_answer_are_told_in_bounded_time(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(workers_app, "_CONNECT_SECONDS", 1)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    assert workers_app.main(["--bootstrap-servers", "127.0.0.1:1,127.0.0.1:2", "--journal", str(tmp_path / "journal.txt")]) == 1
    assert "no broker answered within 1 s" in capsys.readouterr().err


def test_a_class_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "contiguous", None)
    assert workers_app.main(["--bootstrap-servers", "127.0.0.1:1"]) == 1
    assert "Save your class Contiguous as contiguous.py" in capsys.readouterr().err

"""The stock-price application's threads, worker pool and priorities: what is committed, whatever happens to whom and when."""

from __future__ import annotations

import itertools
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from kafkalab import Cluster
from kafkalab.cluster import ClusterView
from kafkalab.waiting import wait_until

SOLUTIONS = Path(__file__).parents[2] / "solutions"
Place = tuple[int, int]


@pytest.fixture(autouse=True)
def application(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(SOLUTIONS))


# -- what may be committed ------------------------------------------------------------------------------------------


def account(taken: list[int], finished: list[int]) -> tuple[int | None, int]:
    from stocks.contiguous import Contiguous

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
    from stocks.contiguous import Contiguous

    contiguous = Contiguous()
    for offset in (5, 6, 9):
        contiguous.taken(offset)
        contiguous.finished(offset)
        assert (contiguous.committable(), len(contiguous)) == (offset + 1, 0)


def test_contiguous_refuses_what_is_not_under_way() -> None:
    from stocks.contiguous import Contiguous

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
    from stocks.contiguous import Contiguous

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
        assert done.wait(10)

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
            assert self.gates[place].wait(20)
        with self._counting:
            self.at_once[record.name] -= 1
            self.done.append(place)


@contextmanager
def running(consumer: FakeConsumer, work: Callable, **settings: object) -> Iterator[Callable[[], BaseException | None]]:
    """A pool at work; call what comes for its end, which tells what it raised."""
    from stocks.contiguous import Contiguous
    from stocks.workers import WorkerPool

    pool = WorkerPool(consumer, work, Contiguous, **{"commit_every": 0.01, "patience": 5.0} | settings)  # type: ignore[arg-type]
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
        thread.join(10)
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
    wait_until(condition, 10, what, interval=0.002)


def test_nothing_is_committed_that_comes_after_an_unfinished_record() -> None:
    consumer, work = FakeConsumer({0: 10}, keys=10), Work((0, 3))
    with running(consumer, work) as end:
        consumer.give(0)
        until(lambda: len(work.done) == 9, "all the others")
        until(lambda: consumer.committed, "a commit")
        assert consumer.committed == {0: 3}
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
        assert taken.wait(5)
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
        assert begun[-1].wait(20)

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


# -- with a cluster -------------------------------------------------------------------------------------------------

NAMES = ("IBM", "SUN", "GOOG", "INEL", "UBER", "ABC", "XYZ", "DEF", "AAA", "BBB", "CCC", "DDD", "EEE", "FFF")


def create(cluster: Cluster, topic: str, partitions: int) -> None:
    admin = AdminClient(cluster.client_config())
    admin.create_topics([NewTopic(topic, partitions, 3)])[topic].result()
    cluster.wait_for(lambda v: topic in v.topics and None not in v.leaders(topic).values(), topic)


def send(cluster: Cluster, topic: str, first: int, last: int, partitions: int) -> None:
    """Send prices from one number to before another, in turn to all partitions."""
    producer = Producer(cluster.client_config())
    for number in range(first, last):
        name = NAMES[number // partitions % len(NAMES)]
        value = f'{{"name": "{name}", "dollars": {number}, "cents": 5}}'
        producer.produce(topic, key=name, value=value, partition=number % partitions)
    assert producer.flush(20) == 0


@pytest.fixture(scope="module")
def prices(cluster: Cluster) -> str:
    """A topic with 300 prices in each of three partitions."""
    create(cluster, TOPIC, 3)
    send(cluster, TOPIC, 0, 900, 3)
    return TOPIC


ALL = {(partition, offset) for partition in range(3) for offset in range(300)}


def consumer_of(cluster: Cluster, group: str, **more: object) -> Consumer:
    settings = cluster.client_config(group_id=group, enable_auto_commit=False, auto_offset_reset="earliest", **more)
    return Consumer({**settings, "queued.min.messages": 1000})


def committed(cluster: Cluster, group: str, topic: str = TOPIC, partitions: int = 3) -> dict[int, int]:
    consumer = Consumer(cluster.client_config(group_id=group))
    try:
        found = consumer.committed([TopicPartition(topic, p) for p in range(partitions)], timeout=20)
        return {p.partition: max(0, p.offset) for p in found}
    finally:
        consumer.close()


def passed(offsets: Mapping[int, int], processed: set[Place]) -> set[Place]:
    """What is not processed and will not be read again."""
    return {(p, offset) for p, end in offsets.items() for offset in range(end)} - processed


@dataclass
class App:
    """The application in a process, always with the same journal and group."""

    process: subprocess.Popen
    path: Path

    def places(self) -> list[Place]:
        from stocks.journal import Journal

        journal = Journal(self.path)
        try:
            return journal.places()
        finally:
            journal.close()

    def wait_for(self, count: int) -> None:
        wait_until(lambda: len(set(self.places())) >= count, 60, f"{count} prices", last_seen=lambda: len(set(self.places())))


@pytest.fixture
def app(cluster: Cluster, tmp_path: Path) -> Iterator[Callable[..., App]]:
    started: list[subprocess.Popen] = []

    def start(group: str, topic: str = TOPIC, *more: str, servers: str = cluster.bootstrap_servers) -> App:
        command = [sys.executable, "-m", "stocks.workers_app", "--bootstrap-servers", servers]
        command += ["--topic", topic, "--group", group, "--journal", str(tmp_path / "journal.txt")]
        command += ["--session-timeout", "3000", *more]
        environment = {**os.environ, "PYTHONPATH": str(SOLUTIONS)}
        started.append(subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True))
        return App(started[-1], tmp_path / "journal.txt")

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stderr.close()


@pytest.mark.cluster
def test_killed_again_and_again_no_commit_passes_what_is_unprocessed(
    cluster: Cluster, prices: str, app: Callable[..., App], measured: Callable[[str], None]
) -> None:
    chance, seen = random.Random(), []
    for count in (150, 350, 550, 750):
        running = app("killed", prices, "--instance", "one", "--workers", "8", "--work", "0.005", "--commit-every", "0.05")
        running.wait_for(count + chance.randrange(50))
        running.process.kill()
        running.process.wait(10)
        offsets = committed(cluster, "killed")
        assert not passed(offsets, set(running.places()))
        seen.append(f"{len(set(running.places()))} processed, {sum(offsets.values())} committed")
    running = app("killed", prices, "--instance", "one", "--workers", "8", "--work", "0.001")
    running.wait_for(900)
    wait_until(lambda: committed(cluster, "killed") == dict.fromkeys(range(3), 300), 20, "the last commit")
    running.process.send_signal(signal.SIGTERM)
    assert running.process.wait(20) == 128 + signal.SIGTERM
    assert set(running.places()) == ALL
    measured(f"worker pool, SIGKILL four times: {'; '.join(seen)}; none lost, {len(running.places()) - 900} of 900 doubled")


@pytest.mark.cluster
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_application_ends_in_order(cluster: Cluster, prices: str, app: Callable[..., App], number: signal.Signals) -> None:
    group = f"ended-{number}"
    running = app(group, prices, "--work", "0.2", "--workers", "3")
    running.wait_for(6)
    running.process.send_signal(number)
    assert running.process.wait(20) == 128 + number
    assert running.process.stderr.read() == ""
    assert not cluster.describe().groups[group].members  # it left: the group need not wait until its session is over
    offsets, processed = committed(cluster, group), set(running.places())
    assert not passed(offsets, processed)
    left_over = {(p, o) for p, o in processed if o >= offsets[p]}
    assert sum(offsets.values()) > 0 and len(left_over) < 100  # all but what was finished out of turn is committed


@pytest.mark.cluster
def test_one_right_address_is_enough(cluster: Cluster, prices: str, app: Callable[..., App]) -> None:
    right = cluster.bootstrap_servers.split(",")[0]
    running = app("one-right", prices, "--work", "0", servers=f"127.0.0.1:1,{right}")
    running.wait_for(900)
    running.process.send_signal(signal.SIGTERM)
    assert running.process.wait(20) == 128 + signal.SIGTERM
    assert committed(cluster, "one-right") == dict.fromkeys(range(3), 300)


@pytest.mark.cluster
def test_a_topic_that_does_not_exist_is_told_in_bounded_time(cluster: Cluster, app: Callable[..., App]) -> None:
    running = app("no-topic", "no-such-topic")
    assert running.process.wait(60) == 1
    assert running.process.stderr.read() == "there is no topic 'no-such-topic'\n"
    assert not running.path.exists()


def test_brokers_that_do_not_answer_are_told_in_bounded_time(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    from stocks import workers_app

    monkeypatch.setattr(workers_app, "_CONNECT_SECONDS", 1)
    monkeypatch.setattr(workers_app.signal, "signal", lambda *_: None)
    assert workers_app.main(["--bootstrap-servers", "127.0.0.1:1,127.0.0.1:2", "--journal", str(tmp_path / "journal.txt")]) == 1
    assert "no broker answered within 1 s" in capsys.readouterr().err


@pytest.mark.cluster
def test_what_a_record_holds_does_not_stop_the_workers(cluster: Cluster, app: Callable[..., App]) -> None:
    """They do not look into it: a malformed price is noted like any other."""
    create(cluster, "malformed", 1)
    values = [b'{"name": "IBM", "dollars": 90, "cents": 5}', None, b"", b"\xff\xfe", b"not JSON", b"[" * 100_000]
    producer = Producer(cluster.client_config())
    for value in values * 2:
        producer.produce("malformed", value, key="IBM")
    assert producer.flush(20) == 0
    running = app("malformed", "malformed")
    running.wait_for(12)
    running.process.send_signal(signal.SIGTERM)
    assert running.process.wait(20) == 128 + signal.SIGTERM
    assert Counter(running.places()) == Counter((0, offset) for offset in range(12))
    assert committed(cluster, "malformed", "malformed", 1) == {0: 12}


@pytest.mark.cluster
def test_who_overslept_goes_on_without_what_it_has_lost(cluster: Cluster, app: Callable[..., App]) -> None:
    create(cluster, "sleepy", 3)
    send(cluster, "sleepy", 0, 300, 3)
    sleeper = app("sleepy", "sleepy", "--work", "0.02")
    sleeper.wait_for(50)
    sleeper.process.send_signal(signal.SIGSTOP)
    other = app("sleepy", "sleepy", "--work", "0.001")
    other.wait_for(300)
    wait_until(lambda: committed(cluster, "sleepy", "sleepy") == dict.fromkeys(range(3), 100), 20, "all to be committed")
    sleeper.process.send_signal(signal.SIGCONT)
    cluster.wait_for(lambda v: len(v.groups["sleepy"].members) == 2, "the sleeper to be back", groups=True)
    send(cluster, "sleepy", 300, 600, 3)
    other.wait_for(600)
    for running in (sleeper, other):
        running.process.send_signal(signal.SIGTERM)
    assert [running.process.wait(20) for running in (sleeper, other)] == [128 + signal.SIGTERM] * 2
    assert not passed(committed(cluster, "sleepy", "sleepy"), set(other.places()))


@pytest.mark.cluster
@pytest.mark.parametrize(
    "more",
    [
        {"heartbeat.interval.ms": 200},
        {"heartbeat.interval.ms": 200, "partition.assignment.strategy": "cooperative-sticky"},
        {"group.protocol": "consumer"},
    ],
    ids=["eager", "cooperative", "new protocol"],
)
def test_pools_that_join_and_leave_lose_nothing(cluster: Cluster, prices: str, more: dict[str, object]) -> None:
    from stocks.contiguous import Contiguous
    from stocks.workers import WorkerPool

    group, quiet = f"shared {' '.join(more)}", threading.Event()
    processed: dict[str, list[Place]] = {name: [] for name in ("stays", "joins", "joins later")}
    stops = {name: threading.Event() for name in processed}
    raised: list[BaseException] = []

    def run(name: str) -> None:
        def work(record: object) -> None:
            quiet.wait(0.02)
            processed[name].append((record.partition(), record.offset()))

        settings = cluster.client_config(group_id=group, enable_auto_commit=False, auto_offset_reset="earliest")
        consumer = Consumer({**settings, **more})
        try:
            WorkerPool(consumer, work, Contiguous, workers=3, limit=20, commit_every=0.1).run(prices, stops[name].is_set)
        except BaseException as error:
            raised.append(error)

    def total() -> int:
        return len({place for places in processed.values() for place in places})

    threads = {name: threading.Thread(target=run, args=[name], daemon=True) for name in processed}
    threads["stays"].start()
    wait_until(lambda: total() >= 50, 30, "the first one to work")
    threads["joins"].start()
    wait_until(lambda: len(processed["joins"]) > 20 or total() == 900, 30, "the second one to work")
    stops["joins"].set()
    threads["joins"].join(20)
    threads["joins later"].start()
    wait_until(lambda: total() == 900, 60, "all prices", last_seen=total)
    wait_until(lambda: committed(cluster, group) == dict.fromkeys(range(3), 300), 20, "the last commit")
    for name, thread in threads.items():
        stops[name].set()
        thread.join(20)
        assert not thread.is_alive()
    assert not raised
    assert processed["joins"]
    assert {place for places in processed.values() for place in places} == ALL


@pytest.mark.cluster
@pytest.mark.parametrize("workers", [1, 2, 4, 8])
def test_as_many_records_are_processed_at_once_as_there_are_workers(cluster: Cluster, prices: str, workers: int) -> None:
    from stocks.contiguous import Contiguous
    from stocks.workers import WorkerPool

    together = threading.Barrier(workers)  # opens only when so many records are being processed
    numbers, done, least = itertools.count(), [], 10 * workers

    def work(record: object) -> None:
        if next(numbers) < least:
            together.wait(30)
        done.append(record)

    WorkerPool(consumer_of(cluster, f"at-once-{workers}"), work, Contiguous, workers=workers).run(prices, lambda: len(done) >= least)
    assert not together.broken


@pytest.mark.cluster
def test_a_worker_is_not_two(cluster: Cluster, prices: str) -> None:
    """Which shows that the test above can fail."""
    from stocks.contiguous import Contiguous
    from stocks.workers import WorkerPool

    together, done = threading.Barrier(2), []

    def work(record: object) -> None:
        try:
            together.wait(1)
        except threading.BrokenBarrierError:
            done.append(record)

    WorkerPool(consumer_of(cluster, "not-two"), work, Contiguous, workers=1).run(prices, lambda: bool(done))
    assert together.broken


@pytest.mark.cluster
def test_a_pool_begins_by_its_reset_policy_where_somebody_committed_past_the_end(cluster: Cluster, prices: str) -> None:
    from stocks.contiguous import Contiguous
    from stocks.workers import WorkerPool

    def run(reset: str) -> set[Place]:
        consumer = consumer_of(cluster, f"past-{reset}")
        consumer.commit(offsets=[TopicPartition(prices, p, 1000) for p in range(3)], asynchronous=False)
        consumer.close()
        done: set[Place] = set()
        consumer = Consumer(cluster.client_config(group_id=f"past-{reset}", auto_offset_reset=reset, enable_auto_commit=False))
        pool = WorkerPool(consumer, lambda record: done.add((record.partition(), record.offset())), Contiguous)
        pool.run(prices, lambda: len(done) == 900)
        return done

    assert run("earliest") == ALL
    assert committed(cluster, "past-earliest") == dict.fromkeys(range(3), 300)  # it goes back to what is so
    with pytest.raises(KafkaException) as raised:
        run("error")
    assert raised.value.args[0].code() == KafkaError._AUTO_OFFSET_RESET
    assert not cluster.describe().groups["past-error"].members


@pytest.mark.cluster
def test_a_trial_tells_right_from_wrong(cluster: Cluster, prices: str, tmp_path: Path, measured: Callable[[str], None]) -> None:
    from stocks.contiguous import Contiguous
    from stocks.pool_trials import Highest, try_pool

    hasty = try_pool(cluster.client_config(), prices, Highest, group="trial-highest", folder=tmp_path)
    right = try_pool(cluster.client_config(), prices, Contiguous, group="trial-contiguous", folder=tmp_path)
    measured(f"worker pool killed: commit after the highest {hasty}; after what is contiguous {right}")
    assert hasty.passed > 0 and hasty.lost > 0
    assert right.passed == right.lost == 0
    assert right.doubled <= 3 * 50


# -- threads, and priorities ----------------------------------------------------------------------------------------


@pytest.mark.cluster
def test_five_threads_share_three_partitions_and_tell_what_ended_them(cluster: Cluster) -> None:
    from stocks.threads import ConsumerThread

    create(cluster, "threads", 3)
    read: dict[str, list[Place]] = {f"thread-{n}": [] for n in range(5)}
    settings = cluster.client_config(group_id="threads", enable_auto_commit=False, auto_offset_reset="earliest")
    settings["heartbeat.interval.ms"] = 200

    def handler(name: str) -> Callable:
        return lambda records: read[name].extend((r.partition(), r.offset()) for r in records)

    threads = [ConsumerThread(settings, "threads", handler(name), name) for name in read]
    for thread in threads:
        thread.start()

    def shares(view: ClusterView) -> list[int]:
        group = view.groups.get("threads")  # not stable yet, it would still show what its members owned before
        return sorted(len(m.partitions) for m in group.members) if group and group.state == "Stable" else []

    cluster.wait_for(lambda view: shares(view) == [0, 0, 1, 1, 1], "five members", groups=True)
    send(cluster, "threads", 0, 90, 3)
    wait_until(lambda: sum(map(len, read.values())) == 90, 20, "all prices")
    for thread in threads:
        thread.stop()
    assert sorted(len(places) for places in read.values()) == [0, 0, 30, 30, 30]
    assert committed(cluster, "threads", "threads") == dict.fromkeys(range(3), 30)
    assert not cluster.describe().groups["threads"].members

    thread = ConsumerThread({**settings, "group.id": "raises"}, "threads", lambda records: 1 / 0)
    thread.start()
    thread.join(20)
    with pytest.raises(ZeroDivisionError):
        thread.stop()
    assert committed(cluster, "raises", "threads") == dict.fromkeys(range(3), 0)


@pytest.mark.cluster
def test_two_readers_of_one_partition_by_hand_both_read_all_of_it(cluster: Cluster, prices: str) -> None:
    from stocks.partition_readers import PartitionReader

    settings = cluster.client_config(group_id="twins", enable_auto_commit=False, auto_offset_reset="earliest")
    read: list[list[int]] = [[], []]
    twins = [PartitionReader(settings, prices, 0, lambda r, offsets=offsets: offsets.append(r.offset())) for offsets in read]
    for twin in twins:
        twin.start()
    wait_until(lambda: all(len(offsets) >= 300 for offsets in read), 20, "both to read all of it")
    for twin in twins:
        twin.stop()  # nobody told them: no error, and no group that either could have joined
    assert [sorted(offsets) for offsets in read] == [list(range(300))] * 2
    assert committed(cluster, "twins")[0] == 300
    assert not cluster.describe().groups["twins"].members


@pytest.mark.cluster
def test_the_last_partition_has_more_workers_and_keeps_its_keys_in_order(cluster: Cluster) -> None:
    from stocks.partition_readers import readers

    create(cluster, "important", 3)
    producer = Producer(cluster.client_config())
    for number in range(60):
        for name, partition in (("ABC", 0), ("SUN", 1), ("IBM", 2), ("UBER", 2)):
            producer.produce("important", key=name, value=str(number), partition=partition)
    assert producer.flush(20) == 0
    quiet, counting = threading.Event(), threading.Lock()
    at_once, most, read = Counter(), Counter(), []

    def handle(record: object) -> None:
        with counting:
            at_once[record.partition()] += 1
            most[record.partition()] = max(most[record.partition()], at_once[record.partition()])
        quiet.wait(0.002)
        with counting:
            at_once[record.partition()] -= 1
            read.append((record.key(), int(record.value())))

    settings = cluster.client_config(group_id="important", enable_auto_commit=False, auto_offset_reset="earliest")
    started = readers(settings, "important", handle, important_workers=4)
    assert [reader.workers for reader in started] == [1, 1, 4]
    for reader in started:
        reader.start()
    wait_until(lambda: len(read) == 240, 30, "all of them")
    for reader in started:
        reader.stop()
    assert most == {0: 1, 1: 1, 2: 2}  # two keys: two at once
    for name in (b"ABC", b"SUN", b"IBM", b"UBER"):
        assert [number for key, number in read if key == name] == list(range(60))
    assert committed(cluster, "important", "important") == {0: 60, 1: 60, 2: 120}


@pytest.mark.cluster
def test_a_reader_does_not_commit_a_batch_in_which_one_failed(cluster: Cluster, prices: str) -> None:
    from stocks.partition_readers import PartitionReader

    def handle(record: object) -> None:
        if record.offset() == 7:
            raise ValueError("no price")

    settings = cluster.client_config(group_id="failed", enable_auto_commit=False, auto_offset_reset="earliest")
    reader = PartitionReader(settings, prices, 0, handle, workers=3)
    reader.start()
    reader.join(20)
    with pytest.raises(ValueError, match="no price"):
        reader.stop()
    assert committed(cluster, "failed")[0] == 0


@pytest.mark.cluster
def test_important_first_and_the_others_do_not_move_meanwhile(cluster: Cluster) -> None:
    from stocks.important_first import read_important_first

    create(cluster, "first", 4)
    producer = Producer(cluster.client_config(linger_ms=100))
    for number in range(120):
        producer.produce("first", f"price {number}", partition=number % 4)
    assert producer.flush(20) == 0
    settings = cluster.client_config(group_id="first", auto_offset_reset="earliest", enable_partition_eof=True)
    consumer, quiet = Consumer({**settings, "enable.auto.offset.store": False}), threading.Event()
    others = [TopicPartition("first", p) for p in range(3)]
    read: list[int] = []
    positions: list[list[int]] = []

    def handle(record: object) -> None:
        read.append(record.partition())
        if record.partition() == 3:
            positions.append([p.offset for p in consumer.position(others)])
        if len(read) == 60:
            for number in range(20):
                producer.produce("first", f"late price {number}", partition=3)
            assert producer.flush(20) == 0
        if len(read) >= 60 and read.count(3) == 30:
            quiet.wait(0.02)  # until the late ones have come

    read_important_first(consumer, "first", handle, stopping=lambda: len(read) == 140)
    assert read[:30] == [3] * 30
    late = read.index(3, 30)
    assert 60 <= late < 120 and read[late : late + 20] == [3] * 20
    assert positions == [positions[0]] * 30 + [positions[30]] * 20
    assert Counter(read) == {0: 30, 1: 30, 2: 30, 3: 50}
    assert committed(cluster, "first", "first", 4) == {0: 30, 1: 30, 2: 30, 3: 50}


class Unready(Consumer):
    """The first that it hears is an error of the coordinator; until it is assigned partitions again, it reads nothing."""

    code = KafkaError.NOT_COORDINATOR
    told = False

    def error(self) -> KafkaError:  # of the message, which is the consumer itself here
        return KafkaError(self.code)

    def poll(self, *args: float) -> object:
        return super().poll(*args) if self.told else self._tell()

    def consume(self, *args: int, **more: float) -> list:
        return super().consume(*args, **more) if self.told else [self._tell()]

    def _tell(self) -> object:
        self.told = True
        self.unassign()
        return self


@pytest.mark.cluster
def test_a_reader_begins_when_the_coordinator_is_ready(cluster: Cluster, prices: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from stocks.partition_readers import PartitionReader

    monkeypatch.setattr("stocks.partition_readers.Consumer", Unready)
    settings = cluster.client_config(group_id="unready", enable_auto_commit=False, auto_offset_reset="earliest")
    read: list[int] = []
    reader = PartitionReader(settings, prices, 0, lambda record: read.append(record.offset()))
    reader.start()
    wait_until(lambda: len(read) >= 300 or not reader.is_alive(), 20, "all of it")
    reader.stop()
    assert sorted(read) == list(range(300))

    monkeypatch.setattr(Unready, "code", KafkaError.GROUP_AUTHORIZATION_FAILED)  # of no use to ask again
    reader = PartitionReader(settings, prices, 0, lambda record: None)
    reader.start()
    with pytest.raises(KafkaException, match="GROUP_AUTHORIZATION_FAILED"):
        reader.join(20)
        reader.stop()


@pytest.mark.cluster
def test_important_first_begins_when_the_coordinator_is_ready(cluster: Cluster, prices: str) -> None:
    from stocks.important_first import read_important_first

    settings = cluster.client_config(group_id="unready-first", auto_offset_reset="earliest", enable_partition_eof=True)
    read: list[int] = []
    consumer = Unready({**settings, "enable.auto.offset.store": False})
    give_up = time.monotonic() + 20
    read_important_first(
        consumer, prices, lambda record: read.append(record.partition()), lambda: len(read) == 900 or time.monotonic() > give_up
    )
    assert read[:300] == [2] * 300 and Counter(read) == {0: 300, 1: 300, 2: 300}
    assert committed(cluster, "unready-first") == {0: 300, 1: 300, 2: 300}

"""The stock-price application's threads, worker pool and priorities on a cluster: what is committed, whoever dies when."""

from __future__ import annotations

import itertools
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from contiguous import Contiguous
from important_first import read_important_first
from partition_readers import PartitionReader, readers
from threads import ConsumerThread

from kafkacourse.stocks import STOCKS
from kafkacourse.stocks.journal import Journal
from kafkacourse.stocks.pool_trials import Highest, try_pool
from kafkacourse.stocks.workers import WorkerPool
from kafkalab import Cluster
from kafkalab.cluster import ClusterView
from kafkalab.waiting import wait_until
from support import PATIENCE, create

pytestmark = pytest.mark.cluster

BESIDE_CONTIGUOUS = Path(__file__).parents[2] / "solutions/04_consumer"
Place = tuple[int, int]


TOPIC = "stock-prices"


NAMES = [stock.name for stock in STOCKS]


def send(cluster: Cluster, topic: str, first: int, last: int, partitions: int) -> None:
    """Send prices from one number to before another, in turn to all partitions."""
    producer = Producer(cluster.client_config())
    for number in range(first, last):
        name = NAMES[number // partitions % len(NAMES)]
        value = f'{{"name": "{name}", "dollars": {number}, "cents": 5}}'
        producer.produce(topic, key=name, value=value, partition=number % partitions)
    assert producer.flush(PATIENCE) == 0


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
        found = consumer.committed([TopicPartition(topic, p) for p in range(partitions)], timeout=PATIENCE)
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
        journal = Journal(self.path)
        try:
            return journal.places()
        finally:
            journal.close()

    def wait_for(self, count: int) -> None:
        wait_until(
            lambda: len(set(self.places())) >= count, PATIENCE, f"{count} prices", last_seen=lambda: len(set(self.places()))
        )


@pytest.fixture
def app(cluster: Cluster, tmp_path: Path) -> Iterator[Callable[..., App]]:
    started: list[subprocess.Popen] = []

    def start(group: str, topic: str = TOPIC, *more: str, servers: str = cluster.bootstrap_servers) -> App:
        command = [sys.executable, "-m", "kafkacourse.stocks.workers_app", "--bootstrap-servers", servers]
        command += ["--topic", topic, "--group", group, "--journal", str(tmp_path / "journal.txt")]
        command += ["--session-timeout", "3000", *more]
        started.append(subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=BESIDE_CONTIGUOUS))
        return App(started[-1], tmp_path / "journal.txt")

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stderr.close()


def test_killed_again_and_again_no_commit_passes_what_is_unprocessed(
    cluster: Cluster, prices: str, app: Callable[..., App], measured: Callable[[str], None]
) -> None:
    chance, seen = random.Random(), []
    for count in (150, 350, 550, 750):
        running = app("killed", prices, "--instance", "one", "--workers", "8", "--work", "0.005", "--commit-every", "0.05")
        running.wait_for(count + chance.randrange(50))
        running.process.kill()
        running.process.wait(PATIENCE)
        offsets = committed(cluster, "killed")
        assert not passed(offsets, set(running.places()))
        seen.append(f"{len(set(running.places()))} processed, {sum(offsets.values())} committed")
    running = app("killed", prices, "--instance", "one", "--workers", "8", "--work", "0.001")
    running.wait_for(900)
    wait_until(lambda: committed(cluster, "killed") == dict.fromkeys(range(3), 300), PATIENCE, "the last commit")
    running.process.send_signal(signal.SIGTERM)
    assert running.process.wait(PATIENCE) == 128 + signal.SIGTERM
    assert set(running.places()) == ALL
    measured(f"worker pool, SIGKILL four times: {'; '.join(seen)}; none lost, {len(running.places()) - 900} duplicates of 900")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_application_ends_in_order(cluster: Cluster, prices: str, app: Callable[..., App], number: signal.Signals) -> None:
    group = f"ended-{number}"
    running = app(group, prices, "--work", "0.2", "--workers", "3")
    running.wait_for(6)
    running.process.send_signal(number)
    assert running.process.wait(PATIENCE) == 128 + number
    assert running.process.stderr.read() == ""
    # It left: the group need not wait until its session is over, 45 seconds later.
    cluster.wait_for(lambda view: not view.groups[group].members, "no members", PATIENCE, groups=True)
    offsets, processed = committed(cluster, group), set(running.places())
    assert not passed(offsets, processed)
    left_over = {(p, o) for p, o in processed if o >= offsets[p]}
    assert sum(offsets.values()) > 0 and len(left_over) < 100  # all but what was finished out of turn is committed


def test_one_right_address_is_enough(cluster: Cluster, prices: str, app: Callable[..., App]) -> None:
    right = cluster.bootstrap_servers.split(",")[0]
    running = app("one-right", prices, "--work", "0", servers=f"127.0.0.1:1,{right}")
    running.wait_for(900)
    running.process.send_signal(signal.SIGTERM)
    assert running.process.wait(PATIENCE) == 128 + signal.SIGTERM
    assert committed(cluster, "one-right") == dict.fromkeys(range(3), 300)


def test_a_topic_that_does_not_exist_is_told_in_bounded_time(cluster: Cluster, app: Callable[..., App]) -> None:
    running = app("no-topic", "no-such-topic")
    assert running.process.wait(PATIENCE) == 1
    assert running.process.stderr.read() == "there is no topic 'no-such-topic'\n"
    assert not running.path.exists()


def test_what_a_record_holds_does_not_stop_the_workers(cluster: Cluster, app: Callable[..., App]) -> None:
    """They do not look into it: a malformed price is noted like any other."""
    create(cluster, "malformed", 1)
    values = [b'{"name": "IBM", "dollars": 90, "cents": 5}', None, b"", b"\xff\xfe", b"not JSON", b"[" * 100_000]
    producer = Producer(cluster.client_config())
    for value in values * 2:
        producer.produce("malformed", value, key="IBM")
    assert producer.flush(PATIENCE) == 0
    running = app("malformed", "malformed")
    running.wait_for(12)
    running.process.send_signal(signal.SIGTERM)
    assert running.process.wait(PATIENCE) == 128 + signal.SIGTERM
    assert Counter(running.places()) == Counter((0, offset) for offset in range(12))
    assert committed(cluster, "malformed", "malformed", 1) == {0: 12}


def test_who_overslept_goes_on_without_what_it_has_lost(cluster: Cluster, app: Callable[..., App]) -> None:
    create(cluster, "sleepy", 3)
    send(cluster, "sleepy", 0, 300, 3)
    sleeper = app("sleepy", "sleepy", "--work", "0.02")
    sleeper.wait_for(50)
    sleeper.process.send_signal(signal.SIGSTOP)
    other = app("sleepy", "sleepy", "--work", "0.001")
    other.wait_for(300)
    wait_until(lambda: committed(cluster, "sleepy", "sleepy") == dict.fromkeys(range(3), 100), PATIENCE, "all to be committed")
    sleeper.process.send_signal(signal.SIGCONT)
    cluster.wait_for(lambda v: len(v.groups["sleepy"].members) == 2, "the sleeper to be back", groups=True)
    send(cluster, "sleepy", 300, 600, 3)
    other.wait_for(600)
    for running in (sleeper, other):
        running.process.send_signal(signal.SIGTERM)
    assert [running.process.wait(PATIENCE) for running in (sleeper, other)] == [128 + signal.SIGTERM] * 2
    assert not passed(committed(cluster, "sleepy", "sleepy"), set(other.places()))


# With the new protocol partitions are taken away one by one, as with the cooperative one.
@pytest.mark.parametrize(
    "more",
    [
        {"heartbeat.interval.ms": 200},
        {"group.protocol": "consumer"},
        pytest.param(
            {"heartbeat.interval.ms": 200, "partition.assignment.strategy": "cooperative-sticky"}, marks=pytest.mark.at_length
        ),
    ],
    ids=["eager", "new protocol", "cooperative"],
)
def test_pools_that_join_and_leave_lose_nothing(cluster: Cluster, prices: str, more: dict[str, object]) -> None:
    group, quiet = f"shared {' '.join(more)}", threading.Event()
    processed: dict[str, list[Place]] = {name: [] for name in ("stays", "joins", "joins later")}
    stops = {name: threading.Event() for name in processed}
    raised: list[BaseException] = []

    def run(name: str) -> None:
        def work(record: Message) -> None:
            quiet.wait(0.02 if len(processed["joins"]) > 20 else 0.2)  # there is work left for who joins
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
    wait_until(lambda: total() >= 20, PATIENCE, "the first one to work")
    threads["joins"].start()
    wait_until(lambda: len(processed["joins"]) > 20, PATIENCE, "the second one to work", last_seen=total)
    stops["joins"].set()
    threads["joins"].join(PATIENCE)
    threads["joins later"].start()
    wait_until(lambda: total() == 900, PATIENCE, "all prices", last_seen=total)
    wait_until(lambda: committed(cluster, group) == dict.fromkeys(range(3), 300), PATIENCE, "the last commit")
    for name, thread in threads.items():
        stops[name].set()
        thread.join(PATIENCE)
        assert not thread.is_alive()
    assert not raised
    assert processed["joins"]
    assert {place for places in processed.values() for place in places} == ALL


@pytest.mark.parametrize("workers", [1, 2, 4, 8])
def test_as_many_records_are_processed_at_once_as_there_are_workers(cluster: Cluster, prices: str, workers: int) -> None:
    together = threading.Barrier(workers)  # opens only when so many records are being processed
    numbers, done, least = itertools.count(), [], 10 * workers

    def work(record: Message) -> None:
        if next(numbers) < least:
            together.wait(PATIENCE)
        done.append(record)

    pool = WorkerPool(consumer_of(cluster, f"at-once-{workers}"), work, Contiguous, workers=workers)
    pool.run(prices, lambda: len(done) >= least)
    assert not together.broken


def test_a_worker_is_not_two(cluster: Cluster, prices: str) -> None:
    """Which shows that the test above can fail."""
    together, done = threading.Barrier(2), []

    def work(record: Message) -> None:
        try:
            together.wait(1)
        except threading.BrokenBarrierError:
            done.append(record)

    WorkerPool(consumer_of(cluster, "not-two"), work, Contiguous, workers=1).run(prices, lambda: bool(done))
    assert together.broken


def test_a_pool_begins_by_its_reset_policy_where_somebody_committed_past_the_end(cluster: Cluster, prices: str) -> None:
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
    cluster.wait_for(lambda view: not view.groups["past-error"].members, "no members", PATIENCE, groups=True)


def test_a_trial_tells_right_from_wrong(cluster: Cluster, prices: str, tmp_path: Path, measured: Callable[[str], None]) -> None:
    hasty = try_pool(cluster.client_config(), prices, Highest, name="trial-highest", folder=tmp_path)
    right = try_pool(cluster.client_config(), prices, Contiguous, name="trial-contiguous", folder=tmp_path)
    measured(f"worker pool killed: commit after the highest {hasty}; after what is contiguous {right}")
    assert hasty.passed > 0 and hasty.lost > 0
    assert right.passed == right.lost == 0
    assert right.duplicates <= 3 * 50


# -- threads, and priorities ----------------------------------------------------------------------------------------


def test_five_threads_share_three_partitions_and_tell_what_ended_them(cluster: Cluster) -> None:
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
    wait_until(lambda: sum(map(len, read.values())) == 90, PATIENCE, "all prices")
    for thread in threads:
        thread.stop()
    assert sorted(len(places) for places in read.values()) == [0, 0, 30, 30, 30]
    assert committed(cluster, "threads", "threads") == dict.fromkeys(range(3), 30)
    cluster.wait_for(lambda view: not view.groups["threads"].members, "no members", PATIENCE, groups=True)

    thread = ConsumerThread({**settings, "group.id": "raises"}, "threads", lambda records: 1 / 0)
    thread.start()
    thread.join(PATIENCE)
    with pytest.raises(ZeroDivisionError):
        thread.stop()
    assert committed(cluster, "raises", "threads") == dict.fromkeys(range(3), 0)


def test_two_readers_of_one_partition_by_hand_both_read_all_of_it(cluster: Cluster, prices: str) -> None:
    settings = cluster.client_config(group_id="twins", enable_auto_commit=False, auto_offset_reset="earliest")
    read: list[list[int]] = [[], []]
    both_began = threading.Barrier(2)  # the first to commit would have the other begin there

    def note(record: Message, offsets: list[int]) -> None:
        if not offsets:
            both_began.wait(PATIENCE)
        offsets.append(record.offset())

    twins = [PartitionReader(settings, prices, 0, partial(note, offsets=offsets)) for offsets in read]
    for twin in twins:
        twin.start()
    wait_until(lambda: all(len(offsets) >= 300 for offsets in read), PATIENCE, "both to read all of it")
    for twin in twins:
        twin.stop()  # nobody told them: no error, and no group that either could have joined
    assert [sorted(offsets) for offsets in read] == [list(range(300))] * 2
    assert committed(cluster, "twins")[0] == 300
    cluster.wait_for(lambda view: not view.groups["twins"].members, "no members", PATIENCE, groups=True)


def test_the_last_partition_has_more_workers_and_keeps_its_keys_in_order(cluster: Cluster) -> None:
    create(cluster, "important", 3)
    producer = Producer(cluster.client_config())
    for number in range(60):
        for name, partition in (("ABC", 0), ("SUN", 1), ("IBM", 2), ("UBER", 2)):
            producer.produce("important", key=name, value=str(number), partition=partition)
    assert producer.flush(PATIENCE) == 0
    quiet, counting = threading.Event(), threading.Lock()
    at_once, most, read = Counter(), Counter(), []

    def handle(record: Message) -> None:
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
    wait_until(lambda: len(read) == 240, PATIENCE, "all of them")
    for reader in started:
        reader.stop()
    assert most == {0: 1, 1: 1, 2: 2}  # two keys: two at once
    for stock in (b"ABC", b"SUN", b"IBM", b"UBER"):
        assert [number for key, number in read if key == stock] == list(range(60))
    assert committed(cluster, "important", "important") == {0: 60, 1: 60, 2: 120}


def test_a_reader_does_not_commit_a_batch_in_which_one_failed(cluster: Cluster, prices: str) -> None:
    def handle(record: Message) -> None:
        if record.offset() == 7:
            raise ValueError("no price")

    settings = cluster.client_config(group_id="failed", enable_auto_commit=False, auto_offset_reset="earliest")
    reader = PartitionReader(settings, prices, 0, handle, workers=3)
    reader.start()
    reader.join(PATIENCE)
    with pytest.raises(ValueError, match="no price"):
        reader.stop()
    assert committed(cluster, "failed")[0] == 0


def test_important_first_and_the_others_do_not_move_meanwhile(cluster: Cluster) -> None:
    create(cluster, "first", 4)
    producer = Producer(cluster.client_config(linger_ms=100))
    for number in range(120):
        producer.produce("first", f"price {number}", partition=number % 4)
    assert producer.flush(PATIENCE) == 0
    settings = cluster.client_config(group_id="first", auto_offset_reset="earliest", enable_partition_eof=True)
    consumer, quiet = Consumer({**settings, "enable.auto.offset.store": False}), threading.Event()
    others = [TopicPartition("first", p) for p in range(3)]
    read: list[int] = []
    positions: list[list[int]] = []

    def handle(record: Message) -> None:
        read.append(record.partition())
        if record.partition() == 3:
            positions.append([p.offset for p in consumer.position(others)])
        if len(read) == 60:
            for number in range(20):
                producer.produce("first", f"late price {number}", partition=3)
            assert producer.flush(PATIENCE) == 0
        if len(read) >= 60 and read.count(3) == 30:
            quiet.wait(0.1)  # until the late ones have come

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

    def poll(self, *args: Any, **more: Any) -> Any:
        return super().poll(*args, **more) if self.told else self._tell()

    def consume(self, *args: Any, **more: Any) -> Any:
        return super().consume(*args, **more) if self.told else [self._tell()]

    def _tell(self) -> object:
        self.told = True
        self.unassign()
        return self


def test_a_reader_begins_when_the_coordinator_is_ready(cluster: Cluster, prices: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("partition_readers.Consumer", Unready)
    settings = cluster.client_config(group_id="unready", enable_auto_commit=False, auto_offset_reset="earliest")
    read: list[int] = []
    reader = PartitionReader(settings, prices, 0, lambda record: read.append(record.offset()))
    reader.start()
    wait_until(lambda: len(read) >= 300 or not reader.is_alive(), PATIENCE, "all of it")
    reader.stop()
    assert sorted(read) == list(range(300))

    monkeypatch.setattr(Unready, "code", KafkaError.GROUP_AUTHORIZATION_FAILED)  # of no use to ask again
    reader = PartitionReader(settings, prices, 0, lambda record: None)
    reader.start()
    with pytest.raises(KafkaException, match="GROUP_AUTHORIZATION_FAILED"):
        reader.join(PATIENCE)
        reader.stop()


def test_important_first_begins_when_the_coordinator_is_ready(cluster: Cluster, prices: str) -> None:
    settings = cluster.client_config(group_id="unready-first", auto_offset_reset="earliest", enable_partition_eof=True)
    read: list[int] = []
    consumer = Unready({**settings, "enable.auto.offset.store": False})
    give_up = time.monotonic() + 60
    read_important_first(
        consumer, prices, lambda record: read.append(record.partition()), lambda: len(read) == 900 or time.monotonic() > give_up
    )
    assert read[:300] == [2] * 300 and Counter(read) == {0: 300, 1: 300, 2: 300}
    assert committed(cluster, "unready-first") == {0: 300, 1: 300, 2: 300}

"""Producers and consumers in processes of their own: what they send, read, show, and how they end."""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError
from confluent_kafka.admin import AdminClient

from kafkalab import Cluster
from kafkalab.errors import (
    ClusterNotRunning,
    MessageFailed,
    UnknownPartition,
    UnknownTopic,
    WaitTimeout,
    WorkerClosed,
    WorkerFailed,
)
from kafkalab.lifeline import marked_processes
from kafkalab.waiting import wait_until
from kafkalab.workers import ConsoleConsumer, ConsoleProducer, LedgerProducer, Worker, wait_until_shared
from kafkalab.workers.plain_words import Warnings, in_plain_words
from kafkalab.workers.settings import combine, delivery_timeout, idempotence
from support import PATIENCE, commands, create, in_a_fork

MakeTopic = Callable[..., str]
Start = Callable[..., Worker]

numbers = itertools.count(1)


@pytest.fixture
def topic(cluster: Cluster) -> MakeTopic:
    """Makes a topic of its own for a test."""

    def make(partitions: int = 3, **config: str) -> str:
        name = f"topic-{next(numbers)}"
        create(cluster, name, partitions, **config)
        return name

    return make


@pytest.fixture
def start(cluster: Cluster) -> Iterator[Start]:
    """Starts workers that end with the test."""
    with contextlib.ExitStack() as stack:
        yield lambda kind, topic, **options: stack.enter_context(kind(cluster, topic, **options))


def committed(cluster: Cluster, group: str) -> dict[int, int]:
    admin = AdminClient(cluster.client_config())
    answer = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])[group].result(timeout=PATIENCE)
    return {p.partition: p.offset for p in answer.topic_partitions if p.offset >= 0}


# -- without a cluster ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "text", "who", "what"),
    [
        (
            KafkaError._TRANSPORT,
            "127.0.0.1:9092/0: Connect to ipv4#127.0.0.1:9092 failed: Connection refused (after 0ms in state CONNECT)",
            "broker 0",
            "connection refused",
        ),
        (
            KafkaError._TRANSPORT,
            "sasl_ssl://127.0.0.1:9092/2: Disconnected (after 12ms in state UP, 1 identical error(s) suppressed)",
            "broker 2",
            "disconnected",
        ),
        (KafkaError._TRANSPORT, "GroupCoordinator: 127.0.0.1:9: Disconnected", "group coordinator", "disconnected"),
        (KafkaError._TRANSPORT, "GroupCoordinator: Disconnected (after 3ms)", "group coordinator", "disconnected"),
        (KafkaError._SSL, "ssl://127.0.0.1:9/bootstrap: SSL handshake failed", "bootstrap server", "SSL handshake failed"),
        (KafkaError._ALL_BROKERS_DOWN, "4/3 brokers are down", "_ALL_BROKERS_DOWN", "all brokers are down"),
        (
            KafkaError._TIMED_OUT,
            "127.0.0.1:9/1: 2 request(s) timed out: disconnect (average rtt 1.0ms) (after 5000ms in state UP)",
            "broker 1",
            "2 request(s) timed out: disconnect",
        ),
        (KafkaError.UNKNOWN_TOPIC_OR_PART, "Subscribed topic gone", "UNKNOWN_TOPIC_OR_PART", "Subscribed topic gone"),
    ],
)
def test_errors_in_plain_words(code: int, text: str, who: str, what: str) -> None:
    assert in_plain_words(KafkaError(code, text)) == (who, what)


def test_warnings_do_not_repeat_themselves() -> None:
    refused = KafkaError(KafkaError._TRANSPORT, "127.0.0.1:9/1: Connect to ipv4#127.0.0.1:9 failed: Connection refused")
    gone = KafkaError(KafkaError._TRANSPORT, "127.0.0.1:9/1: Disconnected")
    down = KafkaError(KafkaError._ALL_BROKERS_DOWN, "3/3 brokers are down")
    warnings = Warnings()
    said = [line for error in (refused, refused, down, down, gone, refused) for line in warnings.say(error)]
    assert said == [
        "WARN broker 1: connection refused",
        "WARN _ALL_BROKERS_DOWN: all brokers are down",
        "WARN broker 1: disconnected",
        "WARN broker 1: connection refused",
    ]
    warnings.answered()
    assert list(warnings.say(down)) == ["WARN _ALL_BROKERS_DOWN: all brokers are down"]


def test_settings_have_one_name_each() -> None:
    settings = combine({"delivery.timeout.ms": 1, "acks": "all"}, {"message_timeout_ms": 2500, "log_level": 7})
    assert settings == {"delivery.timeout.ms": 2500, "acks": "all", "log_level": 7}
    assert delivery_timeout(settings) == 2.5
    assert delivery_timeout({"delivery.timeout.ms": 0}) == float("inf")


@pytest.mark.parametrize(
    ("given", "idempotent"),
    [({}, True), ({"acks": "all"}, True), ({"acks": -1}, True), ({"acks": 1}, False), ({"retries": 0}, False)],
)
def test_idempotence_unless_contradicted(given: dict[str, object], idempotent: bool) -> None:
    assert idempotence(given) == {"enable.idempotence": idempotent}


def test_an_event_of_which_a_kill_left_half_is_no_event() -> None:
    said = b'{"event": "started"}\n{"event": "progress", "sent": 1'
    process = SimpleNamespace(stdout=io.BytesIO(said), stdin=io.BytesIO(), wait=lambda: 1, returncode=1)
    worker = Worker.__new__(Worker)  # with what reading needs, and without a process
    vars(worker).update(_process=process, _end_is_known=False, _log_file=Path("nowhere"), _lines=[], _callbacks=[])
    worker._read()
    assert worker.lines == ["ended by itself"] and process.stdin.closed


def test_a_child_imports_little() -> None:
    code = (
        "import sys, kafkalab.workers.consumer_process, kafkalab.workers.producer_process, kafkalab.workers.ledger_process\n"
        "print([m for m in ('psutil', 'IPython', 'pyspark', 'pandas', 'kafkalab.cluster') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_needs_a_running_cluster() -> None:
    with pytest.raises(ClusterNotRunning, match="producer needs a running cluster"):
        ConsoleProducer(Cluster(backend="local"), "t")


# -- console producer ----------------------------------------------------------------------------------------------


@pytest.mark.cluster
def test_producer_says_where_each_message_stands(topic: MakeTopic, start: Start) -> None:
    producer = start(ConsoleProducer, topic(1))
    assert producer.send("m1", "m2") == [(0, 0), (0, 1)]
    assert producer.send("m3") == [(0, 2)]
    assert producer.lines == ["> m1", "> m2", "> m3"]


@pytest.mark.cluster
def test_messages_without_key_scatter_and_with_a_key_do_not(topic: MakeTopic, start: Start) -> None:
    producer = start(ConsoleProducer, topic(13))
    assert len({partition for partition, _ in producer.send(*(f"m{i}" for i in range(20)))}) > 1
    assert len({partition for partition, _ in producer.send(*(f"m{i}" for i in range(20)), key="k")}) == 1
    assert {partition for partition, _ in producer.send("a", "b", partition=7)} == {7}


@pytest.mark.cluster
def test_send_that_fails_names_kafkas_error(topic: MakeTopic, start: Start) -> None:
    producer = start(ConsoleProducer, topic(1), **{"message.max.bytes": 2000})
    with pytest.raises(MessageFailed, match="'m1' was not acknowledged: _UNKNOWN_PARTITION") as failure:
        producer.send("m1", "m2", partition=5)
    assert (failure.value.code, failure.value.value) == ("_UNKNOWN_PARTITION", "m1")
    assert producer.lines == ["ERROR m1: _UNKNOWN_PARTITION"]
    with pytest.raises(MessageFailed, match="MSG_SIZE_TOO_LARGE"):
        producer.send("x" * 5000)
    assert producer.send("m3") == [(0, 0)]


@pytest.mark.cluster
def test_not_enough_replicas(cluster: Cluster, topic: MakeTopic, start: Start) -> None:
    name = topic(1, min_insync_replicas="3")
    start(ConsoleProducer, name).send("m1")
    producer = start(ConsoleProducer, name, retries=0, delivery_timeout_ms=2000)

    def refusal() -> str:
        # The leader learns of the smaller ISR a little later than the controller decides it; what it takes until then
        # times out.
        with pytest.raises(MessageFailed) as failure:
            producer.send("m2")
        return failure.value.code

    follower = next(b for b in cluster.describe().brokers if b != cluster.describe().leaders(name)[0])
    cluster.pause(follower)
    try:
        cluster.wait_for(lambda view: follower not in view.isr(name)[0], "a smaller ISR")
        wait_until(lambda: refusal() == "NOT_ENOUGH_REPLICAS", PATIENCE, "the leader to refuse")
    finally:
        cluster.resume(follower)


@pytest.mark.cluster
def test_send_takes_texts(topic: MakeTopic, start: Start) -> None:
    producer = start(ConsoleProducer, topic(1))
    with pytest.raises(TypeError, match="send takes texts"):
        producer.send(["m1", "m2"])


@pytest.mark.cluster
def test_outage_of_all_brokers_is_seen(start: Start) -> None:
    with Cluster(brokers=1, backend="local") as single:
        create(single, "atu", 1, 1)
        producer = ConsoleProducer(single, "atu", delivery_timeout_ms=1500)
        consumer = ConsoleConsumer(single, "atu", from_beginning=True)
        producer.send("before")
        consumer.wait_for("before")
        consumer.wait_committed()  # else its group, begun anew, reads it once more
        single.kill(0)
        with pytest.raises(MessageFailed) as failure:
            producer.send("lost")
        assert failure.value.code == "_MSG_TIMED_OUT"
        wait_until(lambda: "WARN _ALL_BROKERS_DOWN: all brokers are down" in consumer.lines, PATIENCE, "a warning")
        assert "ERROR lost: _MSG_TIMED_OUT" in producer.lines
        assert "WARN _ALL_BROKERS_DOWN: all brokers are down" in producer.lines
        assert not any("127.0.0.1" in line for line in producer.lines + consumer.lines)
        late = ConsoleProducer(single, "atu")  # starting one is possible, as with the console tools
        single.restart(0)
        assert late.send("after") == [(0, 1)]
        assert consumer.wait_for(["before", "after"]) == ["before", "after"]
    assert not (producer.alive or consumer.alive or late.alive)
    assert consumer.lines[-1] == "ended with the cluster"


# -- console consumer ----------------------------------------------------------------------------------------------


@pytest.mark.cluster
def test_consumer_reads_what_is_sent_once_it_is_assigned(topic: MakeTopic, start: Start) -> None:
    name = topic(3)
    producer = start(ConsoleProducer, name)
    producer.send("old")
    late = start(ConsoleConsumer, name)
    early = start(ConsoleConsumer, name, from_beginning=True)
    assert late.wait_assigned(3) == {(name, 0), (name, 1), (name, 2)}
    [(partition, offset)] = producer.send("new", key="k")
    assert late.wait_for("new") == ["new"]
    [record] = late.records
    assert (record.topic, record.partition, record.offset, record.key, record.value) == (name, partition, offset, "k", "new")
    assert sorted(early.wait_for(2)) == ["new", "old"]
    assert early.wait_committed() == {(name, p): n for p, n in committed_of(early.records).items()}


def read_by(*members: ConsoleConsumer) -> dict[tuple[int, int], str | None]:
    """The values that a group has read, by place: on a busy machine a rebalance may have some read twice."""
    return {(record.partition, record.offset): record.value for member in members for record in member.records}


def committed_of(records: Any) -> dict[int, int]:
    return {record.partition: record.offset + 1 for record in records}


@pytest.mark.cluster
def test_a_group_shares_and_heals(cluster: Cluster, topic: MakeTopic, start: Start) -> None:
    name = topic(13)
    producer = start(ConsoleProducer, name)
    members = [start(ConsoleConsumer, name, group="mygroup") for _ in range(3)]
    shares = wait_until_shared(*members)
    assert sorted(map(len, shares.values())) == [4, 4, 5]
    producer.send(*(f"m{i}" for i in range(1, 8)))
    wait_until(lambda: len(read_by(*members)) == 7, PATIENCE, "all to be read", last_seen=lambda: read_by(*members))
    for member in members:
        member.wait_committed()
    had = [len(member.records) for member in members]
    members[2].kill()
    assert members[2].lines[-1] == "killed"
    assert members[2].assigned == set()
    assert sorted(map(len, wait_until_shared(*members[:2]).values())) == [6, 7]
    members[1].close()
    assert members[1].lines[-1] == "left the group"
    assert wait_until_shared(members[0]) == {members[0].name: set(range(13))}
    producer.send(*(f"m{i}" for i in range(8, 15)))
    members[0].wait_for([f"m{i}" for i in range(8, 15)])
    assert sorted(read_by(*members).values()) == sorted(f"m{i}" for i in range(1, 15))
    assert {value for member, n in zip(members, had, strict=True) for value in member.values[n:]} == {
        f"m{i}" for i in range(8, 15)
    }  # what was committed isn't read again
    members[0].wait_committed()
    assert sum(committed(cluster, "mygroup").values()) == 14


@pytest.mark.cluster
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"group_protocol": "consumer"},
        pytest.param({"partition_assignment_strategy": "cooperative-sticky"}, marks=pytest.mark.at_length),
    ],
    ids=["classic", "new", "sticky"],
)
def test_more_members_than_partitions(cluster: Cluster, topic: MakeTopic, start: Start, settings: dict[str, str]) -> None:
    name = topic(3)
    group = f"crowd-{name}"
    members = [start(ConsoleConsumer, name, group=group, **settings) for _ in range(5)]
    assert sorted(map(len, wait_until_shared(*members, timeout=PATIENCE).values())) == [0, 0, 1, 1, 1]
    cluster.wait_for(lambda view: len(view.groups[group].members) == 5, "the idle ones to have joined, too", groups=True)


@pytest.mark.cluster
@pytest.mark.parametrize("settings", [{"group_protocol": "consumer"}, {"partition_assignment_strategy": "cooperative-sticky"}])
def test_incremental_rebalance(topic: MakeTopic, start: Start, settings: dict[str, str]) -> None:
    name = topic(4)
    producer = start(ConsoleProducer, name)
    group = f"incremental-{name}"
    one = start(ConsoleConsumer, name, group=group, **settings)
    one.wait_assigned(4)
    other = start(ConsoleConsumer, name, group=group, **settings)
    assert sorted(map(len, wait_until_shared(one, other, timeout=PATIENCE).values())) == [2, 2]
    producer.send(*(f"m{i}" for i in range(8)))
    wait_until(lambda: len(read_by(one, other)) == 8, PATIENCE, "all to be read", last_seen=lambda: read_by(one, other))


@pytest.mark.cluster
def test_given_partitions(cluster: Cluster, topic: MakeTopic, start: Start) -> None:
    name = topic(3)
    producer = start(ConsoleProducer, name)
    producer.send("a", "b", partition=0)
    producer.send("c", partition=1)
    old = start(ConsoleConsumer, name, partitions=[0], from_beginning=True, show_offsets=True)
    new = start(ConsoleConsumer, name, partitions=[0, 2])
    assert old.wait_for(2) == ["a", "b"]
    assert new.assigned == {(name, 0), (name, 2)}  # at once: what is sent from now on is read
    producer.send("d", partition=0)
    assert new.wait_for(1) == ["d"]
    assert old.wait_for(3) == ["a", "b", "d"]
    assert old.lines == ["p0@0 a", "p0@1 b", "p0@2 d"]
    old.close()
    assert old.lines[-1] == "closed"
    assert committed(cluster, old.group) == {}


@pytest.mark.cluster
def test_wait_for_says_what_was_seen(topic: MakeTopic, start: Start) -> None:
    name = topic(1)
    start(ConsoleProducer, name).send("m1")
    consumer = start(ConsoleConsumer, name, from_beginning=True)
    consumer.wait_for("m1")
    with pytest.raises(WaitTimeout, match=r"to read \['m2'\]; last seen: 1 records, the last ones \['m1'\]"):
        consumer.wait_for("m2", timeout=0.2)
    with pytest.raises(WaitTimeout, match="to read 3 records"):
        consumer.wait_for(3, timeout=0.2)
    consumer.kill()
    assert consumer.wait_for("m1") == ["m1"]  # it had come
    with pytest.raises(WorkerClosed, match="cannot wait for .*: killed"):
        consumer.wait_for("m2")


@pytest.mark.cluster
def test_lines_call_back_in_order_whatever_the_callback_does(topic: MakeTopic, start: Start) -> None:
    name = topic(1)
    consumer = start(ConsoleConsumer, name, from_beginning=True)
    seen: list[str] = []
    consumer.on_line(lambda line: 1 / 0)
    consumer.on_line(seen.append)
    start(ConsoleProducer, name).send(*(f"m{i}" for i in range(50)))
    consumer.wait_for(50)
    consumer.close()
    assert seen == [f"m{i}" for i in range(50)] + ["left the group"] == consumer.lines


# -- every worker --------------------------------------------------------------------------------------------------


@pytest.mark.cluster
@pytest.mark.parametrize("kind", [ConsoleProducer, ConsoleConsumer, LedgerProducer])
def test_unknown_topic(cluster: Cluster, kind: type[Worker]) -> None:
    with pytest.raises(UnknownTopic, match="no topic 'nope'"):
        kind(cluster, "nope")
    assert not _children(cluster)
    assert "nope" not in cluster.describe().topics


def _children(cluster: Cluster) -> list[list[str]]:
    return [words for words in commands(cluster.nodes.run.id) if "kafkalab.workers" in " ".join(words)]


@pytest.mark.cluster
def test_unknown_partition(cluster: Cluster, topic: MakeTopic) -> None:
    with pytest.raises(UnknownPartition, match=r"has 3 partitions, numbered from 0: no \[7\]"):
        ConsoleConsumer(cluster, topic(3), partitions=[1, 7])


@pytest.mark.cluster
@pytest.mark.parametrize("kind", [ConsoleProducer, ConsoleConsumer, LedgerProducer])
def test_refused_settings(cluster: Cluster, topic: MakeTopic, kind: type[Worker]) -> None:
    with pytest.raises(WorkerFailed, match='No such configuration property: "no.such.thing"'):
        kind(cluster, topic(1), no_such_thing=1)


@pytest.mark.cluster
def test_closed_workers_say_so(topic: MakeTopic, start: Start) -> None:
    name = topic(1)
    producer = start(ConsoleProducer, name)
    producer.close()
    producer.close()  # again is nothing
    with pytest.raises(WorkerClosed, match="cannot send with producer-.*: closed; make a new producer"):
        producer.send("m1")
    with pytest.raises(WorkerClosed, match="cannot kill"):
        producer.kill()
    assert producer.lines == ["closed"]


@pytest.mark.cluster
def test_a_worker_that_dies_by_itself(topic: MakeTopic, start: Start) -> None:
    producer = start(ConsoleProducer, topic(1))
    os.kill(producer.pid, signal.SIGKILL)
    wait_until(lambda: not producer.alive, PATIENCE, "it to be gone")
    assert producer.lines == ["ended by SIGKILL (9): killed from outside; out of memory?"]
    with pytest.raises(WorkerFailed, match=r"producer-\d+ was ended by SIGKILL \(9\): killed from outside; out of memory\?"):
        producer.send("m1")


@pytest.mark.cluster
def test_a_name_has_one_worker(topic: MakeTopic, start: Start) -> None:
    name = topic(2)
    first = start(ConsoleConsumer, name, name="consumer 1", group="named")
    first.wait_assigned(2)
    second = start(ConsoleConsumer, name, name="consumer 1", group="named")
    assert not first.alive
    second.wait_assigned(2)


@pytest.mark.cluster
def test_out_of_reach_of_an_interrupt_and_within_reach_of_the_reaper(cluster: Cluster, topic: MakeTopic, start: Start) -> None:
    consumer = start(ConsoleConsumer, topic(1))
    assert os.getsid(consumer.pid) != os.getsid(0)
    assert consumer.pid in [process.pid for process in marked_processes(cluster.nodes.run.id)]


@pytest.mark.cluster
def test_a_forked_child_leaves_it_alone(topic: MakeTopic, start: Start) -> None:
    producer = start(ConsoleProducer, topic(1))
    in_a_fork(producer.close)
    assert producer.send("m1") == [(0, 0)]


@pytest.mark.cluster
def test_ends_when_its_parent_does(cluster: Cluster, topic: MakeTopic) -> None:
    # The start command is all that the child gets; then the pipe ends.
    start = {
        "config": cluster.client_config(),
        "topic": topic(1),
        "ledger": os.devnull,
        "rate": 10,
        "keys": [],
        "count": None,
        "answered": True,
    }
    for module in ("producer", "ledger"):
        command = [sys.executable, "-m", f"kafkalab.workers.{module}_process"]
        done = subprocess.run(
            command, check=False, input=json.dumps(start) + "\n", capture_output=True, text=True, timeout=PATIENCE
        )
        assert done.returncode == 0
        assert json.loads(done.stdout.splitlines()[0]) == {"event": "started"}


# -- ledger --------------------------------------------------------------------------------------------------------


@pytest.mark.cluster
def test_ledger_holds_each_acknowledged_message(topic: MakeTopic, start: Start) -> None:
    name = topic(3)
    ledger = start(LedgerProducer, name, rate=1000, count=500, keys=["a", "b"], enable_idempotence=True)
    assert ledger.wait_finished() == 500
    assert (ledger.sent, ledger.failed, ledger.failures) == (500, 0, {})
    assert [entry.seq for entry in sorted(ledger.entries, key=lambda e: e.seq)] == list(range(1, 501))
    consumer = start(ConsoleConsumer, name, from_beginning=True)
    consumer.wait_for(500)
    written = {(e.partition, e.offset, e.key, e.value) for e in ledger.entries}
    assert written == {(r.partition, r.offset, r.key, r.value) for r in consumer.records}
    assert ledger.lines[-2:] == ["500 sent, 500 acknowledged", "closed"]


class SeenLate(LedgerProducer):
    """A ledger whose parent gets to look only after the last message, as on a busy machine."""

    def _await_start(self) -> None:
        self._reader.join()
        super()._await_start()


@pytest.mark.cluster
def test_ledger_may_be_complete_before_anybody_looks(topic: MakeTopic, start: Start) -> None:
    ledger = start(SeenLate, topic(1), rate=1000, count=5)
    assert (ledger.state, ledger.wait_for(5), ledger.wait_finished(), ledger.stop()) == ("closed", 5, 5, 5)


@pytest.mark.cluster
def test_ledger_names_no_offset_that_nobody_confirmed(topic: MakeTopic, start: Start) -> None:
    """With acks=0 librdkafka counts the records of a batch, as if it knew where the batch is."""
    ledger = start(LedgerProducer, topic(1), rate=1000, count=50, acks=0, linger_ms=200)
    assert ledger.wait_finished() == 50
    assert {entry.offset for entry in ledger.entries} == {-1}


@pytest.mark.cluster
def test_ledger_is_never_faster_than_its_rate_and_stops(topic: MakeTopic, start: Start) -> None:
    name, began = topic(3), time.time()
    ledger = start(LedgerProducer, name, rate=10)
    ledger.wait_for(20)
    total = ledger.stop()
    assert total == ledger.sent == len(ledger.entries)
    rounding = 0.001  # the ledger counts in milliseconds
    assert all(entry.at - entry.ms / 1000 - began >= (entry.seq - 1) / 10 - rounding for entry in ledger.entries)


@pytest.mark.cluster
def test_killing_the_producer_loses_no_line_of_the_ledger(topic: MakeTopic, start: Start) -> None:
    name = topic(3)
    ledger = start(LedgerProducer, name, rate=500)
    ledger.wait_for(200)
    ledger.kill()
    assert ledger.lines[-1] == "killed"
    lines = ledger.ledger.read_text().splitlines()
    assert len(lines) == ledger.acknowledged >= 200
    consumer = start(ConsoleConsumer, name, from_beginning=True)
    consumer.wait_for([json.loads(line)["value"] for line in lines])


@pytest.mark.cluster
def test_ledger_survives_the_death_of_a_leader(cluster: Cluster, topic: MakeTopic, start: Start) -> None:
    name = topic(3)
    consumer = start(ConsoleConsumer, name, from_beginning=True)
    # With more than one request in flight librdkafka may double in spite of idempotence: its issue 4953.
    ledger = start(LedgerProducer, name, rate=200, enable_idempotence=True, max_in_flight=1, delivery_timeout_ms=60_000)
    ledger.wait_for(100)
    cluster.kill(1)
    try:
        ledger.wait_for(ledger.acknowledged + 600, timeout=PATIENCE)
        acknowledged = ledger.stop()
        assert ledger.failed == 0
        written = [entry.value for entry in ledger.entries]
        assert len(written) == acknowledged
        consumer.wait_for(written)
        # The consumer may read a record again when its group moves to another coordinator: the log is what counts.
        log = {(record.partition, record.offset): record.value for record in consumer.records}
        assert sorted(log.values()) == sorted(written)
        assert any(line.startswith("WARN broker 1: ") for line in ledger.lines)
    finally:
        cluster.restart(1)


@pytest.mark.cluster
def test_ledger_needs_a_rate(cluster: Cluster) -> None:
    with pytest.raises(ValueError, match="more than 0, not 0"):
        LedgerProducer(cluster, "t", rate=0)

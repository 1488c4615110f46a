"""What tests of every kind use: topics, records, verdicts, and a cluster made as good as new."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import psutil
import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from kafka.protocol.consumer.group import LeaveGroupRequest, LeaveGroupResponse

from kafkalab import Cluster, ConsoleConsumer, check, wait_until
from kafkalab.cluster import ClusterView, Fault, PartitionView
from kafkalab.cluster.offsets import end_offsets
from kafkalab.cluster.ports import reserve_port
from kafkalab.cluster.wire import BrokerConnection
from kafkalab.lifeline import Run, claimed_runs, marked_processes
from kafkalab.workers import wait_until_shared

__all__ = [
    "BACKEND",
    "Doctored",
    "MALFORMED_PRICES",
    "PATIENCE",
    "Place",
    "Record",
    "SAYS_WHERE_IT_STANDS",
    "Told",
    "Verdict",
    "commands",
    "commit",
    "create",
    "delete",
    "delete_topics",
    "empty",
    "end",
    "every_group",
    "flip_bits",
    "in_a_fork",
    "led",
    "lives",
    "living",
    "members",
    "on_a_port",
    "own_runs",
    "put",
    "renew",
    "send",
    "spread",
    "wait_for",
    "wait_for_level",
]

T = TypeVar("T")

BACKEND = os.environ.get("KAFKALAB_BACKEND", "local")
"""What the clusters of checks and faults run on; `make test-all` has a round with each."""

PATIENCE = 120.0
"""Seconds to wait at most for what must happen."""

TIERS_OWN = {"__remote_log_metadata"}
"""In which brokers note what a remote tier holds. They need it to delete other topics, and make it anew when it's gone."""

Record = tuple[bytes | str | None, bytes | str | None, int]
"""Key, value, partition."""

Place = tuple[int, int]
"""Partition and offset."""

MALFORMED_PRICES = (
    None,
    b"",
    b"\xff\xfe",
    b"IBM 90.05",
    b"[" * 100_000,
    b"null",
    b'{"name": "IBM", "dollars": 90}',
    b'{"name": "IBM", "dollars": 90, "cents": -5}',
    b'{"name": "\\ud800", "dollars": 90, "cents": 5}',
    b'{"name": "IBM", "dollars": 1' + b"0" * 30 + b', "cents": 5}',
    b'{"name": "IBM", "dollars": NaN, "cents": 5}',
)
"""Values that aren't a stock price, each for another reason."""


class Verdict:
    """Runs checks and looks at what they print."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, lab: str, cluster: object, **answers: object) -> tuple[bool, str]:
        """Whether the check passed, and what it printed."""
        self._capsys.readouterr()
        passed = bool(check(lab, cluster, **answers))
        return passed, self._capsys.readouterr().out

    def passes(self, lab: str, cluster: Cluster, **answers: object) -> None:
        """The check passes."""
        passed, printed = self(lab, cluster, **answers)
        assert passed, printed

    def says(self, sentence: str, lab: str, cluster: Cluster, **answers: object) -> None:
        """The check does not pass, and says this."""
        passed, printed = self(lab, cluster, **answers)
        assert not passed
        assert sentence in printed, printed


def led(cluster: Cluster) -> ClusterView:
    """The cluster with an active controller: there's none during an election, nor when nobody says in time who it is."""
    return cluster.wait_for(lambda view: view.controller is not None and view, "an active controller")


def wait_for(cluster: Cluster, condition: Callable[[ClusterView], T], what: str, *, groups: bool = False) -> T:
    """As the cluster's own, with `PATIENCE`."""
    return cluster.wait_for(condition, what, PATIENCE, groups=groups)


def wait_for_level(cluster: Cluster, feature: str, level: int) -> None:
    """Wait until every broker has heard that a feature is finalized at this level; 0 is off."""

    def known() -> bool:
        return all(features.finalized.get(feature, 0) == level for features in cluster.nodes.features().values())

    wait_until(known, PATIENCE, f"every broker to know {feature} {level}", last_seen=cluster.nodes.features)


def every_group(cluster: Cluster) -> ClusterView:
    """The cluster with all its groups. A broker that doesn't answer, because it is just starting, would hide those it has."""
    return cluster.wait_for(lambda view: not view.silent and view, "every broker's groups", PATIENCE, groups=True)


def evict_members(cluster: Cluster) -> None:
    """Remove all members from their groups: one that was killed would stay until its session times out, 45 s by default.

    As Java's admin client does it (``removeMembersFromConsumerGroup``); each broker does so for the groups that it coordinates.
    """
    if cluster._lifecycle.spec.security is not None:
        return  # it doesn't let everybody do that
    view = every_group(cluster)
    for broker in view.brokers_up:
        connection = BrokerConnection(cluster.clients.bootstrap(broker), timeout=10)
        for group in view.groups.values():
            leaving = [LeaveGroupRequest.MemberIdentity(member_id=member.id) for member in group.members]
            request = LeaveGroupRequest(group_id=group.id, members=leaving, version=4)
            connection.ask(request, LeaveGroupResponse, 4)
        connection.close()


SAYS_WHERE_IT_STANDS = {"PYTHONFAULTHANDLER": "1"}
"""A Python program with this variable says where its threads stand if SIGABRT ends it."""


def end(program: subprocess.Popen[Any], log: Path, patience: float = PATIENCE) -> None:
    """Let a program with `SAYS_WHERE_IT_STANDS` end by SIGTERM. If it doesn't in time, fail with the end of its log."""
    program.terminate()
    try:
        program.wait(patience)
    except subprocess.TimeoutExpired:
        program.send_signal(signal.SIGABRT)
        program.wait()
        raise AssertionError(f"{program.args!r} didn't end within {patience:g} s:\n{log.read_text()[-8000:]}") from None


def lives(process: psutil.Process) -> bool:
    """Whether it runs. One that has ended and wasn't waited for (a zombie) doesn't; between two questions to psutil it may be gone."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def living(processes: Iterable[psutil.Process], ask: Callable[[psutil.Process], T]) -> list[T]:
    """What they answer. One that has ended since they were listed has nothing to say."""
    answers = []
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            answers.append(ask(process))
    return answers


def commands(run_id: str) -> list[list[str]]:
    """The command of each process of a run, word by word."""
    return living(marked_processes(run_id), lambda process: process.cmdline())


def empty(cluster: Cluster) -> None:
    """Delete all topics but `TIERS_OWN`, and all groups. A test that failed may have left members: they are ended."""
    for process in marked_processes(cluster.nodes.run.id):
        try:
            if "kafkalab.workers" in " ".join(process.cmdline()):
                process.kill()
        except psutil.NoSuchProcess:
            pass
    evict_members(cluster)
    view = cluster.wait_for(
        lambda v: not v.silent and all(not g.members for g in v.groups.values()) and v, "no members", PATIENCE, groups=True
    )
    admin = AdminClient(cluster.client_config())
    if view.groups:
        for deleted in admin.delete_consumer_groups(list(view.groups)).values():
            deleted.result()
    delete_topics(cluster, view.topics.keys() - TIERS_OWN)

    def bare(view: ClusterView) -> bool:
        return not view.silent and view.topics.keys() <= TIERS_OWN and not view.groups

    wait_for(cluster, bare, "the topics and groups to be gone", groups=True)


def flip_bits(path: Path) -> None:
    """Damage a file: its size stays."""
    content = bytearray(path.read_bytes())
    for place in range(20):
        content[len(content) * place // 20] ^= 1
    path.chmod(0o644)
    path.write_bytes(content)


def on_a_port() -> list[str]:
    """The option that gives ``kafkalab lab`` a port of its own.

    Jupyter looks whether 8888 is free and listens seconds later; of two tests that do so at once, one fails.
    """
    with reserve_port() as reserved:
        return ["--port", str(reserved.port)]


def own_runs() -> set[str]:
    """Ids of what this process started and that is still there; tests beside it start other things."""
    return {run for run in claimed_runs() if Run(run).is_mine()}


def in_a_fork(act: Callable[[], object]) -> None:
    """Do it in a process that is forked off, as a worker of multiprocessing would in its copy of everything."""
    child = os.fork()
    if child == 0:
        done = False
        try:
            act()
            done = True
        finally:
            os._exit(0 if done else 1)  # librdkafka's clients can't be taken apart here: its threads are not in the fork
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def renew(cluster: Cluster) -> None:
    """Let all nodes run and be in touch with each other, and remove topics and groups."""
    for broker in cluster.describe(groups=False).brokers.values():
        if broker.state == "isolated":
            cluster.heal(broker.id)
        elif broker.state == "paused":
            cluster.resume(broker.id, 60)
        elif broker.state != "up":
            cluster.restart(broker.id)
    empty(cluster)
    cluster.nodes.faults.clear()


def create(
    cluster: Cluster,
    topic: str,
    partitions: int,
    copies: int = 3,
    *,
    placed: Sequence[Sequence[int]] | None = None,
    **config: str,
) -> None:
    """Create a topic and wait until its replicas are in sync and all brokers know it; settings with underscores for dots.

    Where replicas are `placed` by hand, each partition's brokers take the place of the number of copies.
    """
    admin = AdminClient(cluster.client_config())
    config = {name.replace("_", "."): value for name, value in config.items()}
    how = {"replica_assignment": [list(brokers) for brokers in placed]} if placed else {"replication_factor": copies}
    is_new = topic not in cluster.describe(groups=False).topics
    try:
        admin.create_topics([NewTopic(topic, partitions, config=config, **how)])[topic].result()
    except KafkaException as error:
        # A broker whose controller didn't answer within 3 s asks again, and hears of what its first request created.
        if not is_new or error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise

    def there(view: ClusterView) -> bool:
        return len(view.topics[topic]) == partitions and view.in_sync(topic)

    wait_for(cluster, there, f"the topic {topic}")


def delete(cluster: Cluster, topic: str) -> None:
    """Delete a topic and wait until no broker knows it."""
    delete_topics(cluster, [topic])


def delete_topics(cluster: Cluster, topics: Iterable[str]) -> None:
    """Delete topics and wait until no broker knows them; for an internal one you wait yourself."""
    if not (names := sorted(topics)):
        return
    admin = AdminClient(cluster.client_config())
    known = cluster.describe(groups=False, internal=True).topics
    for topic, deleted in admin.delete_topics(names).items():
        try:
            deleted.result()
        except KafkaException as error:
            # As in `create`: a broker that asks its controller again hears that what its first request deleted isn't there.
            if topic not in known or error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise
    wait_for(cluster, lambda view: not view.topics.keys() & set(names), f"{', '.join(names)} to be gone")


def put(cluster: Cluster, topic: str, records: Iterable[Record], **settings: object) -> list[Place]:
    """Send records; the partition -1 leaves the choice to the producer. Where they are, sorted."""
    places: list[Place] = []
    producer = Producer(cluster.client_config(**settings))

    def note(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            raise KafkaException(error)  # in `flush`
        places.append((message.partition(), message.offset()))

    for key, value, partition in records:
        producer.produce(topic, value, key=key, partition=partition, on_delivery=note)
    assert producer.flush(PATIENCE) == 0
    return sorted(places)


def commit(cluster: Cluster, group: str, topic: str, offsets: Mapping[int, int] | None = None) -> None:
    """Commit offsets for a group, without joining it. Without `offsets`, the end of every partition."""
    with Consumer(cluster.client_config(group_id=group, enable_auto_commit=False)) as consumer:
        wanted = end_offsets(cluster, topic) if offsets is None else offsets
        consumer.commit(offsets=[TopicPartition(topic, p, offset) for p, offset in wanted.items()], asynchronous=False)


@contextmanager
def members(cluster: Cluster, topic: str, group: str, number: int) -> Iterator[None]:
    """So many members in a group, which share a topic's partitions."""
    with ExitStack() as stack:
        # Nobody kills them: on a busy machine one that is silent for 3 s would lose its partitions.
        settings = {"group": group, "session_timeout_ms": 30_000}
        started = [stack.enter_context(ConsoleConsumer(cluster, topic, **settings)) for _ in range(number)]
        wait_until_shared(*started, timeout=PATIENCE)
        yield


class Altered:
    """Something else, but for some attributes."""

    def __init__(self, original: object, **attributes: object) -> None:
        self._original = original
        vars(self).update(attributes)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)


class Told(Altered):
    """A cluster that says these faults were done to it, and no others. They weren't."""

    def __init__(self, cluster: Cluster, *faults: tuple[str, int]) -> None:
        noted = [Fault(float(at), verb, broker) for at, (verb, broker) in enumerate(faults)]
        super().__init__(cluster, nodes=Altered(cluster.nodes, faults=noted))


def spread(cluster: Cluster, topic: str, *values: str) -> None:
    """Send values to the partitions in turn."""
    partitions = len(cluster.describe(groups=False).topics[topic])
    put(cluster, topic, [(None, value, number % partitions) for number, value in enumerate(values)])


def send(cluster: Cluster, topic: str, values: Sequence[str], *, key: Callable[[int], str | None] = lambda _: None) -> None:
    """Send values one at a time, each with a partition of its own choice, or chosen by the key for its place."""
    producer = Producer(cluster.client_config(**{"sticky.partitioning.linger.ms": 0}))
    for number, value in enumerate(values):
        producer.produce(topic, value, key=key(number))
        assert producer.flush(PATIENCE) == 0


class Doctored(Altered):
    """A cluster that shows something else than it is: what is over in a moment, for example."""

    def __init__(self, cluster: Cluster, topic: str, change: Callable[[PartitionView], PartitionView]) -> None:
        super().__init__(cluster)
        self._cluster, self._topic, self._change = cluster, topic, change

    def describe(self, **options: bool) -> ClusterView:
        """As the cluster's, with the topic's partitions changed."""
        view = self._cluster.describe(**options)
        topics = {**view.topics, self._topic: tuple(self._change(p) for p in view.topics[self._topic])}
        return replace(view, topics=topics)

"""What `MirrorMaker` guarantees. It is a process of this machine, whatever back end its clusters have."""

from __future__ import annotations

import stat
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from contract_support import DOCKER_AT_LENGTH
from kafkalab import Cluster, wait_until
from kafkalab.checks import CheckContext
from kafkalab.errors import MirrorFailed
from kafkalab.paths import runs_dir
from kafkalab.services import MirrorMaker
from support import PATIENCE, create, in_a_fork

pytestmark = DOCKER_AT_LENGTH

QUICK = {
    "refresh.topics.interval.seconds": 1,
    "refresh.groups.interval.seconds": 1,
    "emit.checkpoints.interval.seconds": 1,
    "sync.group.offsets.enabled": True,
    "sync.group.offsets.interval.seconds": 1,
    "offset.lag.max": 0,
    "sync.topic.acls.enabled": False,
    "second.offset.flush.interval.ms": 1000,  # with its position it also notes which offset became which
}
FLOW = {"first->second.enabled": True, "first->second.topics": "prices"}
RECORDS = 90


@pytest.fixture(scope="module")
def pair(backend: str) -> Iterator[tuple[Cluster, Cluster]]:
    """Two clusters of one broker, and records in the first one."""
    settings = {"auto.create.topics.enable": False}
    with Cluster(1, backend=backend, settings=settings) as first, Cluster(1, backend=backend, settings=settings) as second:
        create(first, "prices", 3, 1)
        send(first, range(RECORDS))
        yield first, second


@pytest.fixture(scope="module")
def mirror(pair: tuple[Cluster, Cluster]) -> Iterator[MirrorMaker]:
    """From the first to the second one."""
    first, second = pair
    with MirrorMaker({"first": first, "second": second}, {**QUICK, **FLOW}) as mirror:
        yield mirror


def send(cluster: Cluster, numbers: range) -> None:
    producer = Producer(cluster.client_config(enable_idempotence=True))
    for number in numbers:
        producer.produce("prices", f"price {number}", key=f"key {number % 7}", partition=number % 3, headers={"n": str(number)})
    assert producer.flush(PATIENCE) == 0


def content(cluster: Cluster, topic: str) -> Counter:
    """What is kept of a record: all but its offset."""
    return Counter(
        (m.partition(), m.key(), m.value(), m.timestamp(), tuple(m.headers() or ()))
        for m in CheckContext(cluster).records(topic)
    )


def copied(first: Cluster, second: Cluster) -> None:
    """Wait until all records of the first cluster are in the second one, some perhaps twice."""
    wanted = content(first, "prices")

    def there() -> bool:
        return wanted.keys() == content(second, "first.prices").keys()

    wait_until(there, PATIENCE, f"{len(wanted)} records", last_seen=lambda: len(content(second, "first.prices")))


def test_records_come_with_all_but_their_offset(pair: tuple[Cluster, Cluster], mirror: MirrorMaker) -> None:
    first, second = pair
    copied(first, second)
    assert content(second, "first.prices") == content(first, "prices")
    assert "prices" not in second.describe(groups=False).topics
    assert not any(name.startswith("second.") for name in first.describe(groups=False).topics)


def test_start_returns_when_every_connector_runs(mirror: MirrorMaker) -> None:
    states = mirror.states()
    assert {states[name] for flow in mirror.flows for name in flow.connectors()} == {"RUNNING"}
    assert mirror.failures() == {}
    pid = mirror.pid
    assert mirror.start().pid == pid  # one that runs is left as it is


def test_its_workers_are_no_consumer_group(pair: tuple[Cluster, Cluster], mirror: MirrorMaker) -> None:
    assert not [group for group in pair[1].describe().groups if group.endswith("-mm2")]


def test_a_forked_child_leaves_it_alone(mirror: MirrorMaker) -> None:
    in_a_fork(mirror.stop)
    assert mirror.running


def test_it_listens_nowhere_and_its_settings_are_its_owners(mirror: MirrorMaker) -> None:
    process = psutil.Process(mirror.pid)
    assert not [c for c in process.net_connections() if c.status == psutil.CONN_LISTEN]
    file = Path(process.cmdline()[-1])
    private = (file, file.with_name("mirror.log"), file.with_name("mirror-output.log"))
    assert {stat.S_IMODE(path.stat().st_mode) for path in private} == {0o600}


def test_native_libraries_are_unpacked_into_its_folder(mirror: MirrorMaker) -> None:
    """Else they stay in the folder for temporary data when it's killed."""
    process = psutil.Process(mirror.pid)
    assert f"-Djava.io.tmpdir={process.cwd()}" in process.cmdline()


def test_there_are_as_many_copies_as_brokers(pair: tuple[Cluster, Cluster], mirror: MirrorMaker) -> None:
    """The fixture sets none of the seven replication factors; Kafka's own are 2 and 3."""
    topics = pair[1].describe(groups=False, internal=True).topics
    assert {"first.prices", "heartbeats", "first.checkpoints.internal", "mm2-offsets.first.internal"} <= topics.keys()
    assert {len(partition.replicas) for partitions in topics.values() for partition in partitions} == {1}


@pytest.mark.parametrize(
    ("setting", "value"),
    [("replication.factor", "2"), ("first->second.replication.factor", "2"), ("second.status.storage.replication.factor", "3")],
)
def test_a_replication_factor_of_ones_own_wins(pair: tuple[Cluster, Cluster], setting: str, value: str) -> None:
    first, second = pair
    properties = MirrorMaker({"first": first, "second": second}, {**FLOW, setting: value})._properties()
    assert properties[setting] == value
    if setting == "replication.factor":  # one for this flow would count more
        assert "first->second.replication.factor" not in properties


def test_a_group_goes_on_in_the_other_cluster(pair: tuple[Cluster, Cluster], mirror: MirrorMaker) -> None:
    first, second = pair
    consumer = Consumer(first.client_config(group_id="readers"))
    consumer.commit(offsets=[TopicPartition("prices", p, RECORDS // 3) for p in range(3)], asynchronous=False)
    consumer.close()
    admin = AdminClient(second.client_config())

    def translated() -> list[int]:
        asked = [ConsumerGroupTopicPartitions("readers", [TopicPartition("first.prices", p) for p in range(3)])]
        return [p.offset for p in admin.list_consumer_group_offsets(asked)["readers"].result().topic_partitions]

    wait_until(lambda: translated() == [RECORDS // 3] * 3, PATIENCE, "translated offsets", last_seen=translated)


@pytest.mark.at_length  # every day chapter 8 does that, and two labs do
def test_killed_and_started_again_it_misses_nothing(pair: tuple[Cluster, Cluster], mirror: MirrorMaker) -> None:
    first, second = pair
    mirror.kill()
    assert not mirror.running
    send(first, range(RECORDS, 2 * RECORDS))
    mirror.start()
    copied(first, second)


def test_it_goes_on_after_the_target_was_down(pair: tuple[Cluster, Cluster], mirror: MirrorMaker) -> None:
    first, second = pair
    second.kill(0)
    send(first, range(2 * RECORDS, 3 * RECORDS))
    second.restart(0)
    copied(first, second)


def test_stop_leaves_nothing(pair: tuple[Cluster, Cluster], mirror: MirrorMaker) -> None:
    process, folder = psutil.Process(mirror.pid), Path(psutil.Process(mirror.pid).cwd())
    mirror.stop()
    assert not mirror.running and not process.is_running()
    assert folder.parent == runs_dir() and not folder.exists()
    mirror.stop()  # a stopped one is left as it is
    with pytest.raises(MirrorFailed, match="doesn.t run"):
        mirror.kill()
    assert mirror.logs() == "" and mirror.states() == {}

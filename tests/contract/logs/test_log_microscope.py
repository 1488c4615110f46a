"""What the log microscope reads is what brokers and clients say, on every back end."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, IsolationLevel, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    OffsetSpec,
    ResourceType,
)
from kafka.protocol.admin import DescribeLogDirsRequest, DescribeLogDirsResponse

from contract_support import DOCKER_AT_LENGTH, make_topic
from kafkalab import Cluster, LogMicroscope
from kafkalab.cluster.log_files import LogFiles
from kafkalab.cluster.log_reader import LogReader, LogView
from kafkalab.cluster.record_batches import Record, RecordBatch
from kafkalab.cluster.wire import BrokerConnection
from kafkalab.errors import NoReplica, UnknownBroker, UnknownPartition, UnknownTopic
from kafkalab.waiting import wait_until
from picture_support import texts
from support import PATIENCE, delete
from widget_support import html

pytestmark = DOCKER_AT_LENGTH

ONE_RECORD_A_SEGMENT = {"index.interval.bytes": "1", "segment.index.bytes": "12"}
TABLE = "K1V5 K5V2 K2V7 K7V1 K8V4 K4V6 K1V1 K1V2 K1V9 K9V6 K8V22 K2V25".split()


def send(cluster: Cluster, topic: str, *records: str, **settings: object) -> None:
    """Records such as ``K1V5``, each in a batch of its own; one without a value is a tombstone."""
    producer = Producer(cluster.client_config(enable_idempotence=True, linger_ms=0, **settings))
    for record in records:
        producer.produce(topic, key=record[:2], value=record[2:] or None, partition=0)
        assert producer.flush(PATIENCE) == 0


def consumed(cluster: Cluster, topic: str, until: int, isolation: str = "read_uncommitted") -> list[tuple[object, ...]]:
    """Offset, key, value and timestamp of what a consumer gets before an offset."""
    consumer = Consumer(cluster.client_config(group_id=uuid.uuid4().hex, isolation_level=isolation))
    place = TopicPartition(topic, 0, 0)
    consumer.assign([place])
    found: list[tuple[object, ...]] = []
    try:

        def all_read() -> bool:
            for m in consumer.consume(100, 0.1):
                found.append((m.offset(), m.key(), m.value(), m.timestamp()[1]))
            return consumer.position([place])[0].offset >= until

        wait_until(all_read, PATIENCE, "all records", last_seen=lambda: found, interval=0)
    finally:
        consumer.close()
    return found


def compact(cluster: Cluster, topic: str) -> None:
    """Have the cleaner compact a topic from now on: what was sent before it finds all at once."""
    entry = ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin = AdminClient(cluster.client_config())
    admin.incremental_alter_configs([resource])[resource].result()


def listed(cluster: Cluster, topic: str, spec: OffsetSpec, isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED) -> int:
    place = TopicPartition(topic, 0)
    admin = AdminClient(cluster.client_config())
    return admin.list_offsets({place: spec}, isolation_level=isolation)[place].result().offset


def size_by_protocol(cluster: Cluster, topic: str, broker: int) -> int:
    request = DescribeLogDirsRequest(topics=None, version=4)
    connection = BrokerConnection(cluster.clients.bootstrap(broker), timeout=10)
    try:
        answer = connection.ask(request, DescribeLogDirsResponse, 4)
    finally:
        connection.close()
    return sum(p.partition_size for folder in answer.results for t in folder.topics if t.name == topic for p in t.partitions)


def records_of(files: LogFiles) -> list[Record]:
    return [record for segment in files.live for found in segment.batches for record in found.records or ()]


def look(reader: LogReader) -> LogFiles:
    files = reader.read().files
    assert files is not None
    return files


@pytest.fixture
def readers() -> Iterator[list[LogReader]]:
    made: list[LogReader] = []
    yield made
    for reader in made:
        reader.close()


def test_every_replica_has_what_a_consumer_reads(shared: Cluster, readers: list[LogReader]) -> None:
    topic = make_topic(shared, 1)
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        send(shared, topic, *[f"K{i}{codec * 40}" for i in range(3)], compression_type=codec)
    expected = consumed(shared, topic, 15)
    for broker in (0, 1, 2):
        reader = shared.disk.log_reader(topic, 0, broker)
        readers.append(reader)

        def all_there(reader: LogReader = reader) -> LogView | None:
            view = reader.read()
            ends = view.offsets.ends == {0: 15, 1: 15, 2: 15}  # a busy leader may not have told them in time
            return view if ends and view.files and len(records_of(view.files)) == 15 else None

        view = wait_until(all_there, PATIENCE, "the replica to have all")
        assert view.files is not None
        assert [(r.offset, r.key, r.value, r.timestamp) for r in records_of(view.files)] == expected
        assert sum(segment.size for segment in view.files.live) == size_by_protocol(shared, topic, broker)
        assert {b.codec for s in view.files.live for b in s.batches} == {"none", "gzip", "snappy", "lz4", "zstd"}
        assert [r.sequence for r in records_of(view.files)] == [0, 1, 2] * 5
        assert view.files.gaps() == () and view.broker == broker
        # A busy machine may have had an election, and a late one has no record yet.
        led = {b.leader_epoch: b.base_offset for s in reversed(view.files.live) for b in reversed(s.batches)}
        assert led.items() <= dict(view.files.leader_epochs).items()
        assert all(start == 15 for epoch, start in view.files.leader_epochs if epoch not in led)
        offsets = view.offsets
        assert offsets.start == listed(shared, topic, OffsetSpec.earliest()) == 0
        assert offsets.high_watermark == listed(shared, topic, OffsetSpec.latest()) == 15
        assert offsets.last_stable == listed(shared, topic, OffsetSpec.latest(), IsolationLevel.READ_COMMITTED) == 15
        assert not offsets.compacted and offsets.tiered is None


def test_compaction_one_record_at_a_time(shared: Cluster, readers: list[LogReader]) -> None:
    topic = make_topic(shared, 1, min_cleanable_dirty_ratio="0.01", **ONE_RECORD_A_SEGMENT, delete_retention_ms="86400000")
    send(shared, topic, *TABLE)
    reader = shared.disk.log_reader(topic)
    readers.append(reader)
    send(shared, topic, "K0roll")
    assert all(segment.count <= 1 for segment in look(reader).live)
    compact(shared, topic)
    survivors = [1, 3, 5, 8, 9, 10, 11, 12]

    def cleaned() -> LogFiles | None:
        files = look(reader)
        return files if [r.offset for r in records_of(files)] == survivors else None

    files = wait_until(
        cleaned, PATIENCE, "the cleaner to be done", last_seen=lambda: [r.offset for r in records_of(look(reader))]
    )
    assert [offset for offset, *_ in consumed(shared, topic, 13)] == survivors
    assert files.gaps() == ((0, 0), (2, 2), (4, 4), (6, 7))
    assert wait_until(lambda: look(reader).clean_until == 12, PATIENCE, "the cleaner to write down how far it came")
    gone = {r.offset for s in look(reader).segments if s.state == "deleted" for b in s.batches for r in b.records or ()}
    assert {0, 2, 4, 6, 7} <= gone  # they stay for a minute
    assert reader.read().offsets.compacted


def test_a_tombstone_and_what_it_removes(shared: Cluster, readers: list[LogReader]) -> None:
    topic = make_topic(shared, 1, cleanup_policy="compact", min_cleanable_dirty_ratio="0.01", **ONE_RECORD_A_SEGMENT)
    send(shared, topic, "K5V2", "K6V1", "K5", "K0roll")
    reader = shared.disk.log_reader(topic)
    readers.append(reader)

    def cleaned() -> RecordBatch | None:
        """The tombstone's batch, once the record before it is gone and it has its own time to go: segments are cleaned in turn."""
        files = look(reader)
        gone = [r.offset for r in records_of(files)] == [1, 2, 3]
        return next(
            (b for s in files.live for b in s.batches if gone and b.base_offset == 2 and b.delete_horizon is not None), None
        )

    batch = wait_until(
        cleaned, PATIENCE, "the record to be removed", last_seen=lambda: [r.offset for r in records_of(look(reader))]
    )
    assert batch.records is not None and batch.records[0].tombstone
    assert batch.delete_horizon > batch.records[0].timestamp


def test_a_transaction_leaves_markers(shared: Cluster, readers: list[LogReader]) -> None:
    topic = make_topic(shared, 1)
    producer = Producer(shared.client_config(transactional_id=topic))
    producer.init_transactions(30)
    for end in (producer.commit_transaction, producer.abort_transaction, None):
        producer.begin_transaction()
        for key in ("K1", "K2"):
            producer.produce(topic, key=key, value="V", partition=0)
        producer.flush(PATIENCE)
        if end is not None:
            end(30)
    reader = shared.disk.log_reader(topic)
    readers.append(reader)
    view = wait_until(lambda: v if (v := reader.read()).offsets.high_watermark == 8 else None, PATIENCE, "all to be replicated")
    assert view.files is not None
    assert [(r.offset, r.marker) for r in records_of(view.files)] == [
        (0, ""), (1, ""), (2, "commit"), (3, ""), (4, ""), (5, "abort"), (6, ""), (7, ""),
    ]  # fmt: skip
    batches = [b for s in view.files.live for b in s.batches]
    assert all(b.transactional and b.producer_id >= 0 for b in batches)
    assert [b.control for b in batches] == [b.count == 1 and b.base_offset in (2, 5) for b in batches]
    assert view.offsets.last_stable == 6 == listed(shared, topic, OffsetSpec.latest(), IsolationLevel.READ_COMMITTED)
    assert [offset for offset, *_ in consumed(shared, topic, 6, "read_committed")] == [0, 1]
    assert [offset for offset, *_ in consumed(shared, topic, 8)] == [0, 1, 3, 4, 6, 7]
    producer.abort_transaction(30)
    wait_until(lambda: reader.read().offsets.last_stable == 9, PATIENCE, "the open transaction to end")


def test_the_files_of_a_dead_broker_are_shown(shared: Cluster) -> None:
    topic = make_topic(shared, 1)
    send(shared, topic, "K1V1", "K2V2")
    microscope = LogMicroscope(shared, topic, broker=1)
    try:
        wait_until(lambda: "2 records" in microscope.snapshot().summary, PATIENCE, "both records on the follower")
        shared.kill(1)
        send(shared, topic, "K3V3")
        wait_until(
            lambda: "K2 → V2" in texts(microscope.snapshot().html) and microscope.view.state == "dead",
            PATIENCE,
            "the dead broker",
        )
        shared.wait_for(lambda v: v.led(topic), "a leader", PATIENCE)
        view = wait_until(
            lambda: v if set((v := microscope.view).offsets.ends) == {0, 2} else None, PATIENCE, "the others' ends"
        )
        assert view.files is not None and [r.offset for r in records_of(view.files)] == [0, 1]
        assert view.leader in (0, 2)
        shared.restart(1)
        wait_until(lambda: microscope.view.offsets.ends.get(1) == 3, PATIENCE, "the broker to catch up")
        wait_until(
            lambda: microscope.view.files and len(records_of(microscope.view.files)) == 3, PATIENCE, "its files to show it"
        )
    finally:
        microscope.close()
        if shared.nodes.states()[1] == "dead":
            shared.restart(1)
        shared.wait_for(lambda v: v.in_sync(topic), "all replicas in sync", PATIENCE)


def test_a_record_is_seen_live_and_a_deleted_topic_as_it_was(shared: Cluster) -> None:
    topic = make_topic(shared, 1)
    microscope = LogMicroscope(shared, topic)
    try:
        send(shared, topic, "K1V1")
        wait_until(lambda: "K1 → V1" in html(microscope), PATIENCE, "the record to be seen")
        delete(shared, topic)
        wait_until(lambda: f"the topic {topic} was deleted" in html(microscope), PATIENCE, "the microscope to say so")
        assert "K1 → V1" in html(microscope)
    finally:
        microscope.close()


def test_what_there_is_not_is_said(shared: Cluster) -> None:
    topic = make_topic(shared, 1, replicas=1)
    (leader,) = shared.describe(groups=False).topics[topic][0].replicas
    other = (leader + 1) % 3
    with pytest.raises(UnknownTopic, match=r"there is no topic 'no-such' in this cluster; it has "):
        LogMicroscope(shared, "no-such")
    with pytest.raises(UnknownPartition, match=rf"{topic} has no partition 1; it has only 0"):
        LogMicroscope(shared, topic, 1)
    with pytest.raises(UnknownBroker, match=r"there is no broker 9 in this cluster; it has 0, 1, 2"):
        LogMicroscope(shared, topic, broker=9)
    with pytest.raises(
        NoReplica, match=rf"broker {other} has no replica of partition 0 of {topic}; these brokers have one: {leader}"
    ):
        LogMicroscope(shared, topic, broker=other)


def test_an_attached_cluster_shows_offsets_and_says_what_it_cannot_see(shared: Cluster) -> None:
    topic = make_topic(shared, 1)
    send(shared, topic, "K1V1", "K2V2")
    with Cluster.attached(shared.bootstrap_servers) as attached:
        microscope = LogMicroscope(attached, topic)
        ends = {0: 2, 1: 2, 2: 2}
        view = wait_until(lambda: v if (v := microscope.view).offsets.ends == ends else None, PATIENCE, "all brokers' answers")
        send(shared, topic, "K3V3")
        wait_until(lambda: "K3 → V3" in html(microscope), PATIENCE, "the record to be seen")
    assert view.fetched is not None and [r.key for b in view.fetched.batches for r in b.records or ()] == [b"K1", b"K2"]
    assert view.files is None and view.unseen == "the files of an attached cluster are where its brokers run"
    assert view.offsets.high_watermark == 2

"""A log that moves to a remote tier: each wrong answer gets its sentence, and right ones pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from kafka.protocol.admin import DescribeConfigsRequest, DescribeConfigsResponse
from pyspark.sql import Row

from kafkacourse.ch12_kafka_4.tiered_storage import look
from kafkalab import Cluster, wait_until
from kafkalab.checks.context import CheckContext
from kafkalab.cluster.log_offsets import LogOffsets
from kafkalab.cluster.wire import BrokerConnection
from support import BACKEND, PATIENCE, Told, Verdict, commit, create, delete, empty, put

pytestmark = pytest.mark.cluster

MOVE, FOLLOWER, OUTAGE, BACK, RETENTION = (f"12_tiered{name}" for name in ("", "_follower", "_outage", "_back", "_retention"))
QUICK = {
    "log.initial.task.delay.ms": 500,
    "log.retention.check.interval.ms": 500,
    "remote.log.manager.task.interval.ms": 500,
}
A_SEGMENT_EACH = {"index_interval_bytes": "1", "segment_index_bytes": "12"}


@pytest.fixture(scope="module")
def three_tiered() -> Iterator[Cluster]:
    with Cluster(brokers=3, tiered_storage=True, settings=QUICK, backend=BACKEND) as cluster:
        yield cluster


@pytest.fixture
def tiered(three_tiered: Cluster) -> Iterator[Cluster]:
    """Three brokers with a remote tier, and no topic."""
    yield three_tiered
    empty(three_tiered)


def send(cluster: Cluster, first: int, count: int) -> None:
    for number in range(first, first + count):
        put(cluster, "readings", [(None, f"reading {number}", 0)], acks="all")


def rows_of(cluster: Cluster) -> list[Row]:
    """The topic as Spark reads it, with its timestamps in local time."""
    return [
        Row(offset=record.offset(), timestamp=datetime.fromtimestamp(record.timestamp()[1] / 1000), value=record.value())
        for record in CheckContext(cluster).records("readings")
    ]


def wait_until_moved(cluster: Cluster, upto: int) -> None:
    """Wait until the leader's disk begins at an offset."""

    def offsets() -> LogOffsets:
        return look(CheckContext(cluster)).offsets

    wait_until(lambda: offsets().local_start == upto, PATIENCE, f"{upto} records to move", last_seen=offsets)


def set_retention(cluster: Cluster, **settings: str) -> None:
    changes = [
        ConfigEntry(name.replace("_", "."), value, incremental_operation=AlterConfigOpType.SET)
        for name, value in settings.items()
    ]
    resource = ConfigResource(ResourceType.TOPIC, "readings", incremental_configs=changes)
    admin = AdminClient(cluster.client_config())
    admin.incremental_alter_configs([resource])[resource].result()
    wanted = {name.replace("_", "."): value for name, value in settings.items()}
    for broker in (0, 1, 2):  # a check asks any of them, and each hears of a change at a time of its own
        wait_until(lambda b=broker: told(cluster, b, wanted) == wanted, PATIENCE, f"broker {broker} to know {wanted}")


def told(cluster: Cluster, broker: int, names: Iterable[str]) -> dict[str, str]:
    """Settings of the topic, as one broker tells them."""
    resource = DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=2, resource_name="readings", configuration_keys=list(names)
    )
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=False, include_documentation=False, version=4)
    connection = BrokerConnection(cluster.clients.bootstrap(broker), timeout=10)
    try:
        answer = connection.ask(request, DescribeConfigsResponse, 4)
    finally:
        connection.close()
    return {setting.name: setting.value for result in answer.results for setting in result.configs}


def test_without_a_tier(clean: Cluster, verdict: Verdict) -> None:
    verdict.says("There is no topic 'readings' yet", MOVE, clean)
    create(clean, "readings", 1)
    verdict.says("The remote.storage.enable of readings is false", MOVE, clean)
    verdict.says("No broker has lost its log yet", FOLLOWER, clean)
    verdict.says("it has no remote tier", OUTAGE, clean)
    verdict.says("it has no remote tier", BACK, clean)
    verdict.says("The retention.ms of readings is 604800000", RETENTION, clean)
    delete(clean, "readings")


def test_tiered_storage(tiered: Cluster, verdict: Verdict) -> None:
    cluster = tiered
    # The disks keep everything: this comes before, as what has moved doesn't come back.
    create(cluster, "readings", 1, remote_storage_enable="true", **A_SEGMENT_EACH)
    verdict.says("The local.retention.ms of readings is -2", MOVE, cluster)
    set_retention(cluster, local_retention_ms="3000")
    verdict.says("readings holds 0 records, not 10", MOVE, cluster)
    send(cluster, 0, 10)
    wait_until_moved(cluster, 10)
    commit(cluster, "auditor", "readings", {0: 9})
    verdict.says("auditor has committed offset 9", MOVE, cluster)
    commit(cluster, "auditor", "readings")
    verdict.says("Give check() your answer as by_spark=", MOVE, cluster)
    rows = rows_of(cluster)
    verdict.says("`by_spark` should be a list, not a whole number", MOVE, cluster, by_spark=10)
    verdict.says("`by_spark` holds 0, which isn't a row of Spark", MOVE, cluster, by_spark=range(10))
    verdict.says("have no column timestamp", MOVE, cluster, by_spark=[Row(offset=0)])
    verdict.says("Spark's rows lack offset 9", MOVE, cluster, by_spark=rows[:9])
    made_up = [Row(offset=offset, timestamp=datetime.now()) for offset in range(10)]
    verdict.says("The row of offset 0 has another timestamp", MOVE, cluster, by_spark=made_up)
    verdict.passes(MOVE, cluster, by_spark=rows)

    leader = cluster.describe(groups=False).leaders("readings")[0]
    assert leader is not None
    broker = (leader + 1) % 3
    cluster.stop_broker(broker)
    cluster.disk.delete_replica(broker, "readings")
    verdict.says(f"Broker {broker} lost its log, and wasn't started again", FOLLOWER, cluster)
    cluster.restart(broker)
    cluster.wait_for(lambda view: view.in_sync("readings"), "all replicas in sync", PATIENCE)
    verdict.passes(FOLLOWER, cluster)
    again = [("kill", leader), ("delete a replica of", leader), ("restart", leader)]
    verdict.passes(FOLLOWER, Told(cluster, *again))  # its disk looks the same

    verdict.says("Brokers reach the remote tier", OUTAGE, cluster)
    cluster.disk.remote_tier.cut_off()
    verdict.says("readings holds 10 records, not 20", OUTAGE, cluster)
    send(cluster, 10, 10)
    verdict.passes(OUTAGE, cluster)
    verdict.says("The remote tier is still cut off", BACK, cluster)
    cluster.disk.remote_tier.reconnect()
    wait_until_moved(cluster, 20)
    verdict.passes(BACK, cluster)
    cluster.disk.remote_tier.cut_off()
    verdict.says("The leader's disk begins at offset 20, so 10 new records moved", OUTAGE, cluster)
    cluster.disk.remote_tier.reconnect()

    put(cluster, "readings", [(None, "reading 3", 0)])
    verdict.says("'reading 3' is in readings 2 times", BACK, cluster)
    set_retention(cluster, local_retention_ms="1000", retention_ms="1000")
    wait_until(lambda: not cluster.disk.remote_tier.files("readings"), PATIENCE, "an empty tier")
    ctx = CheckContext(cluster)
    wait_until(lambda: look(ctx).offsets.start == 21, PATIENCE, "an empty log", last_seen=lambda: look(ctx).offsets)
    verdict.passes(RETENTION, cluster)
    verdict.says("The log of readings starts at offset 21", FOLLOWER, cluster)


def test_what_stays_on_disk_or_is_not_given(tiered: Cluster, verdict: Verdict) -> None:
    """Local retention by size does as well, and leaves the active segment."""
    cluster = tiered
    by_size = {"remote_storage_enable": "true", "local_retention_bytes": "1", **A_SEGMENT_EACH}
    create(cluster, "readings", 1, retention_ms="30000", **by_size)
    verdict.says("readings was given 0 records, not 20", RETENTION, cluster)
    set_retention(cluster, retention_ms="604800000")
    cluster.disk.remote_tier.cut_off()
    send(cluster, 0, 10)
    verdict.says("The remote tier holds 0 records of readings, and offset 0 isn't among them", MOVE, cluster)
    broker = (cluster.describe(groups=False).topics["readings"][0].leader or 0) + 1
    early = [("kill", broker % 3), ("delete a replica of", broker % 3), ("restart", broker % 3)]
    verdict.says(f"The disk of broker {broker % 3} begins at offset 0", FOLLOWER, Told(cluster, *early))
    cluster.disk.remote_tier.reconnect()
    wait_until_moved(cluster, 9)
    commit(cluster, "auditor", "readings")
    verdict.passes(MOVE, cluster, by_spark=rows_of(cluster))

    cluster.disk.remote_tier.cut_off()
    send(cluster, 10, 10)
    verdict.passes(OUTAGE, cluster)
    cluster.disk.remote_tier.reconnect()
    wait_until_moved(cluster, 19)
    verdict.passes(BACK, cluster)
    set_retention(cluster, retention_ms="5000")
    wait_until(lambda: not cluster.disk.remote_tier.files("readings"), PATIENCE, "an empty tier")
    ctx = CheckContext(cluster)
    wait_until(lambda: look(ctx).offsets.start == 20, PATIENCE, "an empty log", last_seen=lambda: look(ctx).offsets)
    verdict.passes(RETENTION, cluster)

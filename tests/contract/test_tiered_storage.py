"""A remote tier on every back end: what moves there, what is read from there, and what happens while it can't be reached."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from contract_support import send
from kafkalab import Cluster, LogMicroscope, wait_until
from kafkalab.checks.context import CheckContext
from kafkalab.cluster.log_reader import LogView
from kafkalab.errors import BrokerNotRunning, KafkaLabError, NoReplica, UnknownTopic
from support import create

QUICK = {
    "log.initial.task.delay.ms": 500,
    "log.retention.check.interval.ms": 500,
    "remote.log.manager.task.interval.ms": 500,
}
A_SEGMENT_EACH = {"index_interval_bytes": "1", "segment_index_bytes": "12"}
COUNT = 12


@pytest.fixture(scope="module")
def tiered(backend: str) -> Iterator[Cluster]:
    with Cluster(3, tiered_storage=True, settings=QUICK, backend=backend) as cluster:
        yield cluster


def look(cluster: Cluster, topic: str, broker: int | None = None) -> LogView:
    reader = cluster.log_reader(topic, 0, broker)
    try:
        return reader.read()
    finally:
        reader.close()


def wait_until_moved(cluster: Cluster, topic: str, count: int) -> LogView:
    """Wait until all records are in the remote tier, and none is on the leader's disk any more."""

    def moved() -> LogView | None:
        seen.append(look(cluster, topic))
        offsets, on_disk = seen[-1].offsets, [segment.base_offset for segment in seen[-1].segments]
        return seen[-1] if (offsets.tiered, offsets.local_start, on_disk) == (count - 1, count, [count]) else None

    seen: list[LogView] = []
    return wait_until(moved, 90, "all records to move", last_seen=lambda: seen[-1].offsets)


def set_retention(cluster: Cluster, topic: str, milliseconds: int) -> None:
    entry = ConfigEntry("retention.ms", str(milliseconds), incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin = AdminClient(cluster.client_config())
    admin.incremental_alter_configs([resource])[resource].result()


def send_one_by_one(cluster: Cluster, topic: str, count: int) -> None:
    for _ in range(count):
        assert send(cluster, topic, 1) == [None]


def moved_topic(cluster: Cluster, name: str) -> LogView:
    create(cluster, name, 1, remote_storage_enable="true", local_retention_ms="1000", **A_SEGMENT_EACH)
    send_one_by_one(cluster, name, COUNT)
    return wait_until_moved(cluster, name, COUNT)


def test_segments_move_and_are_read_from_the_tier(tiered: Cluster) -> None:
    view = moved_topic(tiered, "moved")
    assert [s.base_offset for s in view.segments] == [COUNT]  # the active one, which is empty
    assert [s.base_offset for s in view.only_remote] == list(range(COUNT))
    assert all(s.state == "remote" and s.count == 1 and s.size > 0 for s in view.remote)
    logs = [path.name for path in tiered.remote_tier.files("moved") if path.suffix == ".log"]
    assert [int(name[:20]) for name in logs] == list(range(COUNT))
    assert len(CheckContext(tiered).records("moved")) == COUNT
    assert tiered.remote_tier.files("no-such") == []
    picture = LogMicroscope(tiered, "moved").snapshot()
    assert f"{COUNT} in the remote tier" in picture.summary and picture.svg.count(">in the remote tier only<") == COUNT


def test_a_follower_that_lost_its_log_begins_where_the_leader_s_disk_does(tiered: Cluster) -> None:
    start = moved_topic(tiered, "lost").offsets.local_start
    leader = tiered.describe(groups=False).leaders("lost")[0]
    follower = next(broker for broker in (0, 1, 2) if broker != leader)
    with pytest.raises(BrokerNotRunning, match=f"cannot lose a log of broker {follower}: it is up"):
        tiered.lose_log(follower, "lost")
    with pytest.raises(UnknownTopic):
        tiered.lose_log(follower, "no-such")
    tiered.kill(follower)
    tiered.lose_log(follower, "lost")
    with pytest.raises(NoReplica, match="no folder lost-0"):
        raise NoReplica(look(tiered, "lost", follower).unseen)
    tiered.restart(follower)
    tiered.wait_for(lambda v: v.in_sync("lost"), "the follower to be back in the ISR", 60)
    view = look(tiered, "lost", follower)
    assert view.segments[0].base_offset == start and view.offsets.start == 0
    tiered.stop_broker(leader)
    tiered.wait_for(lambda v: v.leaders("lost")[0] not in (None, leader), "another leader", 30)
    assert len(CheckContext(tiered).records("lost")) == COUNT
    tiered.restart(leader)
    tiered.wait_for(lambda v: v.in_sync("lost"), "all replicas in sync", 60)


def test_nothing_is_lost_while_the_tier_is_cut_off(tiered: Cluster) -> None:
    moved_topic(tiered, "kept")
    tiered.remote_tier.cut_off()
    assert tiered.remote_tier.is_cut_off
    try:
        send_one_by_one(tiered, "kept", COUNT)
        leader = tiered.describe(groups=False).leaders("kept")[0]
        assert leader is not None
        wait_until(
            lambda: "Error occurred while copying log segments of partition" in tiered.logs(leader), 60, "a copy to fail"
        )
        view = look(tiered, "kept")
        assert view.remote == () and view.offsets.tiered == COUNT - 1  # what brokers know of it
        assert view.segments[0].base_offset <= COUNT  # though local.retention.ms is over for most
        assert view.offsets.ends[leader] == 2 * COUNT
    finally:
        tiered.remote_tier.reconnect()
    wait_until_moved(tiered, "kept", 2 * COUNT)
    assert len(CheckContext(tiered).records("kept")) == 2 * COUNT


def test_total_retention_empties_the_tier(tiered: Cluster) -> None:
    moved_topic(tiered, "old")
    set_retention(tiered, "old", 1000)
    tier = tiered.remote_tier
    wait_until(lambda: not tier.files("old"), 90, "the tier to be empty", last_seen=lambda: tier.files("old"))
    offsets = wait_until(lambda: o if (o := look(tiered, "old").offsets).start == COUNT else None, 30, "the log's new start")
    assert offsets.high_watermark == COUNT


def test_a_cluster_without_a_tier_says_so(backend: str) -> None:
    with Cluster(1, backend=backend) as plain, pytest.raises(KafkaLabError, match="it has no remote tier"):
        _ = plain.remote_tier

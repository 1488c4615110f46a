"""A remote tier on every back end: what moves there, what is read from there, and what happens while it can't be reached."""

from __future__ import annotations

import pytest
from confluent_kafka import ElectionType, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from contract_support import DOCKER_AT_LENGTH
from kafkalab import Cluster, LogMicroscope, wait_until
from kafkalab.checks.context import CheckContext
from kafkalab.cluster.log_reader import LogView
from kafkalab.errors import BrokerNotRunning, NoReplica, UnknownTopic
from picture_support import texts
from support import PATIENCE, create, send

pytestmark = DOCKER_AT_LENGTH

A_SEGMENT_EACH = {"index_interval_bytes": "1", "segment_index_bytes": "12"}
COUNT = 6


def look(cluster: Cluster, topic: str, broker: int | None = None) -> LogView:
    reader = cluster.disk.log_reader(topic, 0, broker)
    try:
        return reader.read()
    finally:
        reader.close()


def wait_until_moved(cluster: Cluster, topic: str, count: int) -> None:
    """Wait until all records are in the remote tier, and none is on the leader's disk any more."""
    reader = cluster.disk.log_reader(topic)
    seen: list[LogView] = []

    def moved() -> bool:
        seen.append(reader.read())
        offsets, on_disk = seen[-1].offsets, [segment.base_offset for segment in seen[-1].segments]
        return (offsets.tiered, offsets.local_start, on_disk) == (count - 1, count, [count])

    try:
        wait_until(moved, PATIENCE, "all records to move", last_seen=lambda: seen[-1].offsets, interval=0.3)
    finally:
        reader.close()


def set_retention(cluster: Cluster, topic: str, milliseconds: int) -> None:
    entry = ConfigEntry("retention.ms", str(milliseconds), incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin = AdminClient(cluster.client_config())
    admin.incremental_alter_configs([resource])[resource].result()


@pytest.fixture(scope="module")
def topic(shared: Cluster) -> str:
    """A topic whose records are all in the tier, and on no disk. The tests do one thing after the other to it."""
    create(shared, "moved", 1, remote_storage_enable="true", local_retention_ms="1000", **A_SEGMENT_EACH)
    send(shared, "moved", ["price"] * COUNT)
    wait_until_moved(shared, "moved", COUNT)
    return "moved"


def test_segments_move_and_are_read_from_the_tier(shared: Cluster, topic: str) -> None:
    view = look(shared, topic)
    assert [s.base_offset for s in view.segments] == [COUNT]  # the active one, which is empty
    assert [s.base_offset for s in view.only_remote] == list(range(COUNT))
    assert all(s.state == "remote" and s.count == 1 and s.size > 0 for s in view.remote)
    logs = [path.name for path in shared.disk.remote_tier.files(topic) if path.suffix == ".log"]
    assert [int(name[:20]) for name in logs] == list(range(COUNT))
    assert len(CheckContext(shared).records(topic)) == COUNT
    assert shared.disk.remote_tier.files("no-such") == []
    picture = LogMicroscope(shared, topic).snapshot()
    assert f"{COUNT} in the remote tier" in picture.summary and texts(picture.html).count("in the remote tier only") == COUNT


def test_who_lost_its_log_begins_where_the_leader_s_disk_does_and_can_lead(shared: Cluster, topic: str) -> None:
    start = look(shared, topic).offsets.local_start
    preferred = shared.describe(groups=False).topics[topic][0].replicas[0]
    with pytest.raises(BrokerNotRunning, match=f"cannot delete a replica of broker {preferred}: it is up"):
        shared.disk.delete_replica(preferred, topic)
    with pytest.raises(UnknownTopic):
        shared.disk.delete_replica(preferred, "no-such")
    shared.kill(preferred)
    shared.disk.delete_replica(preferred, topic)
    with pytest.raises(NoReplica, match=f"no folder {topic}-0"):
        raise NoReplica(look(shared, topic, preferred).unseen)
    shared.wait_for(lambda v: v.moved_from(topic, preferred), "another leader")
    shared.restart(preferred)
    shared.wait_for(lambda v: v.in_sync(topic), "it to be back in the ISR", PATIENCE)
    view = look(shared, topic, preferred)
    assert view.segments[0].base_offset == start and view.offsets.start == 0
    admin = AdminClient(shared.client_config())
    admin.elect_leaders(ElectionType.PREFERRED, [TopicPartition(topic, 0)]).result()
    shared.wait_for(lambda v: v.leaders(topic) == {0: preferred}, "it to lead")
    assert len(CheckContext(shared).records(topic)) == COUNT


def test_nothing_is_lost_while_the_tier_is_cut_off(shared: Cluster, topic: str) -> None:
    shared.disk.remote_tier.cut_off()
    assert shared.disk.remote_tier.is_cut_off
    try:
        send(shared, topic, ["price"] * COUNT)
        leader = shared.describe(groups=False).leaders(topic)[0]
        assert leader is not None
        failed = "Error occurred while copying log segments of partition"
        wait_until(lambda: failed in shared.nodes.logs(leader), PATIENCE, "a copy to fail", interval=0.3)
        view = look(shared, topic)
        assert view.remote == () and view.offsets.tiered == COUNT - 1  # what brokers know of it
        assert view.segments[0].base_offset <= COUNT  # though local.retention.ms is over for most
        assert view.offsets.ends[leader] == 2 * COUNT
    finally:
        shared.disk.remote_tier.reconnect()
    wait_until_moved(shared, topic, 2 * COUNT)
    assert len(CheckContext(shared).records(topic)) == 2 * COUNT


def test_nothing_is_lost_while_the_tier_is_full(shared: Cluster, topic: str) -> None:
    before = look(shared, topic).offsets.high_watermark
    leader = shared.describe(groups=False).leaders(topic)[0]
    assert leader is not None
    shared.disk.remote_tier.fill_up()
    assert shared.disk.remote_tier.is_full
    try:
        send(shared, topic, ["price"] * COUNT)
        wait_until(lambda: "No space left on device" in shared.nodes.logs(leader), PATIENCE, "a copy to fail", interval=0.3)
        view = look(shared, topic)
        assert view.offsets.tiered == before - 1 and view.segments[0].base_offset <= before
        assert len(CheckContext(shared).records(topic)) == before + COUNT  # the old ones come from the tier
    finally:
        shared.disk.remote_tier.make_room()
    wait_until_moved(shared, topic, before + COUNT)
    assert len(CheckContext(shared).records(topic)) == before + COUNT


def test_total_retention_empties_the_tier(shared: Cluster, topic: str) -> None:
    end = look(shared, topic).offsets.high_watermark
    assert shared.disk.remote_tier.files(topic)
    set_retention(shared, topic, 1000)
    tier = shared.disk.remote_tier
    wait_until(lambda: not tier.files(topic), PATIENCE, "the tier to be empty", last_seen=lambda: tier.files(topic))
    offsets = wait_until(
        lambda: o if (o := look(shared, topic).offsets).start == end else None, PATIENCE, "the log's new start"
    )
    assert offsets.high_watermark == end

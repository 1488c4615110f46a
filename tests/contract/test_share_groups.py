"""Share groups as a cluster shows them, and the workers that are their members: processes of this machine, whatever the back end."""

from __future__ import annotations

import os
import signal
import subprocess
import uuid
from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from contract_support import DOCKER_AT_LENGTH
from kafkalab import Cluster, ConsoleShareConsumer, wait_until
from kafkalab.errors import WaitTimeout, WorkerClosed
from support import PATIENCE, create, put

pytestmark = DOCKER_AT_LENGTH

BEFORE_ITS_LOCK_ENDS = 25
"""Seconds: the lock on a record that was handed out lasts 30 s by default."""

ORDERS = ("order-1", "order-2", "order-3")

# A member is told with each heartbeat what to do: every 2 s here, every 5 s by default. Not much more often: librdkafka waits one
# interval for the answer, and a member on a busy machine would miss its assignment.
QUICK = {f"group.share.{which}heartbeat.interval.ms": 2000 for which in ("", "min.")}


@pytest.fixture(scope="module")
def shared(backend: str) -> Iterator[Cluster]:
    with Cluster(1, settings=QUICK, backend=backend) as cluster:
        yield cluster


@pytest.fixture
def group(shared: Cluster) -> str:
    """A new share group that begins with the first record, and tries each one twice."""
    id = f"g-{uuid.uuid4().hex[:6]}"
    settings = {"share.auto.offset.reset": "earliest", "share.delivery.count.limit": "2"}
    changes = [ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in settings.items()]
    resource = ConfigResource(ResourceType.GROUP, id, incremental_configs=changes)
    admin = AdminClient(shared.client_config())
    admin.incremental_alter_configs([resource])[resource].result()
    return id


@pytest.fixture
def orders(shared: Cluster) -> str:
    """A topic with three records, each a batch of its own."""
    topic = f"t-{uuid.uuid4().hex[:6]}"
    create(shared, topic, 1, 1)
    for value in ORDERS:
        put(shared, topic, [(None, value, 0)])
    return topic


def lag(cluster: Cluster, group: str, topic: str) -> int | None:
    found = cluster.nodes.share_group(group)
    return found.lag.get((topic, 0)) if found else None


def wait_for_lag(cluster: Cluster, group: str, topic: str, wanted: int) -> None:
    seen: list[int | None] = []

    def reached() -> bool:
        seen.append(lag(cluster, group, topic))
        return seen[-1] == wanted

    wait_until(reached, PATIENCE, f"a lag of {wanted}", last_seen=lambda: seen[-1:], ignore=(OSError,))


def wait_until_all_have_left(cluster: Cluster, group: str) -> None:
    wait_until(
        lambda: (found := cluster.nodes.share_group(group)) and not found.members,
        PATIENCE,
        "the members to have left",
        ignore=(OSError,),
    )


def test_a_share_group_has_members_and_a_lag(shared: Cluster, group: str, orders: str) -> None:
    assert shared.nodes.share_group(group) is None
    with ConsoleShareConsumer(shared, orders, group=group, answer="hold", name="holder") as holder:
        assert holder.wait_for(1, PATIENCE) == ["order-1"]
        with ConsoleShareConsumer(shared, orders, group=group, name="other") as other:
            assert sorted(map(str, other.wait_for(2, PATIENCE))) == ["order-2", "order-3"]
            wait_for_lag(shared, group, orders, 1)
            found = shared.nodes.share_group(group)
            assert found is not None and found.state == "Stable" and found.starts == {(orders, 0): 0}
            assert [(m.client_id, m.partitions) for m in found.members] == [
                (name, ((orders, 0),)) for name in ("holder", "other")
            ]
            holder.close()  # what it held is released
            other.wait_for(["order-1"], PATIENCE)
            assert [d.count for d in other.deliveries if d.value == "order-1"] == [2]
        wait_for_lag(shared, group, orders, 0)
    wait_until_all_have_left(shared, group)


def told_by_tool(cluster: Cluster, group: str, *options: str) -> dict[str, str]:
    """What Kafka's own tool says of a share group, by column. It has one row to say."""
    tool = ["kafka-share-groups.sh", "--bootstrap-server", cluster.bootstrap_servers, "--describe", "--group", group, *options]
    printed = subprocess.run(tool, check=True, capture_output=True, text=True).stdout
    header, row = [line.replace("COORDINATOR (ID)", "COORDINATOR ID").split() for line in printed.splitlines() if line]
    return dict(zip(header, row, strict=True))


def test_kafkas_own_tool_says_the_same(shared: Cluster, group: str, orders: str) -> None:
    place = (orders, 0)

    def both_say(state: str, members: int, start: int, lag: int) -> None:
        found = shared.nodes.share_group(group)
        assert found is not None
        assert (found.state, len(found.members), found.starts, found.lag) == (state, members, {place: start}, {place: lag})
        view = shared.wait_for(lambda v: v.share_groups[group] == found and v, "the group in a view", PATIENCE, groups=True)
        assert group not in view.groups
        told, of_group = told_by_tool(shared, group), told_by_tool(shared, group, "--state")
        assert (of_group["STATE"], of_group["#MEMBERS"]) == (state, str(members))
        assert (told["TOPIC"], told["PARTITION"], told["START-OFFSET"], told["LAG"]) == (orders, "0", str(start), str(lag))

    with ConsoleShareConsumer(shared, orders, group=group, answer="hold") as holder:
        holder.wait_for(["order-1"], PATIENCE)
        with ConsoleShareConsumer(shared, orders, group=group):
            wait_for_lag(shared, group, orders, 1)
            both_say("Stable", 2, start=0, lag=1)
    wait_until_all_have_left(shared, group)
    both_say("Empty", 0, start=0, lag=1)


@pytest.mark.parametrize(("answer", "deliveries"), [("reject", [1]), ("release", [1, 2])])
def test_a_record_is_set_aside(shared: Cluster, group: str, orders: str, answer: str, deliveries: list[int]) -> None:
    with ConsoleShareConsumer(shared, orders, group=group, answer=answer) as worker:
        wait_for_lag(shared, group, orders, 0)
        worker.wait_for(len(deliveries) * len(ORDERS), PATIENCE)
        for order in ORDERS:
            assert [d.count for d in worker.deliveries if d.value == order] == deliveries


def test_a_killed_worker_holds_nothing_and_a_frozen_one_does(shared: Cluster, group: str, orders: str) -> None:
    holder = ConsoleShareConsumer(shared, orders, group=group, answer="hold")
    holder.wait_for(1, PATIENCE)
    os.kill(holder.pid, signal.SIGSTOP)
    with ConsoleShareConsumer(shared, orders, group=group) as other:
        other.wait_for(2, PATIENCE)
        assert "order-1" not in other.values
        holder.kill()
        other.wait_for(["order-1"], BEFORE_ITS_LOCK_ENDS)
        with pytest.raises(WaitTimeout, match="to be handed 4 records"):
            other.wait_for(4, 0.1)
    with pytest.raises(WorkerClosed):
        other.wait_for(4)

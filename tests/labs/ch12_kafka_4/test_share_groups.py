"""Jobs shared by four workers, records that fail, and locks: each wrong answer gets its sentence, and right ones pass."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from confluent_kafka import AcknowledgeType, ShareConsumer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from kafkalab import Cluster, ConsoleShareConsumer, wait_until
from support import PATIENCE, Verdict, commit, create, delete, put

pytestmark = pytest.mark.cluster

WORKERS, POISON, LOCKS = "12_share_workers", "12_share_poison", "12_share_locks"
JOBS = [f"job-{n}" for n in range(20)]
ORDERS = ["order-1", "order-2", "oops", "order-4", "order-5", "order-6"]


def set_group(cluster: Cluster, group: str, **settings: str) -> None:
    changes = [ConfigEntry(k.replace("_", "."), v, incremental_operation=AlterConfigOpType.SET) for k, v in settings.items()]
    resource = ConfigResource(ResourceType.GROUP, group, incremental_configs=changes)
    admin = AdminClient(cluster.client_config())
    admin.incremental_alter_configs([resource])[resource].result()

    def told() -> dict[str, str | None]:
        described = admin.describe_configs([ConfigResource(ResourceType.GROUP, group)])
        return {name: entry.value for result in described.values() for name, entry in result.result().items()}

    # The controller has them; the broker, which is asked next, may hear of them a moment later.
    wanted = {change.name: change.value for change in changes}
    wait_until(lambda: wanted.items() <= told().items(), PATIENCE, f"the settings {wanted} of {group}", last_seen=told)


def send(cluster: Cluster, topic: str, values: Sequence[str]) -> None:
    for value in values:
        put(cluster, topic, [(None, value, 0)])


def report(cluster: Cluster, *facts: dict[str, object]) -> None:
    put(cluster, "reports", [(None, json.dumps(each), 0) for each in facts])


def jobs(group: str, *, at_once: int, names: Sequence[str] = JOBS) -> list[dict[str, object]]:
    """Reports of jobs that took half a second each, so many at a time."""
    began = [0.5 * (number // at_once) for number in range(len(names))]
    return [{"group": group, "offset": offset, "began": b, "ended": b + 0.5} for offset, b in enumerate(began)]


def settle(cluster: Cluster, topic: str, group: str, records: int) -> None:
    """Accept so many records as a group."""
    set_group(cluster, group, share_auto_offset_reset="earliest")
    with ConsoleShareConsumer(cluster, topic, group=group) as worker:
        worker.wait_for(records)


def test_four_workers(impatient: Cluster, verdict: Verdict) -> None:
    cluster = impatient
    _, said = verdict(WORKERS, cluster)
    assert "There is no topic 'classic-jobs'" in said and "0 of 5" in said
    create(cluster, "reports", 1, 1)
    create(cluster, "classic-jobs", 2, 1)
    verdict.says("classic-jobs has 2 partitions", WORKERS, cluster)
    delete(cluster, "classic-jobs")
    for topic in ("classic-jobs", "share-jobs"):
        create(cluster, topic, 1, 1)
    verdict.says("classic-jobs has 0 jobs, not 20. Did `run_four` run for classic-workers?", WORKERS, cluster)
    for topic in ("classic-jobs", "share-jobs"):
        send(cluster, topic, JOBS)
    verdict.says("`reports` shows 0 jobs of classic-workers, not 20. Nobody did job-0, at offset 0", WORKERS, cluster)

    report(cluster, *jobs("classic-workers", at_once=1))
    verdict.says("There is no consumer group 'classic-workers' yet", WORKERS, cluster)
    commit(cluster, "classic-workers", "classic-jobs")
    report(cluster, *jobs("share-workers", at_once=1, names=JOBS[:19]))
    verdict.says("`reports` shows 19 jobs of share-workers, not 20", WORKERS, cluster)
    report(cluster, {"group": "share-workers", "offset": 19, "began": 9.5, "ended": 10.0})
    verdict.says("There is no share group 'share-workers' yet", WORKERS, cluster)
    verdict.says("At most 1 job of share-workers went on at the same time", WORKERS, cluster)

    set_group(cluster, "share-workers", share_auto_offset_reset="earliest")
    with ConsoleShareConsumer(cluster, "share-jobs", group="share-workers", answer="hold") as holder:
        holder.wait_for(1)
        verdict.says("The broker knows of no progress of share-workers", WORKERS, cluster)
        settle(cluster, "share-jobs", "share-workers", 19)
        verdict.says("share-workers still has a lag of 1 in share-jobs", WORKERS, cluster)


def test_three_workers_at_once_will_do(impatient: Cluster, verdict: Verdict) -> None:
    cluster = impatient
    create(cluster, "reports", 1, 1)
    for topic in ("classic-jobs", "share-jobs"):
        create(cluster, topic, 1, 1)
        send(cluster, topic, JOBS)
    commit(cluster, "classic-workers", "classic-jobs")
    report(cluster, *jobs("classic-workers", at_once=1), *jobs("share-workers", at_once=3), {"group": "other"})
    put(cluster, "reports", [(None, "no report", 0)])
    settle(cluster, "share-jobs", "share-workers", 20)
    verdict.passes(WORKERS, cluster)
    report(cluster, {"group": "share-workers", "offset": 3, "began": 1.0, "ended": 1.5})
    verdict.says("The workers of share-workers did job-3 2 times", WORKERS, cluster)
    # Who corrects the worker and runs the cell again sends twenty more jobs, and those count.
    send(cluster, "share-jobs", JOBS)
    verdict.says("`reports` shows 0 jobs of share-workers, not 20. Nobody did job-0, at offset 20", WORKERS, cluster)
    report(cluster, *({**job, "offset": 20 + n} for n, job in enumerate(jobs("share-workers", at_once=4))))
    settle(cluster, "share-jobs", "share-workers", 20)
    verdict.passes(WORKERS, cluster)


def verdict_on(order: str, delivery: int, at_the_limit: AcknowledgeType) -> AcknowledgeType:
    """As the lab's solution, or as one who sets an order aside before the broker does."""
    if order == "oops":
        return AcknowledgeType.REJECT
    if order == "order-5" or (order == "order-2" and delivery < 3):
        return AcknowledgeType.RELEASE if delivery < 3 else at_the_limit
    return AcknowledgeType.ACCEPT


def shop(order: str, *said: str) -> list[dict[str, object]]:
    offset = ORDERS.index(order)
    return [{"group": "shop", "offset": offset, "delivery": n, "verdict": v} for n, v in enumerate(said, 1)]


@pytest.mark.parametrize(("at_a_time", "at_the_limit"), [(1, AcknowledgeType.RELEASE), (500, AcknowledgeType.REJECT)])
def test_a_shop_that_judges_well_passes(
    impatient: Cluster, verdict: Verdict, at_a_time: int, at_the_limit: AcknowledgeType
) -> None:
    cluster = impatient
    for topic in ("reports", "orders"):
        create(cluster, topic, 1, 1)
    set_group(cluster, "shop", share_delivery_count_limit="5")
    verdict.says("The share.delivery.count.limit of shop is 5", POISON, cluster)
    verdict.says("shop hasn't reported 'order-1' yet", POISON, cluster)
    set_group(cluster, "shop", share_auto_offset_reset="earliest", share_delivery_count_limit="3")
    send(cluster, "orders", ORDERS)
    settings = {"share.acknowledgement.mode": "explicit", "max.poll.records": at_a_time}
    with ShareConsumer({**cluster.client_config(group_id="shop"), **settings}) as consumer:
        consumer.subscribe(["orders"])

        def finished() -> bool:
            for record in consumer.poll(0.1):
                order, delivery = (record.value() or b"").decode(), record.delivery_count()
                judged = verdict_on(order, delivery, at_the_limit)
                report(cluster, {"group": "shop", "offset": record.offset(), "verdict": judged.name})
                consumer.acknowledge(record, judged)
            consumer.commit_sync(10)
            found = cluster.nodes.share_group("shop")
            return found is not None and found.lag.get(("orders", 0)) == 0

        wait_until(finished, PATIENCE, "every order to be settled", ignore=(OSError,))
    verdict.passes(POISON, cluster)


def test_a_shop_that_judges_badly(impatient: Cluster, verdict: Verdict) -> None:
    cluster = impatient
    for topic in ("reports", "orders"):
        create(cluster, topic, 1, 1)
    set_group(cluster, "shop", share_delivery_count_limit="3")
    send(cluster, "orders", ORDERS)
    report(cluster, *shop("order-1", "RELEASE", "RELEASE", "RELEASE"))
    verdict.says("order-1 was delivered 3 times and never accepted", POISON, cluster)
    report(cluster, *shop("oops", "RELEASE", "REJECT"))
    verdict.says("The record that isn't an order was acknowledged with RELEASE, REJECT", POISON, cluster)
    report(cluster, *shop("order-5", "REJECT"))
    verdict.says("order-5 was delivered 1 time: REJECT. REJECT sets a record aside at once", POISON, cluster)
    report(cluster, *shop("order-5", "RELEASE", "RELEASE", "RELEASE"))
    verdict.says("order-5 was delivered 4 times: REJECT, RELEASE, RELEASE, RELEASE. The group's limit is 3", POISON, cluster)
    report(cluster, *shop("order-5", "ACCEPT"))
    verdict.says("order-5 was accepted, but nobody could charge it", POISON, cluster)
    send(cluster, "orders", ORDERS)  # as one does who corrects `judge`
    verdict.says("shop hasn't reported 'order-5' yet", POISON, cluster)


@dataclass
class Holder:
    """What a check looks at in a `ConsoleShareConsumer`."""

    values: list[str]
    alive: bool = True


def test_a_lock_that_times_out(impatient: Cluster, verdict: Verdict) -> None:
    cluster = impatient
    _, said = verdict(LOCKS, cluster)
    assert "There is no topic 'parcels'" in said and "0 of 4" in said
    verdict.says("The share.record.lock.duration.ms of couriers is 30000", LOCKS, cluster)
    set_group(cluster, "couriers", share_record_lock_duration_ms="3000")
    create(cluster, "parcels", 1, 1)
    parcels = [f"parcel-{n}" for n in range(1, 13)]
    send(cluster, "parcels", parcels[:6])
    verdict.says("parcel-7 isn't in the topic parcels", LOCKS, cluster)
    send(cluster, "parcels", parcels[6:])
    verdict.says("There is no share group 'couriers' yet", LOCKS, cluster)
    settle(cluster, "parcels", "couriers", 12)

    late = [*((f"parcel-{n}", 1) for n in range(8, 13)), ("parcel-7", 2)]
    holder = Holder(["parcel-7"])
    verdict.passes(LOCKS, cluster, delivered=late, holder=holder)
    verdict.passes(LOCKS, cluster, delivered=[("parcel-1", 2), *reversed(late[:5]), ("parcel-7", 3)], holder=holder)
    slow = [("parcel-7", 2), *late[:5]]  # a courier that took longer to start than the lock lasted
    verdict.passes(LOCKS, cluster, delivered=slow, holder=holder)
    verdict.says("Give check() your answer as delivered=", LOCKS, cluster, holder=holder)
    verdict.says("The courier wasn't handed parcel-7", LOCKS, cluster, delivered=late[:5], holder=holder)
    first = [("parcel-7", 1), *late[:5]]
    verdict.says("The courier got parcel-7 at its first delivery", LOCKS, cluster, delivered=first, holder=holder)
    verdict.says("Give check() your answer as holder=", LOCKS, cluster, delivered=late)
    verdict.says("The holder was handed parcel-1, not parcel-7", LOCKS, cluster, delivered=late, holder=Holder(["parcel-1"]))
    verdict.says("The holder was handed no parcel, not parcel-7", LOCKS, cluster, delivered=late, holder="frozen")
    killed = Holder(["parcel-7"], alive=False)
    verdict.says("The process of the holder has ended", LOCKS, cluster, delivered=late, holder=killed)

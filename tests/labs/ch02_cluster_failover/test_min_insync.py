"""A refused write, and the ISR that grows again: each wrong answer gets its sentence, and the right one passes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from confluent_kafka import Producer

from kafkalab import Cluster, wait_until
from kafkalab.cluster.offsets import end_offsets
from support import PATIENCE, Doctored, Verdict, create, delete, wait_for

pytestmark = pytest.mark.cluster

LAB, GROWTH = "02_min_insync", "02_isr_grows"
TOPIC = "orders"
FAR_FUTURE = 4_102_444_800_000  # the year 2100


def order(cluster: Cluster, value: str, acks: str | int = "all", **more: int) -> str:
    reports: list[str] = []
    producer = Producer(cluster.client_config(acks=acks, retries=0))
    producer.produce(
        TOPIC, value, on_delivery=lambda error, _: reports.append(error.name() if error else "acknowledged"), **more
    )
    producer.flush()
    return reports[0]


def wait_for_isr(cluster: Cluster, size: int) -> None:
    wait_for(cluster, lambda view: len(view.topics[TOPIC][0].isr) == size, f"an ISR of {size}")


def wait_until_refused(cluster: Cluster) -> None:
    """Wait until the leader refuses what is to be in two replicas.

    It learns of the smaller ISR a little later than the metadata show it, and what it takes until then is in the log. So these
    have a time in the far future: a leader that wouldn't refuse them yet refuses that.
    """
    told: list[str] = []

    def refused() -> bool:
        told[:] = [order(cluster, "never", timestamp=FAR_FUTURE)]
        return told == ["NOT_ENOUGH_REPLICAS"]

    wait_until(refused, PATIENCE, "the leader to refuse", last_seen=lambda: told)


def test_min_insync(governed: Cluster, verdict: Verdict) -> None:
    cluster = governed
    _, said = verdict(LAB, cluster)
    assert "There is no topic 'orders'" in said and "0 of 5" in said
    create(cluster, TOPIC, 1)
    verdict.says(" is 1. You can set it when you create the topic", LAB, cluster)
    delete(cluster, TOPIC)

    create(cluster, TOPIC, 1, min_insync_replicas="2")
    end_offsets(cluster, TOPIC)  # a leader that answers: `order` tries only once
    partition = cluster.describe().topics[TOPIC][0]
    first, second = (broker for broker in partition.replicas if broker != partition.leader)
    assert order(cluster, "order-1") == "acknowledged"
    assert order(cluster, "never", timestamp=FAR_FUTURE) == "INVALID_TIMESTAMP"  # as `wait_until_refused` needs it
    verdict.says("Its ISR has 3 members", LAB, cluster)
    alone = Doctored(cluster, TOPIC, lambda p: replace(p, isr=p.isr[:1]))
    verdict.says("A consumer can read ['order-1'] at this moment", LAB, alone)
    verdict.says("The partition has no leader", LAB, Doctored(cluster, TOPIC, lambda p: replace(p, leader=None)))
    cluster.kill(first)
    wait_for_isr(cluster, 2)
    assert order(cluster, "order-2") == "acknowledged"
    verdict.says("Its ISR has 2 members", LAB, cluster)
    verdict.says("Only 1 broker went down so far", GROWTH, cluster)
    cluster.kill(second)
    wait_for_isr(cluster, 1)
    wait_until_refused(cluster)

    refused = order(cluster, "order-3")
    assert order(cluster, "order-4", acks=1) == "acknowledged"
    verdict.passes(LAB, cluster, refused=refused)
    verdict.says("Give check() your answer as refused=", LAB, cluster)
    verdict.says("is the client giving up", LAB, cluster, refused="_MSG_TIMED_OUT")
    verdict.says("doesn't answer 'acknowledged'", LAB, cluster, refused="acknowledged")

    cluster.restart(first)
    wait_for_isr(cluster, 2)
    verdict.says(f"You haven't restarted broker {second} yet", GROWTH, cluster)
    cluster.restart(second)
    wait_for_isr(cluster, 3)
    verdict.says(f"lacks broker {second}", GROWTH, Doctored(cluster, TOPIC, lambda p: replace(p, isr=(p.leader or 0, first))))
    verdict.says("What became of order-5?", GROWTH, cluster)
    order(cluster, "order-5")
    verdict.passes(GROWTH, cluster)
    order(cluster, "order-5")
    verdict.passes(GROWTH, cluster)  # the cell was run twice
    order(cluster, "order-6")
    verdict.says("The lab sends one order after the other", GROWTH, cluster)
    order(cluster, "order-3")
    verdict.says("Did you send it again when more brokers were up?", GROWTH, cluster)

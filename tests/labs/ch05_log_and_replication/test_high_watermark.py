"""Records above the high watermark: each wrong answer gets its sentence, and right ones pass."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, Message, Producer

from kafkalab import Cluster, wait_until
from kafkalab.cluster.offsets import end_offsets
from support import PATIENCE, Told, Verdict, create

pytestmark = pytest.mark.cluster

HIDDEN, SEEN = "05_hidden", "05_high_watermark"
TOPIC = "payments"


def open_account(cluster: Cluster, needed: int = 1) -> None:
    create(cluster, TOPIC, 1, min_insync_replicas=str(needed))
    end_offsets(cluster, TOPIC)  # a leader that answers: `pay` tries only once


def pay(cluster: Cluster, number: int, acks: str | int = "all") -> list[str]:
    reports: list[str] = []

    def note(error: KafkaError | None, _: Message) -> None:
        reports.append(error.name() if error else "acknowledged")

    producer = Producer(cluster.client_config(acks=acks, retries=0))
    for n in range(number):
        producer.produce(TOPIC, f"payment {n}", on_delivery=note)
    producer.flush()
    return reports


def wait_for_isr(cluster: Cluster, size: int) -> None:
    cluster.wait_for(lambda view: len(view.topics[TOPIC][0].isr) == size, f"an ISR of {size}", timeout=PATIENCE)


def follower(cluster: Cluster) -> int:
    [partition] = cluster.describe(groups=False).topics[TOPIC]
    return next(broker for broker in partition.replicas if broker != partition.leader)


def test_hidden_and_seen(cleaning: Cluster, verdict: Verdict) -> None:
    cluster = cleaning
    verdict.says("There is no topic 'payments'", HIDDEN, cluster)
    verdict.says("No broker has been down yet", SEEN, cluster)
    open_account(cluster, 3)
    pay(cluster, 5)
    verdict.says("The ISR has 3 members; the lab asks for two", HIDDEN, cluster)
    stopped = follower(cluster)
    cluster.stop_broker(stopped)
    wait_for_isr(cluster, 2)
    assert pay(cluster, 3) == ["NOT_ENOUGH_REPLICAS"] * 3
    verdict.says("The leader's log ends at offset 5", HIDDEN, cluster)
    assert pay(cluster, 3, acks=1) == ["acknowledged"] * 3
    verdict.passes(HIDDEN, cluster)
    verdict.says(f"Broker {stopped} hasn't come back yet", SEEN, cluster)
    cluster.restart(stopped)
    wait_for_isr(cluster, 3)
    wait_until(lambda: verdict(SEEN, cluster)[0], PATIENCE, "the high watermark")
    verdict.says("The ISR has 3 members; the lab asks for two", HIDDEN, cluster)


def test_a_follower_that_is_killed_will_do(cleaning: Cluster, verdict: Verdict) -> None:
    open_account(cleaning, 3)
    pay(cleaning, 5)
    killed = follower(cleaning)
    cleaning.kill(killed)
    wait_for_isr(cleaning, 2)
    for _ in range(3):
        assert pay(cleaning, 1, acks=0) == ["acknowledged"]  # nobody confirms it, and the leader writes it all the same
    wait_until(lambda: verdict(HIDDEN, cleaning)[0], PATIENCE, "the records to be written")
    cleaning.restart(killed)
    wait_for_isr(cleaning, 3)
    wait_until(lambda: verdict(SEEN, cleaning)[0], PATIENCE, "the high watermark")


def test_two_in_sync_are_enough_for_the_topic(cleaning: Cluster, verdict: Verdict) -> None:
    open_account(cleaning, 2)
    pay(cleaning, 5)
    cleaning.stop_broker(follower(cleaning))
    wait_for_isr(cleaning, 2)
    pay(cleaning, 3, acks=1)
    wait_until(
        lambda: "The high watermark is 8, and so is the end" in verdict(HIDDEN, cleaning)[1], PATIENCE, "both to be copied"
    )


def test_other_numbers(cleaning: Cluster, verdict: Verdict) -> None:
    open_account(cleaning, 3)
    pay(cleaning, 6)
    stopped = follower(cleaning)
    cleaning.stop_broker(stopped)
    wait_for_isr(cleaning, 2)
    pay(cleaning, 3, acks=1)
    verdict.says("The high watermark is 6 and the leader's log ends at 9", HIDDEN, cleaning)


def test_too_few_at_the_end(cleaning: Cluster, verdict: Verdict) -> None:
    open_account(cleaning)
    pay(cleaning, 2)
    told: object = Told(cleaning, ("stop", 1), ("restart", 1))
    wait_until(lambda: "All replicas end at offset 2" in verdict(SEEN, told)[1], PATIENCE, "all to be even")

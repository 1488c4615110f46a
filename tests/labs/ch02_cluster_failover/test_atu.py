"""Purchases that survive a broker: each wrong answer gets its sentence, and the right one passes."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from kafkalab import Cluster, wait_until
from kafkalab.cluster import PartitionView
from kafkalab.distribution import put_tools_on_path
from kafkalab.errors import WaitTimeout
from support import BACKEND, PATIENCE, Doctored, Verdict, create, put, spread, wait_for

pytestmark = pytest.mark.cluster

PURCHASES, RETURNS = "purchases", "returns"
FIVE = [f"purchase{n}" for n in range(1, 6)]
MORE = ["purchase6", "purchase7"]


def test_brokers(verdict: Verdict) -> None:
    with Cluster(brokers=1, backend=BACKEND) as cluster:
        _, said = verdict("02_atu_brokers", cluster)
        assert "The cluster has broker 0. It should have brokers 1, 2, too." in said and "0 of 2" in said
        cluster.add_broker()
        verdict.says("It should have broker 2, too.", "02_atu_brokers", cluster)
        cluster.add_broker()
        verdict.says("There is no topic 'atu'", "02_atu_brokers", cluster)
        create(cluster, "atu", 1, placed=[[0]])
        verdict.passes("02_atu_brokers", cluster)
        moved = Doctored(cluster, "atu", lambda p: replace(p, replicas=(1,)))
        verdict.says("doesn't take over existing replicas", "02_atu_brokers", moved)
        cluster.stop_broker(2)
        verdict.says("Broker 2 is stopped", "02_atu_brokers", cluster)


def lists(*topics: str) -> dict[int, set[str]]:
    return {broker: set(topics) for broker in (0, 1, 2)}


@pytest.mark.parametrize(
    ("make", "listed", "helps"),
    [
        (lambda c: None, lists("atu"), "There is no topic 'purchases'"),
        (lambda c: create(c, PURCHASES, 1), lists("atu", PURCHASES), "purchases has 1 partition."),
        (lambda c: create(c, PURCHASES, 3, 2), lists("atu", PURCHASES), "has 2 replicas, not 3"),
        (lambda c: create(c, PURCHASES, 3), lists("atu", PURCHASES), " is 1. You can set it when you create the topic"),
        (lambda c: create(c, PURCHASES, 3, placed=[[0, 1, 2]] * 3), lists("atu", PURCHASES), "Were all three brokers up"),
    ],
    ids=["nothing", "one_partition", "two_replicas", "one_copy_is_enough", "led_by_one"],
)
def test_purchases_wrong(
    clean: Cluster, verdict: Verdict, make: Callable[[Cluster], None], listed: dict[int, set[str]], helps: str
) -> None:
    create(clean, "atu", 1, 1)
    make(clean)
    verdict.says(helps, "02_atu_purchases", clean, listed=listed)


def test_purchases_and_messages(clean: Cluster, verdict: Verdict) -> None:
    create(clean, "atu", 1, 1)
    create(clean, PURCHASES, 3, min_insync_replicas="2")
    for listed, helps in (
        ({}, "`listed` is empty"),
        (lists("atu"), "Did you ask before you created the topic?"),
        ({0: {"atu", PURCHASES}}, "no entry for broker 1"),
        (lists("atu", PURCHASES, "returns"), "'returns', but there is no such topic"),
    ):
        verdict.says(helps, "02_atu_purchases", clean, listed=listed)
    verdict.passes("02_atu_purchases", clean, listed=lists("atu", PURCHASES, "__consumer_offsets", "__share_group_state"))
    verdict.passes("02_atu_purchases", clean, listed={broker: ["atu", PURCHASES] for broker in (0, 1, 2)})
    verdict.says("None of 'purchase1' … 'purchase5'", "02_atu_messages", clean)
    spread(clean, PURCHASES, *FIVE)
    verdict.passes("02_atu_messages", clean)


@pytest.mark.parametrize(
    ("values", "helps"),
    [
        (FIVE[:4], "'purchase5' isn't in purchases"),
        ([*FIVE, FIVE[4]], "2 times"),
        ([*FIVE, "purchase9"], "also holds 'purchase9'"),
        (["Purchase 1", "Purchase 2"], "None of 'purchase1' … 'purchase5'"),
    ],
    ids=["four", "one_twice", "one_too_many", "other_text"],
)
def test_messages_wrong(clean: Cluster, verdict: Verdict, values: list[str], helps: str) -> None:
    create(clean, PURCHASES, 3)
    spread(clean, PURCHASES, *values)
    verdict.says(helps, "02_atu_messages", clean)


def test_failover_ids_and_rebalance(breakable: Cluster, verdict: Verdict) -> None:
    create(breakable, PURCHASES, 3, placed=[[0, 1, 2], [1, 2, 0], [2, 0, 1]])
    spread(breakable, PURCHASES, *FIVE)
    _, said = verdict("02_atu_failover", breakable, reread=[])
    assert "Broker 1 is up." in said and "None of 'purchase6' … 'purchase7'" in said and "0 of 8" in said
    _, said = verdict("02_atu_rebalance", breakable)
    assert "Broker 1 never went down" in said and "0 of 4" in said

    breakable.kill(1)
    verdict.says("Broker 1 was killed, so it couldn't hand over what it led", "02_atu_failover", breakable, reread=[])
    breakable.restart(1)
    wait_for(breakable, lambda v: v.in_sync(PURCHASES), "complete ISRs")

    breakable.stop_broker(1)
    wait_for(breakable, lambda v: v.moved_from(PURCHASES, 1) and v.out_of_sync(PURCHASES, 1), "new leaders")
    spread(breakable, PURCHASES, *MORE)
    verdict.says("`reread` is empty", "02_atu_failover", breakable, reread=[])
    verdict.says("At which offset did your consumer start?", "02_atu_failover", breakable, reread=MORE)
    verdict.says("Did you send it before the consumer ended?", "02_atu_failover", breakable, reread=FIVE)
    verdict.passes("02_atu_failover", breakable, reread=[*FIVE, *MORE])

    leaders = dict(breakable.describe().leaders(PURCHASES))
    another = {0: 2, 2: 0}[leaders[1] or 0]
    everywhere = {0, 1, 2}
    wrong: list[tuple[dict[str, object], str]] = [
        ({}, "as leader_of="),
        ({"leader_of": {0: 0, 1: 1, 2: 2}, "held_by_1": everywhere}, "A partition's number says nothing about its broker"),
        ({"leader_of": {0: 0, 2: 2}, "held_by_1": everywhere}, "which number is the partition's?"),
        ({"leader_of": {**leaders, 1: another}, "held_by_1": everywhere}, f"Broker {another} doesn't lead partition 1"),
        ({"leader_of": leaders}, "as held_by_1="),
        ({"leader_of": leaders, "held_by_1": None}, "`held_by_1` is still None"),
        ({"leader_of": leaders, "held_by_1": set()}, "It isn't none. Which column"),
        ({"leader_of": leaders, "held_by_1": {0, 2}}, "It isn't [0, 2]. Which column"),
    ]
    for answers, helps in wrong:
        verdict.says(helps, "02_atu_ids", breakable, **answers)
    verdict.passes("02_atu_ids", breakable, leader_of=leaders, held_by_1=everywhere)
    verdict.passes("02_atu_ids", breakable, leader_of={np.int64(p): b for p, b in leaders.items()}, held_by_1=[2, 1, 0])

    verdict.says("You haven't restarted broker 1 yet", "02_atu_rebalance", breakable)
    breakable.restart(1)
    wait_for(breakable, lambda v: v.in_sync(PURCHASES), "complete ISRs")
    lagging = Doctored(breakable, PURCHASES, lambda p: replace(p, isr=(0, 2)))
    verdict.says("lacks broker 1", "02_atu_rebalance", lagging)
    verdict.says("Which command moves leadership back", "02_atu_rebalance", breakable)

    def lagging_ones() -> list[PartitionView]:
        topics = breakable.describe(groups=False, internal=True).topics.values()
        return [p for partitions in topics for p in partitions if set(p.isr) != set(p.replicas)]

    # The tool fails if there is one partition whose preferred leader can't lead, and means internal topics, too.
    wait_until(
        lambda: not lagging_ones(), PATIENCE, "complete ISRs of all topics", last_seen=lagging_ones, ignore=(WaitTimeout,)
    )
    put_tools_on_path()
    command = ["kafka-leader-election.sh", "--bootstrap-server", breakable.bootstrap_servers, "--election-type", "preferred"]
    subprocess.run([*command, "--all-topic-partitions"], check=True, capture_output=True)
    wait_for(breakable, lambda v: all(p.leader == p.replicas[0] for p in v.topics[PURCHASES]), "preferred leaders")
    verdict.passes("02_atu_rebalance", breakable)


@pytest.mark.parametrize(
    ("wrong", "helps"),
    [
        (lambda c: None, "There is no topic 'returns'"),
        (lambda c: create(c, RETURNS, 3, 2), "returns has 3 partitions"),
        (lambda c: create(c, RETURNS, 5, 3), "has 3 replicas, not 2"),
        (lambda c: create(c, RETURNS, 5, placed=[[0, 2]] * 5), "Broker 1 has no replica of it"),
    ],
    ids=["nothing", "three_partitions", "three_replicas", "made_while_one_was_down"],
)
def test_counts_wrong(clean: Cluster, verdict: Verdict, wrong: Callable[[Cluster], None], helps: str) -> None:
    wrong(clean)
    verdict.says(helps, "02_atu_counts", clean)


TEN = [f"return{n}" for n in range(1, 11)]
RIGHT = {p: TEN[p::5] for p in range(5)}  # as `spread` spreads them


def test_counts_and_order(clean: Cluster, verdict: Verdict) -> None:
    create(clean, RETURNS, 5, 2)
    verdict.passes("02_atu_counts", clean)
    spread(clean, RETURNS, *TEN)
    for by_partition, helps in (
        ({}, "`by_partition` is empty"),
        ({0: TEN}, "an entry for each of the five partitions"),
        (dict.fromkeys(range(5), TEN), "Does your consumer read this partition only"),
        ({p: sorted(values) for p, values in RIGHT.items()}, "return10 comes before return2"),
        ({p: values[:1] for p, values in RIGHT.items()}, "and all of it?"),
        ({p: [value.encode() for value in values] for p, values in RIGHT.items()}, "should be text, not bytes"),
    ):
        verdict.says(helps, "02_atu_order", clean, by_partition=by_partition)
    verdict.passes("02_atu_order", clean, by_partition=RIGHT)
    verdict.passes("02_atu_order", clean, by_partition={p: tuple(values) for p, values in RIGHT.items()})


def test_order_sent_to_one_partition(clean: Cluster, verdict: Verdict) -> None:
    create(clean, RETURNS, 5, 2)
    put(clean, RETURNS, [(None, value, 3) for value in TEN])
    verdict.says("All ten are in one partition", "02_atu_order", clean, by_partition=RIGHT)


def test_order_sent_backwards(clean: Cluster, verdict: Verdict) -> None:
    create(clean, RETURNS, 5, 2)
    spread(clean, RETURNS, *reversed(TEN))
    verdict.says("Did you send them one after the other?", "02_atu_order", clean, by_partition=RIGHT)

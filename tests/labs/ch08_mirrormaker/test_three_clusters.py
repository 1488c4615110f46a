"""Prices in three clusters: each wrong answer gets its sentence, and the right one passes."""

from __future__ import annotations

import pytest

from kafkalab import Cluster
from mirror_support import Named, add, fill
from support import BACKEND, Verdict, commit, create, delete

pytestmark = pytest.mark.cluster

LAB, PRICES = "08_three_clusters", "stock-prices"
SENT = [f"price {n}" for n in range(30)]
LAST = {"key 0": "price 27", "key 1": "price 28", "key 2": "price 29"}


def test_three_clusters(named: Named, verdict: Verdict) -> None:
    first, second, third = named("first", "second", "third")
    latest = dict.fromkeys(("first", "second", "third"), LAST)
    given = {"second": second, "third": third, "latest": latest}

    def says(sentence: str, **wrong: object) -> None:
        verdict.says(sentence, LAB, first, **{**given, **wrong})

    says("In first: There is no topic 'stock-prices' yet")
    says("The cluster third isn't running", third=Cluster(1, backend=BACKEND))
    says("`third` should be a Cluster, not text", third=third.bootstrap_servers)
    for cluster, partitions in ((first, 3), (second, 13), (third, 33)):
        fill(cluster, PRICES, [], partitions)
    passed, printed = verdict(LAB, first, **given)
    assert not passed
    assert "There are no prices in the first cluster yet" in printed
    assert printed.count("Not looked at yet") == 2
    for cluster in (first, second, third):
        add(cluster, PRICES, SENT)
    for cluster in (first, second, third):
        says(f"In {cluster.name}: There is no consumer group 'readers' yet")
        commit(cluster, "readers", PRICES, dict.fromkeys(range(3), 10))
    verdict.passes(LAB, first, **given)
    says("For third, your price of key 0 isn't the last one", latest={"first": LAST, "second": LAST})
    says("For second, your price of key 1 isn't the last one", latest={**latest, "second": LAST | {"key 1": "price 1"}})
    says("For first, your answer names 'key 9'", latest={**latest, "first": LAST | {"key 9": "price 1"}})
    verdict.says("Give check() your answer as latest=", LAB, first, second=second, third=third)
    commit(second, "readers", PRICES, {1: 9})
    says("In second: readers has committed offset 9 in partition 1 of stock-prices, which ends at offset 10")
    create(third, "second.first.stock-prices", 3, copies=1)
    says("In third: There is a topic 'second.first.stock-prices'. Which replication policy")
    add(second, PRICES, ["price 0"])  # a record that was copied twice
    commit(second, "readers", PRICES)
    delete(third, "second.first.stock-prices")
    verdict.passes(LAB, first, **{**given, "latest": {**latest, "second": LAST | {"key 0": "price 0"}}})
    add(second, PRICES, ["no price"])
    says("In second: 1 record didn't come from the first cluster")
    add(first, PRICES, ["one more"])
    says("In second: stock-prices lacks 1 price of the first cluster, one of them of key 0 in partition 0")
    delete(second, PRICES)
    create(second, PRICES, 3, copies=1)
    says("In second: stock-prices has 3 partitions, not 13. Who created the topic there, you or MirrorMaker?")

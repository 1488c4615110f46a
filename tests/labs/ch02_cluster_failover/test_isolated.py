"""A leader cut off from its peers: each wrong answer gets its sentence, and the right one passes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kafkalab import Cluster
from support import Doctored, Verdict, create, spread, wait_for

pytestmark = pytest.mark.cluster

LAB, TOPIC = "02_isolated", "letters"


def test_isolated(breakable: Cluster, verdict: Verdict) -> None:
    cluster = breakable
    values = [f"message {n}" for n in range(120)]
    right = {
        "with_one": "acknowledged",
        "with_all": "REQUEST_TIMED_OUT",
        "lost": ["letter with acks=1"],
        "acknowledged": values,
    }
    create(cluster, TOPIC, 3, min_insync_replicas="2")
    spread(cluster, TOPIC, *values)
    _, said = verdict(LAB, cluster, **right)
    assert "No broker was isolated." in said and "1 of 6" in said

    view = wait_for(cluster, lambda view: view if view.controller is not None else None, "a controller")
    isolated = next(broker for broker in (0, 1, 2) if broker != view.controller)
    cluster.kill(isolated)  # not the same: a dead broker acknowledges nothing
    cluster.restart(isolated)
    verdict.says("No broker was isolated (only: kill, restart)", LAB, cluster, **right)
    wait_for(cluster, lambda view: view.in_sync(TOPIC), "all replicas in sync")

    cluster.isolate(isolated)
    wait_for(cluster, lambda view: view.out_of_sync(TOPIC, isolated), "the broker to be fenced")
    verdict.says(f"Broker {isolated} is still cut off", LAB, cluster, **right)
    cluster.heal(isolated)
    wait_for(cluster, lambda view: view.in_sync(TOPIC), "all replicas in sync")
    verdict.passes(LAB, cluster, **right)
    cluster.isolate(isolated)
    wait_for(cluster, lambda view: view.out_of_sync(TOPIC, isolated), "the broker to be fenced")
    cluster.restart(isolated)  # connects it again, too
    wait_for(cluster, lambda view: view.in_sync(TOPIC), "all replicas in sync")
    verdict.passes(LAB, cluster, **right)
    verdict.passes(LAB, cluster, **{**right, "acknowledged": tuple(values), "lost": {"letter with acks=1"}})
    lagging = Doctored(cluster, TOPIC, lambda p: replace(p, isr=tuple(set(p.replicas) - {isolated})))
    verdict.says(f"lacks broker {isolated}", LAB, lagging, **right)

    def refused(sentence: str, **answers: object) -> None:
        verdict.says(sentence, LAB, cluster, **(right | answers))

    refused("The ledger has 3 messages", acknowledged=values[:3])
    refused(
        "2 acknowledged messages can't be found, the first one is 'message 120'", acknowledged=[*values, "message 120", "x"]
    )
    refused("`with_all` is still None", with_all=None)
    refused("an isolated leader can't acknowledge anything", with_all="acknowledged")
    refused("doesn't answer 'NOT_ENOUGH_REPLICAS'", with_all="NOT_ENOUGH_REPLICAS")
    refused("With acks=1 the leader waits for nobody", with_one="REQUEST_TIMED_OUT")
    refused("`lost` is empty", lost=[])
    refused("'message 7' isn't lost: it's in the topic", lost=["message 7"])
    refused("'letter with acks=all' isn't a letter that the isolated broker acknowledged", lost=["letter with acks=all"])
    refused("`lost` should be a list, not text", lost="letter with acks=1")

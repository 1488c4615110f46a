"""The controller killed, and majorities: each wrong answer gets its sentence, and the right one passes."""

from __future__ import annotations

import numpy as np
import pytest

from kafkalab import Cluster
from support import Verdict, create, delete, led, wait_for

pytestmark = pytest.mark.cluster

LAB, MAJORITY = "02_quorum", "02_majority"
TOPIC = "after-the-fall"
RIGHT = {1: 0, 3: 1, 4: 1, 5: 2}


def quorum_of(cluster: Cluster) -> tuple[int, int]:
    view = led(cluster)
    assert view.controller is not None
    return view.controller, view.controller_epoch


def test_quorum(breakable: Cluster, verdict: Verdict) -> None:
    cluster = breakable
    _, said = verdict(LAB, cluster)
    assert "You haven't shut broker 0 down yet" in said and "Give check() your answer as before=" in said and "0 of 4" in said

    cluster.stop_broker(0)
    verdict.says("Broker 0 is stopped. Start it again", LAB, cluster)
    cluster.restart(0)

    before = quorum_of(cluster)
    follower = next(broker for broker in (0, 1, 2) if broker != before[0])
    verdict.says("but you killed none", LAB, cluster, before=before, after=before)
    cluster.kill(follower)
    cluster.restart(follower)
    before = quorum_of(cluster)
    victim = before[0]
    if victim != follower:  # else an election came between, and this wrong answer would be a right one
        verdict.says(f"node {victim} was the active controller, but you killed broker {follower}", LAB, cluster, before=before)

    cluster.kill(victim)
    wait_for(cluster, lambda view: view.controller not in (None, victim), "another controller")
    after = quorum_of(cluster)
    verdict.says(f"{victim} is dead", LAB, cluster, before=before, after=after)
    cluster.restart(victim)
    verdict.passes(LAB, cluster, before=before, after=after)
    verdict.passes(LAB, cluster, before=list(before), after=tuple(np.array(after)))
    verdict.says("name the same leader", LAB, cluster, before=before, after=before)
    verdict.says("The epoch didn't grow", LAB, cluster, before=before, after=(after[0], before[1]))
    verdict.says("so it can't have shown you 99", LAB, cluster, before=before, after=(after[0], 99))
    verdict.says("`before` should be a tuple", LAB, cluster, before=victim, after=after)


def test_majority(governed: Cluster, verdict: Verdict) -> None:
    verdict.says("0 of 3 brokers are down", MAJORITY, governed, may_die=RIGHT)
    create(governed, TOPIC, 2, placed=[[1], [2]])
    governed.kill(1)
    verdict.says("1 of 3 brokers are down", MAJORITY, governed, may_die=RIGHT)
    governed.kill(2)
    # Both: a client is told of any unfenced broker as its controller, and would wait a minute for one that is dead.
    wait_for(governed, lambda view: all(p.leader is None for p in view.topics[TOPIC]), "the brokers to be fenced")
    verdict.says("so you created it before the brokers died", MAJORITY, governed, may_die=RIGHT)
    delete(governed, TOPIC)
    verdict.says("There is no topic 'after-the-fall'", MAJORITY, governed, may_die=RIGHT)
    create(governed, TOPIC, 1, placed=[[0]])
    verdict.passes(MAJORITY, governed, may_die=RIGHT)
    verdict.passes(MAJORITY, governed, may_die={voters: np.int64(dead) for voters, dead in RIGHT.items()})
    for may_die, sentence in (
        (RIGHT | {4: 2}, "Think again about 4 voters"),
        (RIGHT | {1: None}, "Think again about 1 voter"),
        ({3: 1}, "an entry for 1, 3, 4 and 5 voters"),
    ):
        verdict.says(sentence, MAJORITY, governed, may_die=may_die)


def test_majority_with_combined_nodes(breakable: Cluster, verdict: Verdict) -> None:
    breakable.kill(0)
    breakable.kill(1)
    wait_for(breakable, lambda view: view.controller is None, "the quorum to be lost")
    _, said = verdict(MAJORITY, breakable, may_die=RIGHT)
    assert "Broker 0 is a voter of the quorum, too" in said and "No controller is active" in said

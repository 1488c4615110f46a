"""Three groups under three protocols, and how long partitions had no owner: each wrong answer gets its sentence, right ones pass."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Event, Thread

import pytest
from confluent_kafka import Consumer

from kafkalab import Cluster
from support import PATIENCE, Verdict, create, every_group, put

pytestmark = pytest.mark.cluster

PROTOCOLS, GAPS = "12_rebalance_protocols", "12_rebalance_gaps"
GROUPS = ("eager", "cooperative", "new")
CLASSIC: dict[str, object] = {"heartbeat.interval.ms": 300}
COOPERATIVE = {**CLASSIC, "partition.assignment.strategy": "cooperative-sticky"}
NEW: dict[str, object] = {"group.protocol": "consumer"}


@contextmanager
def teams(cluster: Cluster, settings: Mapping[str, Mapping[str, object]], size: int = 3) -> Iterator[None]:
    """So many members in each of these groups, which have settled."""
    members = [
        Consumer({**cluster.client_config(group_id=group, client_id=f"member-{n}"), **of_group})
        for group, of_group in settings.items()
        for n in range(size)
    ]
    ended = Event()

    def poll() -> None:
        while not ended.is_set():
            for member in members:
                member.poll(0.005)

    for member in members:
        member.subscribe(["prices"])
    polling = Thread(target=poll)
    polling.start()
    try:
        cluster.wait_for(
            lambda view: all(
                sorted(len(m.partitions) for m in view.groups[group].members) == [12 // size] * size for group in settings
            ),
            "every group to share the partitions",
            PATIENCE,
            groups=True,
        )
        yield
    finally:
        ended.set()
        polling.join()
        for member in members:
            member.close()


def test_protocols(impatient: Cluster, verdict: Verdict) -> None:
    cluster = impatient
    _, said = verdict(PROTOCOLS, cluster)
    assert "There is no consumer group 'eager' yet" in said and "0 of 5" in said
    create(cluster, "prices", 12, 1)
    with teams(cluster, {"eager": CLASSIC}, size=2):
        verdict.says("eager has 2 members, not 3", PROTOCOLS, cluster)
    with teams(cluster, {"eager": COOPERATIVE, "cooperative": CLASSIC, "new": COOPERATIVE}):
        _, said = verdict(PROTOCOLS, cluster)
        assert "2 of 5" in said
        assert "The assignor of eager is cooperative-sticky" in said
        assert "The assignor of cooperative is range" in said
        assert "The broker says that new is a group of type classic, not consumer" in said
    roundrobin = {**CLASSIC, "partition.assignment.strategy": "roundrobin"}
    with teams(cluster, {"eager": roundrobin, "cooperative": COOPERATIVE, "new": {**NEW, "group.remote.assignor": "range"}}):
        verdict.passes(PROTOCOLS, cluster)


Report = tuple[str, str, int, float]
"""Event, member, partition, time."""


def report(cluster: Cluster, group: str, *reports: Report) -> None:
    facts = [{"group": group, "event": e, "member": m, "partition": p, "at": at} for e, m, p, at in reports]
    put(cluster, "reports", [(None, json.dumps(fact), 0) for fact in facts])


def test_gaps(impatient: Cluster, verdict: Verdict) -> None:
    cluster = impatient
    for topic, partitions in (("prices", 12), ("reports", 1)):
        create(cluster, topic, partitions, 1)
    with teams(cluster, {"eager": CLASSIC, "cooperative": COOPERATIVE, "new": NEW}):
        verdict.passes(PROTOCOLS, cluster)
        groups = every_group(cluster).groups
        zero = {g: next(m.client_id for m in groups[g].members if ("prices", 0) in m.partitions) for g in GROUPS}
        verdict.says("`reports` shows no change in eager", GAPS, cluster)
        for group in GROUPS:
            report(cluster, group, ("revoked", zero[group], 0, 10.0), ("assigned", zero[group], 0, 11.5))
        verdict.says("everybody who was assigned a partition is still a member", GAPS, cluster)
        for group in GROUPS:
            report(cluster, group, ("revoked", zero[group], 0, 20.0), ("assigned", "member-3", 0, 20.25))
        verdict.says("By the reports of eager, partition 0 belongs to member-3 at the end", GAPS, cluster)
        for group in GROUPS:  # in another order than it happened
            report(
                cluster, group, ("assigned", zero[group], 0, 30.5), ("revoked", "member-3", 0, 30.0), ("left", "member-3", 0, 5)
            )

        right = {group: {0: 2.25} for group in GROUPS}
        verdict.passes(GAPS, cluster, gaps=right)
        verdict.passes(GAPS, cluster, gaps={group: {**dict.fromkeys(range(12), 0), 0: 2.3} for group in GROUPS})
        verdict.says("Give check() your answer as gaps=", GAPS, cluster)
        verdict.says("`gaps` has no 'new'", GAPS, cluster, gaps={"eager": {0: 2.25}, "cooperative": {0: 2.25}})
        longest = {group: {0: 1.5} for group in GROUPS}
        verdict.says("partition 0 of eager had no owner for 2.25 s, in 3 gaps; `gaps` says 1.50 s", GAPS, cluster, gaps=longest)
        whole = {**right, "new": {0: 2.25, 5: 20.0}}
        verdict.says("`gaps` has a gap for partition 5 of new", GAPS, cluster, gaps=whole)
        report(cluster, "new", ("revoked", zero["new"], 0, 40.0))
        verdict.says("By the reports of new, partition 0 belongs to nobody at the end", GAPS, cluster, gaps=right)
    verdict.says("eager has 0 members, not 3", PROTOCOLS, cluster)

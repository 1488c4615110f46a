"""Thirty replicas on six brokers in two racks, placed by a rule and by Kafka."""

from __future__ import annotations

from kafkalab.checks.brokers import nodes
from kafkalab.checks.context import CheckContext, Unmet
from kafkalab.checks.lab import Lab
from kafkalab.checks.topics import existing, has_shape
from kafkalab.checks.wording import counted

__all__ = ["lab", "placement_by_the_rule"]

PARTITIONS, COPIES = 10, 3
RACK_OF = {0: "R1", 1: "R1", 2: "R1", 3: "R2", 4: "R2", 5: "R2"}

lab = Lab("02_rack_placement")

check = lab.add_check(
    "02_rack_placement",
    "Place 30 replicas on 6 brokers in 2 racks",
    hints=(
        "List the brokers so that neighbours are in different racks: 0, 3, 1, …",
        "The leader of partition p is at place p of that list; after the last place comes the first one again.",
        "The first follower is one place further than the leader, the second one two places.",
        "NewTopic takes replica_assignment=, a list with one list of brokers per partition.",
    ),
)


def placement_by_the_rule() -> dict[int, list[int]]:
    """Return the placement that the lab asks for: partition → brokers, leader first."""
    in_turn = [0, 3, 1, 4, 2, 5]
    return {p: [in_turn[(p + step) % len(in_turn)] for step in range(COPIES)] for p in range(PARTITIONS)}


def placement(ctx: CheckContext) -> dict[int, list[int]]:
    """Return the learner's placement."""
    return ctx.answer("placement", dict[int, list[int]], "partition → list of brokers, leader first")


@check.requires("Your placement has 10 partitions on 3 different brokers each")
def placement_is_complete(ctx: CheckContext) -> None:
    given = placement(ctx)
    if set(given) != set(range(PARTITIONS)):
        raise Unmet(f"It has {counted(len(given), 'partition')}; the topic has partitions 0 to {PARTITIONS - 1}.")
    for p, brokers in sorted(given.items()):
        if len(brokers) != COPIES or not set(brokers) <= set(RACK_OF):
            raise Unmet(f"Partition {p} is on {brokers}. It should be on three of the brokers 0 to 5.")
        if len(set(brokers)) != COPIES:
            raise Unmet(f"Partition {p} has two replicas on one broker: if that dies, both are gone.")


@check.requires("Each partition is on both racks", after=placement_is_complete)
def placement_uses_both_racks(ctx: CheckContext) -> None:
    for p, brokers in sorted(placement(ctx).items()):
        if len({RACK_OF[b] for b in brokers}) == 1:
            raise Unmet(f"Partition {p} is on rack {RACK_OF[brokers[0]]} only. In which order does the rule list the brokers?")


@check.requires("It follows the rule", after=placement_uses_both_racks)
def placement_follows_the_rule(ctx: CheckContext) -> None:
    given, rule = placement(ctx), placement_by_the_rule()
    if wrong := [p for p in range(PARTITIONS) if given[p][0] != rule[p][0]]:
        raise Unmet(
            f"The rule gives partition {wrong[0]} another leader than broker {given[wrong[0]][0]}. What comes after the last "
            "place?"
        )
    for p in range(PARTITIONS):
        for step, name in ((1, "first"), (2, "second")):
            if given[p][step] != rule[p][step]:
                raise Unmet(
                    f"The rule puts the {name} follower of partition {p} on another broker than {given[p][step]}. How many "
                    "places is it away from the leader?"
                )


by_hand = check.requires("by-hand is a topic of the same size")(has_shape("by-hand", PARTITIONS, COPIES))


@check.requires("by-hand has exactly this placement", after=(placement_follows_the_rule, by_hand))
def by_hand_is_placed(ctx: CheckContext) -> None:
    rule = placement_by_the_rule()
    if wrong := [p for p in existing(ctx, "by-hand") if list(p.replicas) != rule[p.partition]]:
        raise Unmet(
            f"Partition {wrong[0].partition} of by-hand is on {list(wrong[0].replicas)}. Who chose its brokers, you or Kafka?"
        )


by_kafka = check.requires("by-kafka is a topic of the same size")(has_shape("by-kafka", PARTITIONS, COPIES))


@check.requires("Kafka placed each partition of by-kafka on both racks", after=by_kafka)
def by_kafka_uses_both_racks(ctx: CheckContext) -> None:
    racks = {node.id: node.rack for node in nodes(ctx).values()}
    if None in racks.values():
        raise Unmet("The brokers don't know their racks. Which argument of Cluster tells them?")
    if {i: rack for i, rack in racks.items() if i in RACK_OF} != RACK_OF:
        raise Unmet("The brokers aren't in the racks of the lab: 0, 1 and 2 in R1, 3, 4 and 5 in R2.")
    for p in existing(ctx, "by-kafka"):
        if len({racks[b] for b in p.replicas}) == 1:
            raise Unmet(f"Partition {p.partition} of by-kafka is on one rack only. Did you assign its replicas yourself?")

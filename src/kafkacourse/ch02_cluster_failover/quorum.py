"""The active controller killed, and how many voters a quorum can lose."""

from __future__ import annotations

from kafkalab.checks.brokers import DOWN, all_up, faulted, nodes
from kafkalab.checks.context import CheckContext, Unmet
from kafkalab.checks.lab import Lab
from kafkalab.checks.wording import counted, listed_brokers

__all__ = ["lab"]

LATE_TOPIC = "after-the-fall"
VOTERS = (1, 3, 4, 5)

lab = Lab("02_quorum")

# -- an election ------------------------------------------------------------------------------------------------------

election = lab.add_check(
    "02_quorum",
    "Kill the active controller",
    hints=(
        "stop_broker shuts a broker down, kill ends its process at once. restart starts it again with its data.",
        "quorum_status()['LeaderId'] is the active controller. AdminClient's idea of the controller is not.",
        "After the kill, wait with cluster.wait_for until view.controller is another node, and not None.",
    ),
)


def status(ctx: CheckContext, name: str) -> tuple[int, int]:
    """Return the leader and the epoch that the learner read."""
    return ctx.answer(name, tuple[int, int], "(LeaderId, LeaderEpoch) as kafka-metadata-quorum.sh shows them")


@election.requires("Broker 0 was shut down and is up again")
def broker_0_was_shut_down(ctx: CheckContext) -> None:
    if 0 not in faulted(ctx, "stop"):
        raise Unmet("You haven't shut broker 0 down yet. (kill is another verb: the broker can't tell the controller.)")
    if (state := nodes(ctx)[0].state) != "up":
        raise Unmet(f"Broker 0 is {state}. Start it again, with the same data.")


@election.requires("The active controller was killed")
def controller_was_killed(ctx: CheckContext) -> None:
    leader, _ = status(ctx, "before")
    killed = sorted(set(faulted(ctx, "kill")))
    if leader not in killed:
        raise Unmet(
            f"By your own answer node {leader} was the active controller, but you killed "
            f"{listed_brokers(killed) if killed else 'none'}."
        )


@election.requires("Another one was elected, in a later epoch", after=controller_was_killed)
def another_was_elected(ctx: CheckContext) -> None:
    (leader, epoch), (new_leader, new_epoch) = status(ctx, "before"), status(ctx, "after")
    if new_leader == leader:
        raise Unmet("`before` and `after` name the same leader. Did you wait for the election before you asked again?")
    if new_epoch <= epoch:
        raise Unmet("The epoch didn't grow, but every election makes it grow. Did you read `before` first?")
    view = ctx.cluster.describe(groups=False)
    if view.controller_epoch < new_epoch:
        raise Unmet(f"The quorum is in epoch {view.controller_epoch}, so it can't have shown you {new_epoch}.")
    if view.controller_epoch == new_epoch and view.controller != new_leader:
        raise Unmet(f"In epoch {new_epoch} node {new_leader} isn't the leader of this quorum.")


election.requires("All three nodes are up", after=controller_was_killed)(all_up)

# -- a majority -------------------------------------------------------------------------------------------------------

majority = lab.add_check(
    "02_majority",
    "Count how many voters may die",
    hints=(
        "A quorum decides as long as more than half of all its voters are up.",
        "Cluster takes controllers=: how many nodes are controllers and nothing else.",
        "A topic with a replication factor of 1 needs one live broker.",
    ),
)


@majority.requires("You know how many of 1, 3, 4 and 5 voters may die")
def majority_is_understood(ctx: CheckContext) -> None:
    given = ctx.answer("may_die", dict[int, float | None], "number of voters → how many of them may die")
    if set(given) != set(VOTERS):
        raise Unmet("The dictionary should have an entry for 1, 3, 4 and 5 voters.")
    if wrong := [voters for voters in VOTERS if given[voters] != (voters - 1) // 2]:
        raise Unmet(
            f"Think again about {counted(wrong[0], 'voter')}: the ones that are left must be more than half of all, dead ones "
            "included."
        )


@majority.requires("The voters are dedicated controllers")
def voters_are_dedicated(ctx: CheckContext) -> None:
    if voting := [node.id for node in nodes(ctx).values() if node.voter and node.address]:
        raise Unmet(f"Broker {voting[0]} is a voter of the quorum, too. Here the voters should be nodes of their own.")


@majority.requires("Two of the three brokers are down")
def two_brokers_are_down(ctx: CheckContext) -> None:
    brokers = [node for node in nodes(ctx).values() if node.address]
    down = [node.id for node in brokers if node.state in DOWN]
    if (len(brokers), len(down)) != (3, 2):
        raise Unmet(f"{len(down)} of {counted(len(brokers), 'broker')} are down. The lab asks for two of three.")


@majority.requires("A controller is active all the same, and it created a topic", after=two_brokers_are_down)
def controller_is_active(ctx: CheckContext) -> None:
    view = ctx.cluster.describe(groups=False)
    if view.controller is None:
        raise Unmet("No controller is active: too few voters are left.")
    if LATE_TOPIC not in view.topics:
        raise Unmet(f"There is no topic {LATE_TOPIC!r}. Only an active controller can create one: try it.")
    down = {node.id for node in view.brokers.values() if node.state in DOWN}
    if any(set(p.replicas) & down for p in view.topics[LATE_TOPIC]):
        raise Unmet(f"{LATE_TOPIC!r} has a replica on a broker that is down, so you created it before the brokers died.")

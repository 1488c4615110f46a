"""A controller added, the active one removed, and a majority lost, while a producer writes."""

from __future__ import annotations

import contextlib

from kafkalab.checks.brokers import faulted, has_level, nodes
from kafkalab.checks.context import CheckContext, Unmet
from kafkalab.checks.lab import Lab
from kafkalab.checks.ledgers import is_complete, wrote_throughout
from kafkalab.checks.wording import counted
from kafkalab.cluster import ClusterView
from kafkalab.errors import WaitTimeout

__all__ = ["lab"]

TOPIC, FEATURE = "payments", "kraft.version"
FIRST = (100, 101, 102)
"""The controllers that the cluster starts with."""
RESIGNED = "Leader is not in the committed voter set"
"""A line in the log of an active controller that was removed."""
_ELECTION = 5.0
"""Seconds until an active controller should show."""

lab = Lab("12_dynamic_quorum")


def governed(ctx: CheckContext) -> ClusterView | None:
    """Return the cluster with an active controller, or None if none shows within a few seconds.

    One that doesn't answer in time looks as if there were none, and then nobody tells who votes.
    """
    with contextlib.suppress(WaitTimeout):
        found: ClusterView | None = ctx.cluster.wait_for(
            lambda view: view if view.controller is not None else None, "an active controller", _ELECTION
        )
        return found
    return None


def reported(ctx: CheckContext) -> ClusterView:
    """Return the cluster as it is under an active controller. Raise `Unmet` if there is none."""
    view = governed(ctx)
    if view is None:
        raise Unmet("No controller is active, so nobody can tell who votes. How many of the voters are up?")
    return view


def voters_of(view: ClusterView) -> list[int]:
    """Return the nodes that vote."""
    return [i for i, node in view.brokers.items() if node.voter]


def voters(ctx: CheckContext) -> list[int]:
    """Return the nodes that vote, as the active controller reports them."""
    return voters_of(reported(ctx))


def named(ids: list[int]) -> str:
    """Return ids as text, such as "100, 101"."""
    return ", ".join(map(str, ids)) or "none"


# -- one more ---------------------------------------------------------------------------------------------------------

added = lab.add_check(
    "12_controller_added",
    "Add a controller to the quorum",
    hints=(
        "There are two steps: one changes a feature level, the other adds the voter.",
        "kafka-features.sh upgrade --feature NAME=LEVEL raises one feature. The feature is kraft.version.",
        "In kafka-metadata-quorum.sh the option --command-config comes before the command, add-controller.",
    ),
)

dynamic = added.requires("The quorum can change its voters: kraft.version is 1")(has_level(FEATURE, 1))


@added.requires("Another controller than the first three votes", after=dynamic)
def another_votes(ctx: CheckContext) -> None:
    view = reported(ctx)
    if set(found := voters_of(view)) <= set(FIRST):
        observers = [i for i, node in view.brokers.items() if not node.address and not node.voter]
        raise Unmet(
            f"The voters are {named(found)}. Controllers that only follow the log: {named(observers)}. Which command makes "
            "one of these a voter?"
        )


# -- the active one ---------------------------------------------------------------------------------------------------

removed = lab.add_check(
    "12_active_removed",
    "Remove the active controller",
    hints=(
        "view.controller is the active controller: cluster.describe(groups=False).controller.",
        "The tool wants the controller's id and the id of its data folder. `folders()` has the second.",
        "cluster.wait_for(lambda view: view.controller not in (None, active), …) waits for the election.",
    ),
)


def active_of(ctx: CheckContext) -> int:
    """Return the controller that the learner removed."""
    return ctx.answer("active", int, "the id of the node that was the active controller")


@removed.requires("You know which controller was active")
def active_is_known(ctx: CheckContext) -> None:
    given = active_of(ctx)
    if given not in nodes(ctx) or nodes(ctx)[given].address:
        raise Unmet(f"Node {given} isn't a controller. Brokers of this cluster don't vote.")


@removed.requires("It doesn't vote any more", after=active_is_known)
def active_is_removed(ctx: CheckContext) -> None:
    if (given := active_of(ctx)) in (found := voters(ctx)):
        raise Unmet(f"Controller {given} is still one of the voters: {named(found)}. Did the tool say that it was removed?")


@removed.requires("It was active when you removed it", after=active_is_removed)
def it_resigned(ctx: CheckContext) -> None:
    if RESIGNED not in ctx.cluster.logs(given := active_of(ctx)):
        raise Unmet(
            f"By its log, controller {given} never resigned because it was removed. Which one was active? The cells of part 1 "
            "add another controller, if you need one more to remove."
        )


@removed.requires("Three controllers vote", after=active_is_removed)
def three_vote(ctx: CheckContext) -> None:
    if len(found := voters(ctx)) != 3:
        raise Unmet(
            f"{counted(len(found), 'controller')} can vote: {named(found)}. How many can die then? Part 1's cells add one."
        )


# -- a majority -------------------------------------------------------------------------------------------------------

majority = lab.add_check(
    "12_majority_back",
    "Lose the majority, and get it back",
    hints=(
        "Kill the active controller first, then another voter, and wait until view.controller is None.",
        "Two of three voters are a majority. Which verb brings a dead node back, with its data?",
        "restart brings a dead node back, and returns when a controller is active and the node has its log.",
    ),
)


@majority.requires("Two controllers were killed")
def two_were_killed(ctx: CheckContext) -> None:
    killed = sorted(set(faulted(ctx, "kill")))
    if len(controllers := [i for i in killed if not nodes(ctx)[i].address]) < 2:
        raise Unmet(f"You killed {counted(len(controllers), 'controller')}. One voter of three may die, and two are left.")


@majority.requires("A controller is active again", after=two_were_killed)
def one_is_active(ctx: CheckContext) -> None:
    if governed(ctx) is None:
        up = [i for i, node in nodes(ctx).items() if not node.address and node.state == "up"]
        raise Unmet(f"No controller is active. Of the controllers, {named(up)} run. What does an election need?")


# -- the ledger -------------------------------------------------------------------------------------------------------

ledger = lab.add_check(
    "12_quorum_ledger",
    "Find every acknowledged record",
    hints=(
        "The producer goes on all the time. Stop it when a controller is active again.",
        "Give check() your ledger, as ledgers={'payments': ledger}.",
    ),
)
ledger.requires("Two controllers were killed")(two_were_killed)
went_on = ledger.requires("The producer wrote before the first change, and after the last", after=two_were_killed)(
    wrote_throughout(TOPIC, "add", "kill", "restart")
)
ledger.requires("No lost write, no duplicate, and no record that failed", after=went_on)(is_complete(TOPIC))

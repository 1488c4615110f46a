"""A partition that loses its two replicas one after the other, with eligible leader replicas and without."""

from __future__ import annotations

import re

from kafkalab.checks.brokers import all_up, faulted, has_level, is_down
from kafkalab.checks.context import CheckContext, Unmet
from kafkalab.checks.lab import Lab
from kafkalab.checks.ledgers import ledger_of, require_no, verdict_of
from kafkalab.checks.topics import existing, in_sync
from kafkalab.checks.wording import counted, listed_brokers

__all__ = ["lab"]

SAFE, PLAIN = "safe", "plain"
FEATURE = "eligible.leader.replicas.version"

lab = Lab("12_elr")


def was_lost(ctx: CheckContext) -> None:
    """Raise `Unmet` unless broker 1 was shut down cleanly and stayed down until broker 0 was killed for the last time."""
    faults = ctx.cluster.faults
    if 1 not in faulted(ctx, "stop"):
        raise Unmet("Broker 1 wasn't shut down cleanly yet. A broker that is killed can't say that its log is complete.")
    kills = [n for n, fault in enumerate(faults) if (fault.verb, fault.broker) == ("kill", 0)]
    if not kills:
        raise Unmet("Broker 0 wasn't killed yet.")
    before = [fault.verb for fault in faults[: kills[-1]] if fault.broker == 1]
    if before[-1:] != ["stop"]:
        raise Unmet(
            "Broker 0 was killed before broker 1 was shut down cleanly. Which of the two was in the ISR last? Restart both, "
            "wait until they are in sync, and lose them again."
        )


# -- with -------------------------------------------------------------------------------------------------------------

with_elr = lab.add_check(
    "12_elr",
    "Elect an eligible leader replica",
    hints=(
        "Two verbs end a broker: one shuts it down cleanly, one doesn't. You need both here, one for each broker.",
        "Wait between them: the ISR has to lose broker 1 before broker 0 dies. cluster.wait_for(lambda view: …) waits.",
        "kafka-topics.sh shows the eligible leader replicas of a partition after Elr. LastKnownElr is something else.",
        "Only broker 1 comes back in this part.",
    ),
)
with_elr.requires("The cluster uses eligible leader replicas")(has_level(FEATURE, 1))
lost = with_elr.requires("Broker 1 was stopped, and broker 0 killed after that")(was_lost)
still_down = with_elr.requires("Broker 0 is still down", after=lost)(is_down(0))


@with_elr.requires("Broker 1 leads safe, though it wasn't in the ISR when broker 0 died", after=still_down)
def one_leads(ctx: CheckContext) -> None:
    [partition] = existing(ctx, SAFE)
    if partition.leader is None:
        eligible = ctx.cluster.eligible_leaders(SAFE)[0]
        raise Unmet(f"{SAFE} has no leader; its ELR is {list(eligible)}. Is one of these brokers up?")
    if partition.leader != 1:
        raise Unmet(f"Broker {partition.leader} leads {SAFE}. Which of its two brokers should be back?")


@with_elr.requires("You read the ELR of safe while both brokers were down", after=still_down)
def elr_was_read(ctx: CheckContext) -> None:
    told = ctx.answer("eligible", str | list[object], "the brokers in the ELR that kafka-topics.sh shows")  # type: ignore[arg-type]
    given = {int(broker) for broker in re.findall(r"\d+", told if isinstance(told, str) else " ".join(map(str, told)))}
    [partition] = existing(ctx, SAFE)
    if strangers := given - set(partition.replicas):
        where = listed_brokers(sorted(strangers))
        raise Unmet(f"{SAFE} has no replica on {where}. Can a broker without its records be eligible?")
    # A broker that was elected from the ELR is in the ISR since then.
    if given != {*ctx.cluster.eligible_leaders(SAFE)[0], *partition.isr}:
        raise Unmet(f"The ELR wasn't {sorted(given)}. Look at Elr: in what kafka-topics.sh printed, not at LastKnownElr:.")


# -- without ----------------------------------------------------------------------------------------------------------

without_elr = lab.add_check(
    "12_without_elr",
    "Do the same without eligible leader replicas",
    hints=(
        "The functions of part 1 take the topic's name.",
        "When both brokers are lost, restart the one that you stopped, and look who leads.",
    ),
)
is_off = without_elr.requires("The cluster doesn't use eligible leader replicas")(has_level(FEATURE, 0))
was_lost_again = without_elr.requires("Broker 0 is down", after=is_off)(is_down(0))


@without_elr.requires("Broker 1 is up, and plain has no leader", after=was_lost_again)
def nobody_leads(ctx: CheckContext) -> None:
    [partition] = existing(ctx, PLAIN)
    if (state := ctx.cluster.describe(groups=False).brokers[1].state) != "up":
        raise Unmet(f"Broker 1 is {state}. A broker that is down can't lead, with ELR or without.")
    if partition.leader is not None:
        raise Unmet(
            f"Broker {partition.leader} leads {PLAIN}. Had broker 1 left the ISR before broker 0 died, and was the feature "
            "off by then?"
        )


# -- what is left -----------------------------------------------------------------------------------------------------

ledger = lab.add_check(
    "12_elr_ledger",
    "Find every acknowledged record",
    hints=(
        "Restart the broker that is down. Its replicas catch up after that.",
        'cluster.wait_for(lambda view: view.in_sync(["safe", "plain"]), …) waits for both topics.',
    ),
)
everybody = ledger.requires("All nodes are up")(all_up)


@ledger.requires("Both topics are in sync, without a lost write", after=everybody)
def nothing_is_lost(ctx: CheckContext) -> None:
    for topic in (SAFE, PLAIN):
        in_sync(topic)(ctx)
        written = ledger_of(ctx, topic)
        if len(written.entries) < 50:
            raise Unmet(f"The ledger of {topic} has {counted(len(written.entries), 'record')}, not 50. Did you fill it?")
        require_no(verdict_of(written, ctx.values(topic), topic), "lost write", topic, "Who was elected, and from what?")

"""Three brokers that change their version under load, and feature levels that are raised afterwards."""

from __future__ import annotations

from itertools import pairwise

from kafkalab.checks.brokers import all_up, are_up, faulted
from kafkalab.checks.context import CheckContext, Unmet
from kafkalab.checks.lab import Lab
from kafkalab.checks.ledgers import is_complete, ledger_of, wrote_throughout
from kafkalab.checks.topics import in_sync
from kafkalab.checks.wording import START_OVER
from kafkalab.errors import DowngradeRefused

__all__ = ["lab"]

TOPIC, FEATURE = "payments", "metadata.version"
BROKERS = (0, 1, 2)
LEVEL = 30
"""The level of `FEATURE` that came with Kafka 4.3."""

lab = Lab("12_rolling_upgrade")

# -- new software -----------------------------------------------------------------------------------------------------

brokers = lab.add_check(
    "12_upgrade_brokers",
    "Upgrade three brokers under load",
    hints=(
        "`change` has two steps. `restart` returns before the broker's replicas have caught up.",
        "cluster.wait_for(lambda view: view.in_sync(TOPIC), …) waits for complete ISRs.",
        "A loop over the three ids does it, broker 0 among them. Sort them so that the active controller comes last.",
    ),
)


@brokers.requires("Each of the three brokers was restarted")
def all_were_restarted(ctx: CheckContext) -> None:
    restarted = faulted(ctx, "restart")
    if missing := [broker for broker in BROKERS if broker not in restarted]:
        raise Unmet(f"Broker {missing[0]} was never restarted. A broker changes its version when it starts.")


@brokers.requires("All three are up, with the software of Kafka 4.3", after=all_were_restarted)
def all_are_new(ctx: CheckContext) -> None:
    are_up(*BROKERS)(ctx)
    for broker, features in ctx.cluster.features().items():
        if (found := features.supported[FEATURE]) < LEVEL:
            raise Unmet(
                f"The software of broker {broker} supports {FEATURE} up to level {found}, and that of Kafka 4.3 up to {LEVEL}. "
                "With which version did you restart it last?"
            )


brokers.requires("All replicas of payments are in sync", after=all_are_new)(in_sync(TOPIC))


# -- the ledger -------------------------------------------------------------------------------------------------------

ledger = lab.add_check(
    "12_upgrade_ledger",
    "Find every acknowledged record",
    hints=(
        "The producer must have written all the time: before the first restart, between two of them, and after the last.",
        "A producer with acks='all' and idempotence sends a record again until it's acknowledged, and makes no duplicate.",
    ),
)
ledger.requires("Each of the three brokers was restarted")(all_were_restarted)
load_went_on = ledger.requires("The producer wrote before the first restart, and after the last", after=all_were_restarted)(
    wrote_throughout(TOPIC, "restart")
)


@ledger.requires("The producer also wrote between two restarts", after=load_went_on)
def went_one_by_one(ctx: CheckContext) -> None:
    last = {fault.broker: fault.at for fault in ctx.cluster.faults if fault.verb == "restart" and fault.broker in BROKERS}
    acknowledged = [entry.at for entry in ledger_of(ctx, TOPIC).entries]
    for one, other in pairwise(sorted(last, key=last.__getitem__)):
        if not any(last[one] < at < last[other] for at in acknowledged):
            raise Unmet(
                f"The producer wrote nothing between the restarts of brokers {one} and {other}. Did you wait for complete "
                f"ISRs? {START_OVER}"
            )


ledger.requires("No lost write, no duplicate, and no record that failed", after=load_went_on)(is_complete(TOPIC))

# -- new levels -------------------------------------------------------------------------------------------------------

levels = lab.add_check(
    "12_upgrade_levels",
    "Raise the feature levels",
    hints=(
        "kafka-features.sh has a command upgrade. It takes the levels of a release, or one feature's level.",
        "In a notebook a line that begins with ! runs in a shell, and {cluster.bootstrap_servers} stands for the addresses.",
    ),
)


@levels.requires("The cluster uses the metadata.version of Kafka 4.3")
def level_is_raised(ctx: CheckContext) -> None:
    for broker, features in ctx.cluster.features().items():
        if (found := features.finalized[FEATURE]) < LEVEL:
            raise Unmet(
                f"Broker {broker} says that level {found} of {FEATURE} is finalized, and that of Kafka 4.3 is {LEVEL}. New "
                "software doesn't raise it. Which command does?"
            )


@levels.requires("All three brokers are up", after=level_is_raised)
def all_are_up(ctx: CheckContext) -> None:
    are_up(*BROKERS)(ctx)
    all_up(ctx)


@levels.requires("You know why no broker can go back to 4.2.1", after=level_is_raised)
def way_back_is_closed(ctx: CheckContext) -> None:
    given = ctx.answer("outcome", object, "the error that the restart with 4.2.1 ended with")
    if not isinstance(given, DowngradeRefused):
        kind = f"a {type(given).__name__}" if isinstance(given, Exception) else f"{given!r}, which is no error"
        raise Unmet(f"`outcome` is {kind}. Restart broker 2 with 4.2.1, and catch what `restart` raises. What does it say?")

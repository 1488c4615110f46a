"""A leader cut off from its peers: what it acknowledges, and what is lost."""

from __future__ import annotations

from kafkalab.checks.brokers import all_up, faulted, isolated
from kafkalab.checks.context import CheckContext, Unmet
from kafkalab.checks.lab import Lab
from kafkalab.checks.topics import has_shape, in_sync
from kafkalab.checks.wording import START_OVER, counted

__all__ = ["lab"]

TOPIC = "letters"
LETTER = "letter with acks=1"
FEWEST = 100  # acknowledged records that the ledger needs before the isolation

lab = Lab("02_isolated")

check = lab.add_check(
    "02_isolated",
    "Cut a leader off from its peers",
    hints=(
        "isolate cuts a broker off from its peers and from the controller; heal undoes it.",
        "send_to_isolated(acks) uses a producer that already knows the leader. Call it right after isolate.",
        "A message is lost if it was acknowledged but isn't among the values that a consumer can read.",
    ),
)
is_shaped = check.requires("letters has 3 partitions with 3 replicas each")(has_shape(TOPIC, 3, 3))


@check.requires("A broker was isolated and healed, and all brokers are up")
def was_isolated_and_healed(ctx: CheckContext) -> None:
    if not faulted(ctx, "isolate"):
        verbs = ", ".join(sorted({f.verb for f in ctx.cluster.faults}))
        raise Unmet(
            f"No broker was isolated{f' (only: {verbs})' if verbs else ''}. An isolated broker runs, and clients reach it."
        )
    if cut_off := isolated(ctx):
        raise Unmet(f"Broker {cut_off[0]} is still cut off.")
    all_up(ctx)


check.requires("All replicas of letters are in sync", after=(is_shaped, was_isolated_and_healed))(in_sync(TOPIC))


def report(ctx: CheckContext, name: str) -> str:
    """Return what the learner read in a delivery report."""
    return ctx.answer(name, str, "what the delivery report said: the error's name, or 'acknowledged'")


@check.requires("With acks=all the isolated leader didn't acknowledge", after=was_isolated_and_healed)
def all_was_not_acknowledged(ctx: CheckContext) -> None:
    match report(ctx, "with_all"):
        case "acknowledged":
            raise Unmet(
                "With acks=all an isolated leader can't acknowledge anything. Did you send the letter to the isolated broker, "
                "while it was isolated?"
            )
        case "REQUEST_TIMED_OUT" | "_MSG_TIMED_OUT" | "_TIMED_OUT":
            return
        case other:
            raise Unmet(
                f"A leader that waits in vain for its followers doesn't answer {other!r}. What did your delivery report say?"
            )


@check.requires("With acks=1 it did, and that message is lost", after=(is_shaped, was_isolated_and_healed))
def one_was_lost(ctx: CheckContext) -> None:
    if report(ctx, "with_one") != "acknowledged":
        raise Unmet(
            "With acks=1 the leader waits for nobody. Did you send the letter to the isolated broker, by its own address?"
        )
    lost = ctx.answer("lost", list[str], "the values that were acknowledged but aren't in the topic")
    there = ctx.values(TOPIC)
    if found := [value for value in lost if value in there]:
        raise Unmet(f"{found[0]!r} isn't lost: it's in the topic. {START_OVER}")
    if others := [value for value in lost if value != LETTER]:
        raise Unmet(f"{others[0]!r} isn't a letter that the isolated broker acknowledged. Look for the lost ones in `by_hand`.")


@check.requires("Nothing that was acknowledged with acks=all is lost", after=(is_shaped, was_isolated_and_healed))
def nothing_else_was_lost(ctx: CheckContext) -> None:
    acknowledged = ctx.answer("acknowledged", list[str], "the values that were acknowledged with acks=all")
    if len(acknowledged) < FEWEST:
        raise Unmet(
            f"The ledger has {counted(len(acknowledged), 'message')}. It should run before, during and after the isolation."
        )
    there = set(ctx.values(TOPIC))
    if lost := [value for value in acknowledged if value not in there]:
        raise Unmet(
            f"{counted(len(lost), 'acknowledged message')} can't be found, the first one is {lost[0]!r}. Which acks did that "
            "producer use?"
        )

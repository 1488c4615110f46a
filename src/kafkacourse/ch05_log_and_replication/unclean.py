"""A leader elected out of sync, or not: who leads while the old leader is down, and what is lost when it returns."""

from __future__ import annotations

from kafkalab.checks.brokers import DOWN, DOWN_VERBS, all_up, are_up, faulted, nodes
from kafkalab.checks.context import CheckContext, Unmet
from kafkalab.checks.lab import Lab
from kafkalab.checks.topics import has_shape, in_sync, shaped
from kafkalab.checks.wording import counted

__all__ = ["lab"]

CAREFUL, DARING, BY_HAND = TOPICS = ("careful", "daring", "by-hand")
SETTING = "unclean.leader.election.enable"
ALONE, ON_BOTH = 10, 5
AGAIN = "Run the cells again from section 1 on: they bring both brokers back and begin with new topics."

lab = Lab("05_unclean")

# -- one waits, one goes on -------------------------------------------------------------------------------------------

election = lab.add_check(
    "05_unclean",
    "Wait for a leader, or elect one that lacks records",
    hints=(
        "kill(1), wait for the ISR, send; then kill(0) and restart(1). The order matters.",
        "view.topics[topic][0] has .isr and .leader. cluster.wait_for(lambda view: …) waits for what you need to see.",
        "kafka-leader-election.sh takes --election-type, --topic and --partition. Ask broker 1: broker 0 is down.",
    ),
)


def settings_differ(ctx: CheckContext) -> None:
    """Raise `Unmet` unless one topic allows an unclean election, and two don't."""
    for topic in TOPICS:
        shaped(ctx, topic, 1, 2)
        found, wanted = ctx.topic_config(topic)[SETTING], "true" if topic == DARING else "false"
        if found != wanted:
            raise Unmet(f"{SETTING} of {topic} is {found}. Which of the three topics may elect a leader that isn't in sync?")


are_set = election.requires("Only daring may elect a leader that isn't in sync")(settings_differ)


def ended_since_all_were_up(ctx: CheckContext) -> list[int]:
    """Return the brokers that went down since both were last up, in order. What an earlier attempt did doesn't count."""
    down: list[int] = []
    ended: list[int] = []
    for fault in ctx.cluster.faults:
        if fault.verb in DOWN_VERBS:
            ended.append(fault.broker)
            down.append(fault.broker)
        elif fault.verb == "restart" and fault.broker in down:
            down.remove(fault.broker)
            ended = ended if down else []
    return ended


@election.requires("The follower died first, and then the leader; only the follower is back")
def only_the_follower_is_back(ctx: CheckContext) -> None:
    ended = ended_since_all_were_up(ctx)
    if not ended:
        raise Unmet("No broker has been down since both were last up. Which one dies first?")
    if ended[0] != 1:
        raise Unmet(f"Broker {ended[0]} went down first. The leader has to outlive its follower for a while. {AGAIN}")
    states = nodes(ctx)
    if states[0].state not in DOWN:
        raise Unmet(f"Broker 0 is {states[0].state}. It should be down while you look who leads.")
    are_up(1)(ctx)


@election.requires("careful waits without a leader", after=(are_set, only_the_follower_is_back))
def careful_waits(ctx: CheckContext) -> None:
    if (leader := shaped(ctx, CAREFUL, 1, 2)[0].leader) is not None:
        raise Unmet(f"Broker {leader} leads {CAREFUL}, though it lacks records. Who elected it? {AGAIN}")


@election.requires("daring and by-hand are led by the replica that lacks records", after=(are_set, only_the_follower_is_back))
def others_are_led(ctx: CheckContext) -> None:
    if shaped(ctx, DARING, 1, 2)[0].leader != 1:
        raise Unmet(f"{DARING} has no leader. Did the controller have time to notice that broker 1 is back?")
    if shaped(ctx, BY_HAND, 1, 2)[0].leader != 1:
        raise Unmet(f"{BY_HAND} has no leader. Its setting doesn't allow an election, so somebody has to ask for one.")
    for topic in (DARING, BY_HAND):
        if (end := ctx.end_offsets(topic)[0]) >= ON_BOTH + ALONE:
            raise Unmet(
                f"The log of {topic} ends at {end}, so broker 1 lacks nothing. Did you wait until broker 0 was alone in the "
                f"ISR before you sent the ten records? {AGAIN}"
            )


# -- what was lost ----------------------------------------------------------------------------------------------------

loss = lab.add_check(
    "05_unclean_lost",
    "Find what the election cost",
    hints=(
        "ledger[topic] holds the values that were acknowledged, and read(topic) returns those that are there.",
        "set(a) - set(b) has what is in a and not in b.",
    ),
)


@loss.requires("Both brokers were down, and are back in sync")
def both_are_back(ctx: CheckContext) -> None:
    if missing := sorted({0, 1} - set(faulted(ctx, *DOWN_VERBS))):
        raise Unmet(f"Broker {missing[0]} hasn't been down so far.")
    all_up(ctx)
    for topic in TOPICS:
        has_shape(topic, 1, 2)(ctx)
        in_sync(topic)(ctx)


def lost_of(ctx: CheckContext, topic: str) -> int:
    """Return how many acknowledged records of a topic are missing."""
    ledger = ctx.answer("ledger", dict[str, list[str]], "{topic: values that were acknowledged}")
    if topic not in ledger:
        raise Unmet(f"`ledger` has no {topic!r}.")
    if len(ledger[topic]) < ON_BOTH + ALONE:
        raise Unmet(
            f"`ledger` has {counted(len(ledger[topic]), 'record')} of {topic}. Five went to both replicas, and ten to broker 0 "
            "alone."
        )
    return len(set(ledger[topic]) - set(ctx.values(topic)))


@loss.requires("careful lost nothing, daring and by-hand lost acknowledged records", after=both_are_back)
def waiting_saved_all(ctx: CheckContext) -> None:
    if lost := lost_of(ctx, CAREFUL):
        raise Unmet(f"{CAREFUL} lacks {counted(lost, 'acknowledged record')}. Who led it while broker 0 was down? {AGAIN}")
    for topic in (DARING, BY_HAND):
        if not lost_of(ctx, topic):
            raise Unmet(
                f"{topic} lost nothing. Was broker 1 down while you sent the ten records, and who led when broker 0 was? "
                f"{AGAIN}"
            )


@loss.requires("You counted what was lost", after=waiting_saved_all)
def counts_are_right(ctx: CheckContext) -> None:
    lost = ctx.answer("lost", dict[str, int], "{topic: acknowledged records that aren't there}")
    for topic in TOPICS:
        if topic not in lost:
            raise Unmet(f"`lost` has no {topic!r}.")
        if lost[topic] != lost_of(ctx, topic):
            raise Unmet(
                f"`lost[{topic!r}]` is {lost[topic]}. Compare the values in the ledger with those in the topic once more."
            )

"""What an acknowledgement guarantees, what `min.insync.replicas` rejects, and how retries affect duplicates and order."""

from __future__ import annotations

from collections import Counter

from kafkalab.checks.brokers import are_up, faulted, isolated, was_down_and_came_back
from kafkalab.checks.context import CheckContext, Unmet, text_of
from kafkalab.checks.lab import Lab
from kafkalab.checks.ledgers import ledger_of
from kafkalab.checks.topics import existing, filled
from kafkalab.checks.wording import counted

__all__ = ["lab"]

lab = Lab("03_durability")

ACKS = ("acks-0", "acks-1", "acks-all")

check = lab.add_check(
    "03_durability",
    "What an acknowledgement is worth",
    hints=(
        "cluster.wait_for(lambda view: view.moved_from(ledgers, 0), 'leaders') waits for the new leaders.",
        "ledger.wait_for(ledger.acknowledged + 200, timeout=30) waits for 200 more. With acks=all none will come before "
        "broker 0 is healed.",
        "Counter(values(name)) says how often each value is in the topic.",
    ),
)


@check.requires("Broker 0 was cut off, and reached again")
def was_isolated(ctx: CheckContext) -> None:
    if 0 not in faulted(ctx, "isolate"):
        raise Unmet("Broker 0 wasn't cut off from the others yet. Which verb does that to a broker that runs on?")
    if 0 in isolated(ctx):
        raise Unmet("Broker 0 is still cut off from the others. Which verb undoes that?")
    are_up(0)(ctx)


def _acknowledged(ctx: CheckContext, topic: str) -> list[str]:
    return [entry.value for entry in ledger_of(ctx, topic).entries]


@check.requires("acks=0 and acks=1 lost acknowledged records, acks=all none", after=was_isolated)
def only_all_kept_all(ctx: CheckContext) -> None:
    for topic in ACKS:
        lost = len(set(_acknowledged(ctx, topic)) - {text_of(m) for m in filled(ctx, topic)})
        if topic == "acks-all" and lost:
            raise Unmet(f"{topic} lacks {counted(lost, 'acknowledged record')}. Does its ledger send with acks='all'?")
        if topic != "acks-all" and not lost:
            raise Unmet(
                f"{topic} lost nothing. Did it get acknowledgements while broker 0 was cut off and no longer led? To try "
                "again, run from the cell that starts the three ledgers."
            )


def _counts(ctx: CheckContext, name: str) -> dict[str, int]:
    counts = ctx.answer(name, dict[str, int], "{'acks-0': …, 'acks-1': …, 'acks-all': …}")
    if missing := [topic for topic in ACKS if topic not in counts]:
        raise Unmet(f"`{name}` has no {missing[0]!r}.")
    return counts


@check.requires("You counted the lost records", after=only_all_kept_all)
def lost_are_counted(ctx: CheckContext) -> None:
    given = _counts(ctx, "lost")
    for topic in ACKS:
        there = {text_of(m) for m in filled(ctx, topic)}
        if given[topic] != sum(value not in there for value in _acknowledged(ctx, topic)):
            raise Unmet(f"`lost[{topic!r}]` is {given[topic]}. Which values of the ledger did you look for, and where?")


@check.requires("You counted the duplicates", after=only_all_kept_all)
def duplicates_are_counted(ctx: CheckContext) -> None:
    given = _counts(ctx, "duplicates")
    for topic in ACKS:
        there = Counter(text_of(m) for m in filled(ctx, topic))
        if given[topic] != sum(number > 1 for number in there.values()):
            found = f"`duplicates[{topic!r}]` is {given[topic]}"
            raise Unmet(f"{found}. How many different values come more than once in the topic?")


FULL = "needs-all-three"

all_in_sync = lab.add_check(
    "03_all_in_sync",
    "A topic that asks for all three",
    hints=(
        "Producer(cluster.client_config(acks=acks, retries=0)) makes a producer that doesn't try again.",
        "The client passes the error to your delivery report, or None. Append error.name() to a list, flush, and look into it.",
    ),
)


@all_in_sync.requires("needs-all-three needs three replicas in sync")
def all_three_are_needed(ctx: CheckContext) -> None:
    existing(ctx, FULL)
    if (needed := ctx.topic_config(FULL)["min.insync.replicas"]) != "3":
        raise Unmet(f"{FULL} has min.insync.replicas={needed}. What does the text ask for?")


came_back = was_down_and_came_back(2)
all_in_sync.requires("Broker 2 was down and came back")(came_back)


@all_in_sync.requires("You know what a producer hears with each setting of acks", after=(all_three_are_needed, came_back))
def outcomes_are_known(ctx: CheckContext) -> None:
    given = ctx.answer("outcomes", dict[str | int, str | None], "{'all': …, 1: …, 0: …}")
    outcomes = {str(acks): outcome for acks, outcome in given.items()}
    if missing := [acks for acks in ("all", "1", "0") if outcomes.get(acks) is None]:
        found = f"`outcomes` has nothing for acks={missing[0]}"
        raise Unmet(f"{found}. It should have the name of the error, or 'acknowledged'.")
    match outcomes["all"]:
        case "NOT_ENOUGH_REPLICAS":
            pass
        case "_MSG_TIMED_OUT":
            raise Unmet("With acks=all the time ran out. What did the broker say before? Does your producer try again?")
        case "acknowledged":
            raise Unmet("acks=all was acknowledged. Was broker 2 out of the ISR, and did the producer get your setting?")
        case other:
            raise Unmet(f"With acks=all you heard {other!r}. error.name() is Kafka's name for an error.")
    for acks in ("1", "0"):
        if outcomes[acks] != "acknowledged":
            raise Unmet(f"With acks={acks} you heard {outcomes[acks]!r}. Did the producer get acks={acks}?")


@all_in_sync.requires("What was acknowledged is there, what was rejected is not", after=(all_three_are_needed, came_back))
def accepted_are_there(ctx: CheckContext) -> None:
    values = {text_of(m) for m in filled(ctx, FULL)}
    if "acks=all" in values:
        raise Unmet(f"'acks=all' is in {FULL}. Did you send it while broker 2 was down, and never again?")
    for value in ("acks=1", "acks=0"):
        if value not in values:
            raise Unmet(f"{FULL} has no {value!r}. Is that the value you sent, and is every ISR complete again?")


order = lab.add_check(
    "03_order",
    "Retries, duplicates and order",
    hints=(
        "send_five takes more settings as keywords, with underscores for dots.",
        "The setting is called enable.idempotence. librdkafka has it off by default.",
    ),
)


@order.requires("Without idempotence, there are duplicates and the order is broken")
def hasty_is_a_mess(ctx: CheckContext) -> None:
    values = [text_of(m) for m in filled(ctx, "hasty")]
    if set(values) != set("012345"):
        raise Unmet(f"hasty holds {' '.join(values)}. Did you send 0 to 5 with send_five?")
    if len(values) == len(set(values)):
        raise Unmet("hasty has no duplicate. Did you send it with idempotence, too?")
    if values == sorted(values):
        raise Unmet("hasty is in order. How many requests may be in flight at once?")


@order.requires("With it, each record is there once and in order")
def idempotent_is_in_order(ctx: CheckContext) -> None:
    values = [text_of(m) for m in filled(ctx, "idempotent")]
    if len(values) > len(set(values)):
        raise Unmet(f"idempotent holds {' '.join(values)}. Which setting lets the broker recognize a batch it already has?")
    if values != list("012345"):
        raise Unmet(f"idempotent holds {' '.join(values)}. Did you send 0 to 5 with send_five, each once?")

"""What a dead leader costs with each kind of acknowledgement, on a quiet day and at the worst moment."""

from __future__ import annotations

from collections import Counter

from kafkalab.checks.brokers import all_up, faulted
from kafkalab.checks.context import CheckContext, Unmet, text_of
from kafkalab.checks.lab import Lab
from kafkalab.checks.ledgers import ledger_of
from kafkalab.checks.topics import filled
from kafkalab.checks.wording import counted

__all__ = ["lab"]

TOPICS = tuple(f"{story}-{way}" for story in ("plain", "worst") for way in ("acks-0", "acks-1", "acks-all", "idempotent"))
FEWEST = 100

lab = Lab("03_ledger")

check = lab.add_check(
    "03_ledger",
    "What a dead leader costs",
    hints=(
        "cluster.wait_for(lambda view: view.moved_from(topics, 0), 'leaders') waits for new leaders; more(…) waits for the "
        "producers.",
        "In the second story: cluster.pause(1), copied('worst-acks-all', 2), cluster.pause(2), more('worst-acks-1'), "
        "cluster.kill(0), then resume 2 and 1 without delay.",
        "Count the copies first: written.groupBy('topic', 'value').count(). Then join with acknowledged on topic and "
        "value, 'full', so that both sides keep all their rows.",
        "F.count_if(condition) counts the rows for which it holds. A side without a partner is null.",
    ),
)


@check.requires("The leader was killed in both stories, and came back")
def killed_twice(ctx: CheckContext) -> None:
    kills = faulted(ctx, "kill").count(0)
    if kills < 2:
        raise Unmet(f"Broker 0, the leader, was killed {counted(kills, 'time')}. In how many stories does it die?")
    all_up(ctx)


@check.requires("The second time, both followers were behind", after=killed_twice)
def both_were_frozen(ctx: CheckContext) -> None:
    faults = [(fault.verb, fault.broker) for fault in ctx.cluster.faults]
    last_kill = len(faults) - 1 - faults[::-1].index(("kill", 0))
    frozen: list[int] = []
    for verb, broker in faults[:last_kill]:
        if verb == "pause":
            frozen.append(broker)
        elif broker in frozen:
            frozen.remove(broker)
    if awake := [broker for broker in (1, 2) if broker not in frozen]:
        raise Unmet(f"Broker {awake[0]} wasn't frozen when broker 0 was killed for the last time. Which verb freezes a broker?")
    if frozen != [1, 2]:
        raise Unmet("Broker 2 was frozen before broker 1. Which of them should have more records when the leader dies?")


def _table(ctx: CheckContext) -> dict[str, tuple[int, int]]:
    table = ctx.answer("table", dict[str, tuple[int, int]], "{topic: (lost, duplicates)}")
    if missing := [topic for topic in TOPICS if topic not in table]:
        raise Unmet(f"`table` has no {missing[0]!r}.")
    return table


@check.requires("Your table agrees with the ledgers and the topics", after=killed_twice)
def table_is_right(ctx: CheckContext) -> None:
    table = _table(ctx)
    for topic in TOPICS:
        there = Counter(text_of(m) for m in filled(ctx, topic))
        told = {entry.value for entry in ledger_of(ctx, topic).entries}
        if len(told) < FEWEST:
            raise Unmet(f"The ledger of {topic} has {counted(len(told), 'record')}. Did it go on before and after the kill?")
        lost, duplicates = table[topic]
        if lost != len(told - there.keys()):
            raise Unmet(
                f"`table` says that {topic} lost {lost}. Compare the ledger with the topic: which values are acknowledged and "
                "not there? And had the producers stopped?"
            )
        if duplicates != sum(number > 1 for number in there.values()):
            raise Unmet(f"`table` has {counted(duplicates, 'duplicate')} in {topic}. Which values come more than once in it?")


@check.requires("Acknowledged by all, no record is lost; by the leader alone, records are", after=table_is_right)
def only_all_kept_all(ctx: CheckContext) -> None:
    table = _table(ctx)
    for topic, (lost, _) in table.items():
        if topic.endswith(("all", "idempotent")) and lost:
            raise Unmet(f"{topic} lost {lost}, but every in-sync replica had them. Had the producers stopped when you counted?")
    for topic in ("worst-acks-0", "worst-acks-1"):
        if not table[topic][0]:
            raise Unmet(
                f"{topic} lost nothing. Did the leader alone acknowledge records before it died, and did you resume the others "
                "only after that?"
            )


@check.requires("Retries make duplicates, but not with idempotence", after=table_is_right)
def only_retries_duplicate(ctx: CheckContext) -> None:
    table = _table(ctx)
    if not table["worst-acks-all"][1]:
        raise Unmet(
            "worst-acks-all has no duplicate. Was there a time when broker 2 still copied and broker 1 didn't, so that records "
            "were copied but not acknowledged?"
        )
    for topic in ("plain-idempotent", "worst-idempotent"):
        if duplicates := table[topic][1]:
            raise Unmet(f"{topic} has {counted(duplicates, 'duplicate')}. Did you start its producer as the notebook does?")

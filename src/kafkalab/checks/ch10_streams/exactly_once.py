"""Two applications killed while they forward records: one writes duplicates, the other doesn't."""

from __future__ import annotations

from collections import Counter

from kafkalab.checks.context import CheckContext, Unmet
from kafkalab.checks.lab import Notebook
from kafkalab.checks.ledgers import is_complete, ledger_of
from kafkalab.checks.lives import in_transactions, lived_twice
from kafkalab.checks.wording import counted, quoted

__all__ = ["notebook"]

SOURCE = "tolls"
REPEATED, EXACT = "passed_at_least_once", "passed_exactly_once"

notebook = Notebook("10_exactly_once", difficulty="medium", minutes=40, needs="chapter 10, sections 1 and 2")

lab = notebook.check(
    "10_exactly_once",
    "Kill two applications, and count what they did twice",
    hints=(
        "A setting of Kafka Streams is a keyword of StreamsApp, with underscores for dots.",
        "Kill both while the ledger's producer goes on: written(topic) says how much they have passed on so far.",
        "start() of an application that was killed begins a new life, with the same settings.",
        "A record that is there three times is there twice too often. Counter(values) says how often each is there.",
    ),
)
ledger_is_complete = lab.requires(f"{SOURCE} has every record of the ledger, once")(is_complete(SOURCE))


@lab.requires("Both applications had two lives, and passed records on in each", after=ledger_is_complete)
def both_lived_twice(ctx: CheckContext) -> None:
    for topic in (REPEATED, EXACT):
        lived_twice(ctx, topic)


def _sent(ctx: CheckContext) -> set[str]:
    return {entry.value for entry in ledger_of(ctx, SOURCE).entries}


def _nothing_lost(ctx: CheckContext, topic: str) -> Counter[str]:
    """Count each value in a topic. Raise `Unmet` unless it has every record of the ledger."""
    sent, found = _sent(ctx), Counter(ctx.values(topic))
    if missing := sent - set(found):
        raise Unmet(
            f"{topic} lacks {counted(len(missing), 'record')} of the ledger's {len(sent)}. Has the application read to the end "
            "since it was started again?"
        )
    return found


@lab.requires(f"{REPEATED} has all of them, and some more than once", after=both_lived_twice)
def some_came_again(ctx: CheckContext) -> None:
    if max(_nothing_lost(ctx, REPEATED).values()) == 1:
        raise Unmet(
            f"{REPEATED} has each record once. Was its application killed, or did it stop in order? And how often does it "
            "commit? To begin again, restart the kernel."
        )


@lab.requires(f"{EXACT} has each of them once, written in transactions", after=both_lived_twice)
def each_came_once(ctx: CheckContext) -> None:
    value, times = _nothing_lost(ctx, EXACT).most_common(1)[0]
    if times > 1:
        raise Unmet(
            f"{quoted(value)} is in {EXACT} {counted(times, 'time')}. Which guarantee did its application have, in both lives? "
            "To begin again, restart the kernel."
        )
    in_transactions(ctx, EXACT)


@lab.requires("You counted what is there too often", after=(some_came_again, each_came_once))
def duplicates_are_counted(ctx: CheckContext) -> None:
    given = ctx.answer("duplicates", dict[str, int], "topic → how many records are there that the ledger doesn't account for")
    for topic in (REPEATED, EXACT):
        if topic not in given:
            raise Unmet(f"`duplicates` has no {topic!r}.")
        values = ctx.values(topic)
        if given[topic] != len(values) - len(set(values)):
            raise Unmet(
                f"`duplicates[{topic!r}]` is {given[topic]}, which doesn't fit. How many records has {topic}, how many has the "
                "ledger, and had both applications come to the end when you counted?"
            )

"""Two applications killed while they forward records: one writes duplicates, the other doesn't."""

from __future__ import annotations

from kafkalab.checks.context import CheckContext, Unmet
from kafkalab.checks.lab import Lab
from kafkalab.checks.ledgers import is_complete, ledger_of, require_no, verdict_of
from kafkalab.checks.lives import in_transactions, lived_twice
from kafkalab.checks.records import FROM_SECTION_1
from kafkalab.history.verdict import Verdict

__all__ = ["lab"]

SOURCE = "tolls"
REPEATED, EXACT = "passed_at_least_once", "passed_exactly_once"

lab = Lab("10_exactly_once")

check = lab.add_check(
    "10_exactly_once",
    "Kill two applications, and count what they did twice",
    hints=(
        "A setting of Kafka Streams is a keyword of StreamsApp, with underscores for dots.",
        "Kill both while the ledger's producer goes on: written(topic) says how much they have passed on so far.",
        "start() of an application that was killed begins a new life, with the same settings.",
        "Read committed records only, as read does by default. A toll that is there three times is one duplicate, not two.",
    ),
)
ledger_is_complete = check.requires(f"{SOURCE} has every record of the ledger, once")(is_complete(SOURCE))


@check.requires("Both applications had two lives, and passed records on in each", after=ledger_is_complete)
def both_lived_twice(ctx: CheckContext) -> None:
    for topic in (REPEATED, EXACT):
        lived_twice(ctx, topic)


def _verdict(ctx: CheckContext, topic: str) -> Verdict:
    """Compare a topic with the ledger. Raise `Unmet` if there is a lost write."""
    verdict = verdict_of(ledger_of(ctx, SOURCE), ctx.values(topic), topic)
    require_no(verdict, "lost write", topic, "Has the application read to the end since it was started again?")
    return verdict


@check.requires(f"{REPEATED} has no lost write, but duplicates", after=both_lived_twice)
def some_came_again(ctx: CheckContext) -> None:
    if not _verdict(ctx, REPEATED)["duplicate"]:
        raise Unmet(
            f"{REPEATED} has no duplicate. Was its application killed, or did it stop cleanly? And how often does it "
            f"commit? {FROM_SECTION_1}"
        )


@check.requires(f"{EXACT} has no lost write and no duplicate, and was written in transactions", after=both_lived_twice)
def each_came_once(ctx: CheckContext) -> None:
    question = "Which guarantee did its application have, in both lives? " + FROM_SECTION_1
    require_no(_verdict(ctx, EXACT), "duplicate", EXACT, question)
    in_transactions(ctx, EXACT)


@check.requires("You counted the duplicates", after=(some_came_again, each_came_once))
def duplicates_are_counted(ctx: CheckContext) -> None:
    given = ctx.answer("duplicates", dict[str, int], "topic → number of duplicates")
    for topic in (REPEATED, EXACT):
        if topic not in given:
            raise Unmet(f"`duplicates` has no {topic!r}.")
        if given[topic] != len(_verdict(ctx, topic)["duplicate"]):
            raise Unmet(
                f"`duplicates[{topic!r}]` is {given[topic]}, which doesn't fit. Did you count committed records only, and had "
                "both applications come to the end when you counted?"
            )

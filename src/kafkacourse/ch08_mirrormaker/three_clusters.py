"""Prices mirrored through three clusters."""

from __future__ import annotations

from collections import Counter

from kafkacourse.ch08_mirrormaker.copies import AFRESH
from kafkalab.checks.clusters import clusters, has_read_everything_in, naming
from kafkalab.checks.context import CheckContext, Unmet, text_of
from kafkalab.checks.lab import Lab
from kafkalab.checks.topics import existing
from kafkalab.checks.wording import counted

__all__ = ["lab"]

TOPIC, GROUP = "stock-prices", "readers"
PARTITIONS = {"first": 3, "second": 13, "third": 33}

lab = Lab("08_three_clusters")

check = lab.add_check(
    "08_three_clusters",
    "Carry prices through three clusters",
    hints=(
        "MirrorMaker creates a topic only if there is none. Create the topics with NewTopic before it starts, each with an "
        "AdminClient of its own cluster.",
        "A flow takes first->second.enabled and first->second.topics. Chapter 08 shows the replication.policy.class that "
        "keeps a topic's name.",
        "Let a consumer of the group readers in each cluster subscribe, consume until it has everything, and then "
        "call consumer.commit(asynchronous=False). All prices of a stock are in one partition, so the last one you read is "
        "the latest.",
    ),
)


def _three(ctx: CheckContext) -> dict[str, CheckContext]:
    return clusters(ctx, "second", "third")


def _contents(ctx: CheckContext) -> Counter[tuple[int, str, str]]:
    """Count the records by partition, key and value."""
    return Counter((m.partition() or 0, (m.key() or b"").decode(), text_of(m)) for m in ctx.records(TOPIC))


@check.requires("stock-prices has 3, 13 and 33 partitions in the first, second and third cluster")
def topics_have_partitions(ctx: CheckContext) -> None:
    for name, each in _three(ctx).items():
        with naming(name):
            found = len(existing(each, TOPIC))
            if found != PARTITIONS[name]:
                why = " Who created the topic there, you or MirrorMaker?" if found == PARTITIONS["first"] else ""
                raise Unmet(f"{TOPIC} has {counted(found, 'partition')}, not {PARTITIONS[name]}.{why} {AFRESH}")


@check.requires("The topic has the same name everywhere", after=topics_have_partitions)
def name_is_the_same(ctx: CheckContext) -> None:
    for name, each in _three(ctx).items():
        if others := [topic for topic in each.view().topics if topic.endswith("." + TOPIC)]:
            raise Unmet(f"In {name}: There is a topic {others[0]!r}. Which replication policy keeps a topic's name?")


@check.requires(
    "The second and the third cluster hold every price of the first one, and nothing else", after=topics_have_partitions
)
def prices_are_everywhere(ctx: CheckContext) -> None:
    wanted = _contents(ctx)
    if not wanted:
        raise Unmet("There are no prices in the first cluster yet.")
    for name, each in _three(ctx).items():
        found = _contents(each)
        if missing := wanted - found:
            partition, key, _ = min(missing)
            raise Unmet(
                f"In {name}: {TOPIC} lacks {counted(missing.total(), 'price')} of the first cluster, one of them of {key} in "
                f"partition {partition}."
            )
        if more := found.keys() - wanted.keys():  # a copy may hold a record twice
            raise Unmet(f"In {name}: {counted(len(more), 'record')} didn't come from the first cluster. Who else writes there?")


@check.requires("The group readers has read and committed everything in each cluster", after=prices_are_everywhere)
def readers_have_read_everything(ctx: CheckContext) -> None:
    for name, each in _three(ctx).items():
        has_read_everything_in(name, each, GROUP, TOPIC)


@check.requires("You know the last price of each stock in all three clusters", after=prices_are_everywhere)
def last_prices_are_known(ctx: CheckContext) -> None:
    latest = ctx.answer("latest", dict[str, dict[str, str]], "cluster → stock → its last price, as the record's value has it")
    for name, each in _three(ctx).items():
        wanted = {(m.key() or b"").decode(): text_of(m) for m in each.records(TOPIC)}
        if wrong := [stock for stock in sorted(wanted) if latest.get(name, {}).get(stock) != wanted[stock]]:
            raise Unmet(f"For {name}, your price of {wrong[0]} isn't the last one. Did the consumer read to the end?")
        if more := sorted(latest[name].keys() - wanted.keys()):
            raise Unmet(f"For {name}, your answer names {more[0]!r}, which isn't a stock there.")

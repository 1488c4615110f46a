"""Two clusters that mirror each other: with topic names that show a record's origin, and without."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from kafkacourse.ch08_mirrormaker.copies import AFRESH, no_copy_of_a_copy, some_of
from kafkalab.checks.clusters import clusters, has_read_everything_in, values_in
from kafkalab.checks.context import CheckContext, Unmet
from kafkalab.checks.lab import Lab
from kafkalab.checks.wording import counted

__all__ = ["lab"]

ORDERS, GROUP = "orders", "all-orders"
ECHO, CALM = "echo", "calm"
ECHOES, SENT = 10, 10

lab = Lab("08_policies")

both_ways = lab.add_check(
    "08_both_ways",
    "Mirror two cities into each other",
    hints=(
        "There are two flows, berlin->tokyo and tokyo->berlin. Name no replication policy, and you get the default one.",
        'A regular expression in a subscription begins with "^": ["^(.*[.])?orders$"]. You can also name the two topics.',
        "to_the_end(consumer, 6) reads two topics of three partitions each if the consumer has enable_partition_eof=True. Call "
        "consumer.commit(asynchronous=False) after it.",
    ),
)


class City(NamedTuple):
    """A city's cluster, and the other city's."""

    name: str
    ctx: CheckContext
    other: str
    other_ctx: CheckContext


def _cities(ctx: CheckContext) -> Iterator[City]:
    (a, first), (b, second) = clusters(ctx, "tokyo").items()
    yield City(a, first, b, second)
    yield City(b, second, a, first)


@both_ways.requires("Each city has the other's orders under the other's name")
def copies_have_the_sources_name(ctx: CheckContext) -> None:
    for city in _cities(ctx):
        wanted = values_in(city.other, city.other_ctx, ORDERS)
        if not wanted:
            raise Unmet(f"In {city.other}: The topic {ORDERS} is empty.")
        found = values_in(city.name, city.ctx, f"{city.other}.{ORDERS}")
        if missing := some_of(set(wanted) - set(found)):
            raise Unmet(f"In {city.name}: {city.other}.{ORDERS} lacks {missing}. Did you wait for the copies?")


@both_ways.requires("No order was copied back", after=copies_have_the_sources_name)
def nothing_was_copied_back(ctx: CheckContext) -> None:
    for city in _cities(ctx):
        no_copy_of_a_copy(city.name, city.ctx)
        values = values_in(city.name, city.ctx, ORDERS)
        if foreign := [value for value in values if not value.startswith(f"{city.name} ")]:
            raise Unmet(f"In {city.name}: The topic {ORDERS} holds {foreign[0]!r}, which wasn't ordered there. {AFRESH}")


@both_ways.requires(
    "The group all-orders has read every order of both cities, in each of them", after=copies_have_the_sources_name
)
def all_orders_were_read(ctx: CheckContext) -> None:
    read = ctx.answer("read", dict[str, list[str]], "city → the values that all-orders read there")
    for city in _cities(ctx):
        copies = f"{city.other}.{ORDERS}"
        wanted = values_in(city.name, city.ctx, ORDERS) + values_in(city.name, city.ctx, copies)
        found = Counter(read.get(city.name, ()))
        if missing := some_of(set(wanted) - set(found)):
            raise Unmet(f"In {city.name}: all-orders didn't read {missing}. Does your subscription match both topics?")
        if twice := sorted(found - wanted):
            raise Unmet(f"In {city.name}: all-orders read {twice[0]!r} more often than it's there.")
        for topic in (ORDERS, copies):
            has_read_everything_in(city.name, city.ctx, GROUP, topic)


loop = lab.add_check(
    "08_loop",
    "Send a record round and round",
    hints=(
        "Which policy keeps a topic's name? replication.policy.class takes the full name of the class, as in chapter 08.",
        "berlin->tokyo.topics and tokyo->berlin.topics can differ.",
        "One direction copies echo|calm, the other one echo.",
    ),
)


@loop.requires("One record of echo has become ten or more in both cities")
def echo_has_many_copies(ctx: CheckContext) -> None:
    for city in _cities(ctx):
        values = values_in(city.name, city.ctx, ECHO)
        if len(values) > 1:
            raise Unmet(f"In {city.name}: {ECHO} holds {len(values)} different values. Send one record only.")
        if values.total() < ECHOES:
            raise Unmet(
                f"In {city.name}: {ECHO} holds {counted(values.total(), 'record')}. With which policy and which flows would a "
                "record come back?"
            )


@loop.requires("calm has its ten records in both cities, under its own name")
def calm_is_copied_once(ctx: CheckContext) -> None:
    for city in _cities(ctx):
        values = values_in(city.name, city.ctx, CALM)
        if others := [topic for topic in city.ctx.view().topics if topic.endswith("." + CALM)]:
            raise Unmet(
                f"In {city.name}: There is a topic {others[0]!r}. Which policy keeps a topic's name? To begin afresh, run from "
                "the first cell of section 2 on."
            )
        at_home = city.name == ctx.cluster.name  # a copy may hold a record twice
        if len(values) != SENT or (at_home and values.total() != SENT):
            raise Unmet(
                f"In {city.name}: {CALM} holds {counted(values.total(), 'record')}, {len(values)} of them different. "
                f"{SENT} were sent. In how many directions is it copied?"
            )


@loop.requires("calm holds the same in both cities", after=calm_is_copied_once)
def calm_is_the_same(ctx: CheckContext) -> None:
    one, other = (set(values_in(city.name, city.ctx, CALM)) for city in _cities(ctx))
    if different := some_of(one ^ other):
        raise Unmet(f"Only one of the two cities has {different}.")

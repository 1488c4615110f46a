"""Order kept by one partition, by one key, and by a key per customer."""

from __future__ import annotations

from kafkacourse.ch01_single_node.my_topic import SEVEN
from kafkalab.checks.context import CheckContext, Unmet, text_of
from kafkalab.checks.lab import Lab
from kafkalab.checks.requirements import Probe
from kafkalab.checks.topics import has_shape, holds_exactly

__all__ = ["lab"]

# What customers did, in the order in which it happened.
STEPS = (
    ("ann", "ann opens a cart"),
    ("bob", "bob opens a cart"),
    ("ann", "ann takes a book"),
    ("cleo", "cleo opens a cart"),
    ("bob", "bob takes a lamp"),
    ("ann", "ann pays"),
    ("cleo", "cleo takes a chair"),
    ("bob", "bob leaves"),
    ("cleo", "cleo pays"),
)

lab = Lab("01_order")

check = lab.add_check(
    "01_order",
    "Keep the order of what belongs together",
    hints=(
        "Order exists within a partition. So ask yourself each time: what brings these records into the same one?",
        "produce(topic, key=…, value=…): the partition is computed from the key.",
        "The steps in carts have the customer in common: use the name as the key.",
    ),
)


def is_in_order(topic: str) -> Probe:
    """Return a probe: the seven messages must be in one partition of a topic, in the order sent."""

    def probe(ctx: CheckContext) -> None:
        records = ctx.records(topic)
        if len({m.partition() for m in records}) > 1:
            raise Unmet(f"{topic} has them in several partitions, so no consumer can tell their order.")
        values = [text_of(m) for m in records]
        if values != list(SEVEN):
            raise Unmet(f"{topic} has them in another order: {values[0]!r} comes first.")

    return probe


ordered_is_shaped = check.requires("ordered has 1 partition")(has_shape("ordered", 1, 1))
ordered_is_filled = check.requires("ordered holds the seven messages, each once", after=ordered_is_shaped)(
    holds_exactly("ordered", SEVEN)
)
check.requires("ordered holds them in the order sent", after=ordered_is_filled)(is_in_order("ordered"))

keyed_is_shaped = check.requires("keyed has 13 partitions")(has_shape("keyed", 13, 1))
keyed_is_filled = check.requires("keyed holds the seven messages, each once", after=keyed_is_shaped)(
    holds_exactly("keyed", SEVEN)
)


@check.requires("In keyed the seven messages have the same key", after=keyed_is_filled)
def they_have_one_key(ctx: CheckContext) -> None:
    keys = {m.key() for m in ctx.records("keyed")}
    if None in keys:
        raise Unmet("Some have no key. They may be in one partition now, but what would bring the next one there, too?")
    if len(keys) > 1:
        raise Unmet(f"They have {len(keys)} different keys. What must messages have in common to stay together?")


check.requires("keyed holds them in the order sent", after=keyed_is_filled)(is_in_order("keyed"))

carts_is_shaped = check.requires("carts has 13 partitions")(has_shape("carts", 13, 1))
carts_is_filled = check.requires("carts holds the nine steps, each once", after=carts_is_shaped)(
    holds_exactly("carts", [step for _, step in STEPS])
)


@check.requires("Each step has a key that keeps together what must stay in order, and no more", after=carts_is_filled)
def steps_have_keys(ctx: CheckContext) -> None:
    customer_of = {step: customer for customer, step in STEPS}
    # Any key works that all steps of a customer share, and no other customer's steps have.
    customers_with: dict[bytes, set[str]] = {}
    keys_of: dict[str, set[bytes]] = {}
    for m in ctx.records("carts"):
        key, customer = m.key(), customer_of[text_of(m)]
        if key is None:
            raise Unmet(f"{text_of(m)!r} has no key.")
        customers_with.setdefault(key, set()).add(customer)
        keys_of.setdefault(customer, set()).add(key)
    for key, customers in customers_with.items():
        if len(customers) > 1:
            raise Unmet(
                f"Steps of {' and '.join(sorted(customers))} have the same key {key.decode(errors='replace')!r}. Which steps "
                "have to stay in order with each other, and only those?"
            )
    for customer, keys in keys_of.items():
        if len(keys) > 1:
            raise Unmet(
                f"The steps of {customer} have {len(keys)} different keys. Which steps have to stay in order with each other?"
            )


@check.requires("Each customer's steps are in order", after=carts_is_filled)
def steps_are_in_order(ctx: CheckContext) -> None:
    records = ctx.records("carts")
    for customer in dict.fromkeys(customer for customer, _ in STEPS):
        wanted = [step for who, step in STEPS if who == customer]
        own = [m for m in records if text_of(m) in wanted]
        if len({m.partition() for m in own}) > 1:
            raise Unmet(f"The steps of {customer} are in several partitions.")
        if (values := [text_of(m) for m in own]) != wanted:
            raise Unmet(f"The steps of {customer} are in another order: {values[0]!r} comes first.")


@check.requires("carts uses several partitions", after=carts_is_filled)
def steps_are_spread(ctx: CheckContext) -> None:
    if len({m.partition() for m in ctx.records("carts")}) < 2:
        raise Unmet("All steps are in one partition, so one busy customer would hold up all the others.")

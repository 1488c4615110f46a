"""A partitioner that keeps important stocks alone on a topic's last partition."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from confluent_kafka import Producer

from kafkacourse.prices import NAMES, holds_all_stocks
from kafkalab.checks.context import CheckContext, Unmet
from kafkalab.checks.lab import Lab
from kafkalab.checks.records import keeps_each_key_in_one_partition, partitions_of_keys
from kafkalab.checks.topics import existing, filled, has_shape

__all__ = ["lab"]

TOPIC = "stock-prices"
SINGLE = "single-copy"
IMPORTANT = {"IBM", "UBER"}
OTHERS = tuple(name for name in NAMES if name not in IMPORTANT)
WHAT = "your class ImportantStocks"

lab = Lab("03_partitioner")

check = lab.add_check(
    "03_partitioner",
    "Important stocks alone on the last partition",
    hints=(
        "How many partitions are there? Ask the producer: producer.list_topics(timeout=10).topics[topic].partitions is a "
        "dictionary of all of them, with or without a leader. Ask once, when the object is made.",
        "confluent_kafka.murmur2(key, n) returns a number from 0 to n - 1, always the same for the same key (bytes).",
        "The last of P partitions is P - 1, so the others share murmur2(name.encode(), P - 1). A P of 1 leaves them none.",
        "The list may come as a string, 'IBM,UBER', or as names. Split a string at its commas first. Then look for empty "
        "names and for names that come twice, and raise ValueError.",
    ),
)

check.requires("stock-prices has 5 partitions with 3 replicas each")(has_shape(TOPIC, 5, 3))

all_stocks = holds_all_stocks(TOPIC)
check.requires("Prices of all fourteen stocks were sent")(all_stocks)


@check.requires("The last partition holds IBM and UBER and nothing else", after=all_stocks)
def important_are_alone(ctx: CheckContext) -> None:
    last = len(existing(ctx, TOPIC)) - 1
    where = partitions_of_keys(filled(ctx, TOPIC))
    for name in sorted(IMPORTANT):
        if elsewhere := sorted(where[name] - {last}):
            raise Unmet(f"{name} is important and has records in partition {elsewhere[0]}. Which is the last one of {TOPIC}?")
    if beside := [name for name in OTHERS if last in where[name]]:
        raise Unmet(f"{beside[0]} is in partition {last} with the important ones. Over how many partitions do you hash?")


@check.requires("The other stocks share the other partitions", after=all_stocks)
def others_are_spread(ctx: CheckContext) -> None:
    where = partitions_of_keys(filled(ctx, TOPIC))
    used = {partition for name in OTHERS for partition in where[name]}
    if len(used) < 2:
        raise Unmet(f"All other stocks are in partition {min(used)}. What should decide which one a stock goes to?")


check.requires("The prices of one stock are in one partition", after=all_stocks)(keeps_each_key_in_one_partition(TOPIC))


def _chooser(ctx: CheckContext) -> Callable[[Iterable[str]], dict[str, int]]:
    """Return a function that creates the learner's class and asks it for the partitions of these names."""
    make = ctx.function("partitioner", WHAT)
    producer = Producer(ctx.cluster.client_config())

    def choose(names: Iterable[str]) -> dict[str, int]:
        try:
            partitioner = make(producer, TOPIC, ("IBM", "UBER"))
            return {name: partitioner.partition(name) for name in names}
        except Exception as error:
            raise Unmet(f"Asked for the partitions of all stocks, it raises {type(error).__name__}: {error}.") from error

    return choose


@check.requires("The choice depends on the stock's name alone, in every process")
def name_decides(ctx: CheckContext) -> None:
    choose = _chooser(ctx)
    rest = len(existing(ctx, TOPIC)) - 1
    first, second = choose(OTHERS), choose(reversed(OTHERS))
    if differs := next((name for name in OTHERS if first[name] != second[name]), None):
        raise Unmet(
            f"{differs} goes to partition {first[differs]}, and with another object of your class to {second[differs]}. What "
            "else than its name does the choice depend on?"
        )
    # Python's hash stays the same within this process, so a comparison with it has to reveal it.
    for python in (hash, lambda name: abs(hash(name)), lambda name: hash(name.encode()), lambda name: abs(hash(name.encode()))):
        if rest > 1 and all(first[name] == python(name) % rest for name in OTHERS):
            raise Unmet(
                "It chooses by Python's hash(), which gives another number for the same name in another process. Which hash is "
                "the same everywhere?"
            )


@check.requires("The last partition stays the last one while its broker is down")
def waited_for_the_last(ctx: CheckContext) -> None:
    last = len(existing(ctx, SINGLE)) - 1
    where = partitions_of_keys(filled(ctx, SINGLE))
    if "IBM" not in where:
        raise Unmet(f"{SINGLE} has no price of IBM. Did the broker come back, and did you flush after that?")
    if elsewhere := sorted(where["IBM"] - {last}):
        raise Unmet(
            f"While partition {last} had no leader, IBM went to partition {elsewhere[0]}. Do you count partitions that aren't "
            "available at the moment?"
        )


@check.requires("A wrong configuration is rejected")
def wrong_configurations_are_rejected(ctx: CheckContext) -> None:
    make = ctx.function("partitioner", WHAT)
    producer = Producer(ctx.cluster.client_config())
    wrong: Sequence[tuple[str, object, str]] = (
        (TOPIC, (), "no important stock at all"),
        (TOPIC, "", "an empty list of stocks"),
        (TOPIC, "IBM,,UBER", "a stock without a name"),
        (TOPIC, ("IBM", "UBER", "IBM"), "a stock that is named twice"),
        ("one-partition", ("IBM", "UBER"), "a topic with a single partition, which leaves none for the other stocks"),
    )
    for topic, stocks, what in wrong:
        try:
            make(producer, topic, stocks)
        except ValueError:
            continue
        except Exception as error:
            raise Unmet(f"Given {what}, it raises {type(error).__name__}: {error}. The lab asks for a ValueError.") from error
        raise Unmet(f"It accepts {what}. Where would the records go?")

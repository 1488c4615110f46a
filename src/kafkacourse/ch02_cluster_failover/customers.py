"""12,434 customers in three partitions, read by groups of several sizes and counted by Spark."""

from __future__ import annotations

from collections import Counter
from typing import Any

from kafkacourse.datasets import customers, customers_partition
from kafkalab.checks.context import CheckContext, Unmet, text_of
from kafkalab.checks.groups import existing_group, read_everything
from kafkalab.checks.lab import Lab
from kafkalab.checks.topics import existing, has_shape
from kafkalab.checks.wording import counted
from kafkalab.cluster import GroupView

__all__ = ["lab"]

TOPIC = "customers"
GROUP_SIZES = {f"customer-group-{size}": size for size in (1, 2, 3, 5)}

lab = Lab("02_customers")

# -- the topic --------------------------------------------------------------------------------------------------------

load = lab.add_check(
    "02_customers",
    "Load customers.csv into three partitions and let Spark count",
    hints=(
        "NewTopic takes the name, then num_partitions, then replication_factor.",
        "produce() takes partition=, and then no partitioner is asked. customers_partition(index) knows each customer's "
        "partition.",
        "A producer that ends without flush() loses what it hasn't sent yet.",
        "Kafka's source for Spark gives a column partition. Group by it and count. The check collects the rows.",
    ),
)
is_shaped = load.requires("customers has 3 partitions with 1 replica each")(has_shape(TOPIC, 3, 1))


def lines() -> list[tuple[int, str]]:
    """Return partition and value of every record that the topic should have."""
    return [(customers_partition(index), ",".join(customer)) for index, customer in enumerate(customers())]


@load.requires("The partitions hold 4428, 4004 and 4002 records", after=is_shaped)
def sizes_are_right(ctx: CheckContext) -> None:
    ends, wanted = ctx.end_offsets(TOPIC), Counter(partition for partition, _ in lines())
    if ends == dict(wanted):
        return
    found = f"There are {sum(ends.values())} records for {wanted.total()} customers"
    if not any(ends.values()):
        raise Unmet("The topic is empty.")
    if sum(ends.values()) > wanted.total():
        raise Unmet(f"{found}. Did you load the file more than once? Delete the topic and start over.")
    if sum(ends.values()) < wanted.total():
        raise Unmet(f"{found}. Did the producer wait until all were delivered?")
    raise Unmet("The number of records is right, but not their split. Who chose the partition: the partitioner, or you?")


@load.requires("Every customer is there once, in the partition that the data set gives", after=sizes_are_right)
def customers_are_complete(ctx: CheckContext) -> None:
    found, wanted = Counter((m.partition(), text_of(m)) for m in ctx.records(TOPIC)), Counter(lines())
    if found == wanted:
        return
    values, wanted_values = Counter(v for _, v in found.elements()), Counter(v for _, v in wanted.elements())
    if missing := wanted_values - values:
        raise Unmet(
            f"{counted(missing.total(), 'customer')} can't be found, the first one is {next(iter(missing))!r}. Is a record's "
            "value the whole line?"
        )
    raise Unmet("All customers are there, but some of them are in another partition than customers_partition() says.")


@load.requires("Spark counted the same", after=sizes_are_right)
def spark_counted_the_same(ctx: CheckContext) -> None:
    given: Any = ctx.answer("counted", object, "a DataFrame of Spark with the columns partition and count")
    if not hasattr(given, "collect"):
        raise Unmet(f"`counted` should be a DataFrame of Spark, not {type(given).__name__}.")
    if missing := {"partition", "count"} - set(given.columns):
        raise Unmet(f"`counted` has no column {min(missing)}. Its columns are {', '.join(given.columns)}.")
    if {row["partition"]: row["count"] for row in given.collect()} != ctx.end_offsets(TOPIC):
        raise Unmet(
            "Spark counted other numbers than the brokers have. Does the query group by partition, and does it start with the "
            "earliest offset?"
        )


# -- the groups -------------------------------------------------------------------------------------------------------

groups = lab.add_check(
    "02_customer_groups",
    "Start groups of one, two, three and five consumers",
    hints=(
        "Consumers share partitions if they have the same group, and only then.",
        "The groups are named customer-group-1, customer-group-2, customer-group-3 and customer-group-5.",
        "wait_until_shared(*consumers) returns when every partition is assigned.",
    ),
)


def every_group(ctx: CheckContext) -> list[GroupView]:
    """Return the four groups. Raise `Unmet` if one doesn't exist."""
    return [existing_group(ctx, name) for name in GROUP_SIZES]


@groups.requires("The four groups have 1, 2, 3 and 5 members")
def sizes_of_groups(ctx: CheckContext) -> None:
    for group in every_group(ctx):
        if len(group.members) != GROUP_SIZES[group.id]:
            raise Unmet(
                f"{group.id} has {counted(len(group.members), 'member')}. Are all of its consumers running, in this group?"
            )


@groups.requires("In each group every partition is assigned to exactly one member", after=sizes_of_groups)
def partitions_are_assigned_once(ctx: CheckContext) -> None:
    every = {(TOPIC, p.partition) for p in existing(ctx, TOPIC)}
    for group in every_group(ctx):
        assigned = Counter(place for member in group.members for place in member.partitions)
        if set(assigned) != every or assigned.total() != len(every):
            raise Unmet(
                f"In {group.id} not every partition is assigned to exactly one member (the group's state is {group.state}). "
                "Did you wait for the rebalance to end?"
            )


@groups.requires("A member has no partition only if there are more members than partitions", after=partitions_are_assigned_once)
def spares_are_right(ctx: CheckContext) -> None:
    partitions = len(existing(ctx, TOPIC))
    for group in every_group(ctx):
        idle = sum(not member.partitions for member in group.members)
        if idle != max(0, len(group.members) - partitions):
            raise Unmet(
                f"In {group.id}, {idle} of {counted(len(group.members), 'member')} have no partition, though the topic has "
                f"{partitions}."
            )


@groups.requires("Each group has read every record of customers", after=sizes_of_groups)
def groups_have_read_everything(ctx: CheckContext) -> None:
    for name in GROUP_SIZES:
        read_everything(ctx, name, TOPIC)

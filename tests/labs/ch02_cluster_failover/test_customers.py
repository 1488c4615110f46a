"""Customers in three partitions and four groups: each wrong answer gets its sentence, and the right one passes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest
from pyspark.sql import Row

from kafkacourse.datasets import customers, customers_partition
from kafkalab import Cluster, ConsoleConsumer, wait_until
from kafkalab.workers import wait_until_shared
from support import PATIENCE, Verdict, create, put, wait_for

pytestmark = pytest.mark.cluster

TOPIC = "customers"
LINES = [",".join(customer) for customer in customers()]


def load(cluster: Cluster, lines: Sequence[str] = LINES, rule: Callable[[int], int] = customers_partition) -> None:
    put(cluster, TOPIC, [(None, line, rule(index)) for index, line in enumerate(lines)])


# -- 02_customers -----------------------------------------------------------------------------------------------------


@dataclass
class Counted:
    """What the check needs of a DataFrame: no Spark has to start for it."""

    counts: dict[int, int]
    columns = ("partition", "count")

    def collect(self) -> list[Row]:
        return [Row(partition=partition, count=count) for partition, count in self.counts.items()]


def test_customers(clean: Cluster, verdict: Verdict) -> None:
    create(clean, TOPIC, 3, 1)
    load(clean)
    counted = Counted({0: 4428, 1: 4004, 2: 4002})
    verdict.passes("02_customers", clean, counted=counted)
    verdict.says("Give check() your answer as counted=", "02_customers", clean)
    verdict.says("`counted` is still None", "02_customers", clean, counted=None)
    typed = counted.counts  # by hand, whatever Spark says
    verdict.says("`counted` should be a DataFrame of Spark, not dict", "02_customers", clean, counted=typed)
    verdict.says("Spark counted other numbers", "02_customers", clean, counted=Counted({0: 12434}))
    load(clean)
    verdict.says("Did you load the file more than once?", "02_customers", clean, counted=counted)


def untouched(cluster: Cluster) -> None:
    pass


def with_three_copies(cluster: Cluster) -> None:
    create(cluster, TOPIC, 3, 3)


def with_one_partition(cluster: Cluster) -> None:
    create(cluster, TOPIC, 1, 1)


def not_loaded(cluster: Cluster) -> None:
    create(cluster, TOPIC, 3, 1)


def loaded_in_part(cluster: Cluster) -> None:
    create(cluster, TOPIC, 3, 1)
    load(cluster, LINES[:5000])


def partition_left_to_the_producer(cluster: Cluster) -> None:
    create(cluster, TOPIC, 3, 1)
    load(cluster, rule=lambda index: index % 3)


def only_ids_sent(cluster: Cluster) -> None:
    create(cluster, TOPIC, 3, 1)
    load(cluster, [customer.customer_id for customer in customers()])


def two_swapped(cluster: Cluster) -> None:
    """The first customers of two partitions, each in the other's."""
    create(cluster, TOPIC, 3, 1)
    first, second = 0, next(index for index in range(len(LINES)) if customers_partition(index) != customers_partition(0))
    swapped = {first: customers_partition(second), second: customers_partition(first)}
    load(cluster, rule=lambda index: swapped.get(index, customers_partition(index)))


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (untouched, "There is no topic 'customers'"),
        (with_three_copies, "has 3 replicas, not 1"),
        (with_one_partition, "customers has 1 partition. How many does the text ask for?"),
        (not_loaded, "The topic is empty"),
        (loaded_in_part, "There are 5000 records for 12434 customers"),
        (partition_left_to_the_producer, "The number of records is right, but not their split"),
        (only_ids_sent, "Is a record's value the whole line?"),
        (two_swapped, "some of them are in another partition"),
    ],
)
def test_customers_wrong(clean: Cluster, verdict: Verdict, build: Callable[[Cluster], None], sentence: str) -> None:
    build(clean)
    verdict.says(sentence, "02_customers", clean, counted={})


# -- 02_customer_groups -----------------------------------------------------------------------------------------------

# Nobody kills a member: on a busy machine one that is silent for 3 s would lose its partitions.
PATIENT = {"session_timeout_ms": 30_000}


def join(cluster: Cluster, group: str) -> ConsoleConsumer:
    return ConsoleConsumer(cluster, TOPIC, group=group, from_beginning=True, **PATIENT)


def joined(cluster: Cluster, sizes: dict[str, int]) -> None:
    wait_for(
        cluster,
        lambda view: all(
            view.groups[name].state == "Stable" and len(view.groups[name].members) == size for name, size in sizes.items()
        ),
        "all members",
        groups=True,
    )


def test_customer_groups(clean: Cluster, verdict: Verdict) -> None:
    lab = "02_customer_groups"
    _, said = verdict(lab, clean)
    assert "There is no consumer group 'customer-group-1'" in said and "0 of 4" in said
    create(clean, TOPIC, 3, 1)
    sizes = {"customer-group-1": 1, "customer-group-2": 2, "customer-group-3": 3, "customer-group-5": 4}
    consumers = [join(clean, name) for name, size in sizes.items() for _ in range(size)]
    try:
        joined(clean, sizes)
        verdict.says("customer-group-5 has 4 members", lab, clean)
        consumers.append(join(clean, "customer-group-5"))
        joined(clean, {**sizes, "customer-group-5": 5})
        for name in sizes:
            wait_until_shared(*(c for c in consumers if c.group == name), timeout=PATIENCE)
        verdict.says("customers is empty, so customer-group-1 has read nothing", lab, clean)
        load(clean, LINES[:30])

        def read() -> set[tuple[str, int, int]]:  # a rebalance may have some of it read twice
            return {(c.group, r.partition, r.offset) for c in consumers for r in c.records}

        wait_until(lambda: len(read()) == 120, PATIENCE, "all to be read", last_seen=lambda: len(read()))
        for consumer in consumers:
            consumer.wait_committed(60)
        verdict.passes(lab, clean)
        consumers.pop(0).close()
        verdict.says("customer-group-1 has 0 members", lab, clean)
    finally:
        for consumer in consumers:
            consumer.close()


def test_customer_groups_that_started_with_the_latest(clean: Cluster, verdict: Verdict) -> None:
    create(clean, TOPIC, 3, 1)
    load(clean, LINES[:30])
    sizes = {f"customer-group-{size}": size for size in (1, 2, 3, 5)}
    consumers = [ConsoleConsumer(clean, TOPIC, group=name, **PATIENT) for name, size in sizes.items() for _ in range(size)]
    try:
        joined(clean, sizes)
        for name in sizes:
            wait_until_shared(*(c for c in consumers if c.group == name), timeout=PATIENCE)
        verdict.says("customer-group-1 has committed nothing in partition 0 of customers", "02_customer_groups", clean)
    finally:
        for consumer in consumers:
            consumer.close()

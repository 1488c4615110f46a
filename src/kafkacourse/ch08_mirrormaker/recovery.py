"""A lost cluster, a group that continues in its mirror, and the way back."""

from __future__ import annotations

from collections import Counter

from kafkacourse.ch08_mirrormaker.copies import AFRESH, no_copy_of_a_copy, some_of
from kafkalab.checks.clusters import clusters, has_read_everything_in, values_in
from kafkalab.checks.context import CheckContext, Unmet, text_of
from kafkalab.checks.lab import Lab
from kafkalab.checks.wording import counted
from kafkalab.workers import LedgerProducer

__all__ = ["lab"]

GROUP, ORDERS, COPY = "billing", "orders", "main.orders"

lab = Lab("08_recovery")

readers = lab.add_check(
    "08_readers",
    "Go on in the other cluster",
    hints=(
        "The group has the same name in the backup cluster, where MirrorMaker has committed its offsets. Subscribe, and read.",
        "With enable_partition_eof=True a consumer gets a message with the error KafkaError._PARTITION_EOF when a partition is "
        "read to its end. len(cluster.describe().topics[topic]) is the number of partitions.",
        "Call consumer.commit(asynchronous=False) before close().",
    ),
)


def _in_backup(ctx: CheckContext) -> Counter[str]:
    copied = values_in("backup", ctx, COPY)
    if not copied:
        raise Unmet(f"In backup: The topic {COPY} is empty.")
    return copied


def _read_in_backup(ctx: CheckContext) -> list[str]:
    return ctx.answer("read", list[str], "the values that billing read in the backup cluster")


def _read_in_main(ctx: CheckContext) -> list[str]:
    return ctx.answer("before", list[str], "the values that billing read in the main cluster", may_be_empty=True)


@readers.requires("billing missed no order that was copied, and didn't start over")
def billing_goes_on(ctx: CheckContext) -> None:
    copied, read = _in_backup(ctx), _read_in_backup(ctx)
    if missing := some_of(set(copied) - {*_read_in_main(ctx), *read}):
        raise Unmet(f"billing read {missing} in neither cluster, and the backup cluster has it. Did you read to the end?")
    if len(read) >= copied.total():
        raise Unmet(
            f"billing read all {counted(copied.total(), 'order')} again. Which group did you use, and which topic? Has that "
            "group committed offsets there?"
        )


@readers.requires("billing began at its translated offsets, not beyond what it had committed", after=billing_goes_on)
def billing_began_in_time(ctx: CheckContext) -> None:
    by_partition: dict[int, list[str]] = {p: [] for p in ctx.end_offsets(COPY)}
    for message in ctx.records(COPY):
        by_partition[message.partition() or 0].append(text_of(message))
    kept = ctx.answer("kept", list[int], "the offsets that billing had committed in the main cluster, one per partition")
    began = ctx.answer("began", list[int], "the offsets at which billing began in the backup cluster, one per partition")
    if not len(kept) == len(began) == len(by_partition):
        raise Unmet(f"{COPY} has {counted(len(by_partition), 'partition')}. `kept` and `began` hold one offset for each.")
    read, left = _read_in_backup(ctx), sum(map(len, by_partition.values())) - sum(began)
    if len(read) != left:
        raise Unmet(
            f"After the offsets {began} there are {counted(left, 'order')} to read, and billing read {len(read)}. Note "
            f"`began` before billing reads. {AFRESH}"
        )
    for partition, values in by_partition.items():
        repeats = len(values) - len(set(values))
        if began[partition] > kept[partition] + repeats:
            raise Unmet(
                f"In partition {partition} billing had committed {kept[partition]} in the main cluster and began at "
                f"{began[partition]} in the backup cluster, so it skipped orders."
            )


@readers.requires("billing has committed the end in the backup cluster", after=billing_goes_on)
def billing_committed_in_backup(ctx: CheckContext) -> None:
    has_read_everything_in("backup", ctx, GROUP, COPY)


disaster = lab.add_check(
    "08_disaster",
    "Count what the disaster cost",
    hints=(
        "Compare two sets. {entry.value for entry in ledger.entries} holds what was acknowledged.",
        "read_all(backup, 'main.orders') returns what the backup cluster has, as text.",
        "Counter(before) + Counter(read) counts how often billing read each order. It can read an order twice within one "
        "cluster, too.",
    ),
)


@disaster.requires("You know which acknowledged orders are lost")
def lost_orders_are_known(ctx: CheckContext) -> None:
    ledger = ctx.answer("ledger", LedgerProducer, "the producer with the ledger")
    lost = {entry.value for entry in ledger.entries} - _in_backup(ctx).keys()
    told = ctx.answer("lost", set[str], "acknowledged orders that aren't in the backup cluster", may_be_empty=True)
    if wrong := some_of(told - lost):
        raise Unmet(f"You count {wrong} as lost. Look for it in the ledger, and in {COPY} of the backup cluster.")
    if missing := lost - told:
        raise Unmet(f"You count {counted(len(told), 'order')} as lost; {len(missing)} more were acknowledged and aren't there.")


@disaster.requires("You know which orders billing read twice")
def orders_read_twice_are_known(ctx: CheckContext) -> None:
    read = Counter(_read_in_main(ctx)) + Counter(_read_in_backup(ctx))
    twice = {value for value, count in read.items() if count > 1}
    told = ctx.answer("twice", set[str], "the orders that billing read more than once", may_be_empty=True)
    if wrong := some_of(told - twice):
        raise Unmet(f"You count {wrong} as read twice. How often is it in `before` and `read` together?")
    if missing := twice - told:
        raise Unmet(f"You count {counted(len(told), 'order')} as read twice; `before` and `read` show {len(missing)} more.")


fail_back = lab.add_check(
    "08_fail_back",
    "Go home",
    hints=(
        "One MirrorMaker runs both flows, with the default policy. What main had, and nobody copied, is still on its disk.",
        "Wait for the copies before you read: set(read_all(main, 'orders')) <= set(read_all(backup, 'main.orders')), and the "
        "same in the other direction.",
        "In the main cluster billing reads orders and backup.orders: go_on(main, 'billing', ['orders', 'backup.orders']).",
    ),
)


@fail_back.requires("Each cluster has all orders of the other one")
def orders_are_in_both(ctx: CheckContext) -> None:
    (a, main), (b, backup) = clusters(ctx, "backup").items()
    for name, each, other, theirs in ((a, main, b, backup), (b, backup, a, main)):
        wanted = values_in(name, each, ORDERS)
        if not wanted:
            raise Unmet(f"In {name}: The topic {ORDERS} is empty.")
        if missing := some_of(set(wanted) - set(values_in(other, theirs, f"{name}.{ORDERS}"))):
            raise Unmet(f"In {other}: {name}.{ORDERS} lacks {missing}. Which flow copies it, and did you wait for that?")


@fail_back.requires("No order was copied back to where it came from", after=orders_are_in_both)
def no_order_was_copied_back(ctx: CheckContext) -> None:
    for name, each in clusters(ctx, "backup").items():
        no_copy_of_a_copy(name, each)


@fail_back.requires("billing has committed the end of both topics in the main cluster", after=orders_are_in_both)
def billing_committed_at_home(ctx: CheckContext) -> None:
    for topic in (ORDERS, f"backup.{ORDERS}"):
        has_read_everything_in("main", ctx, GROUP, topic)


@fail_back.requires("billing has read every order of both clusters", after=orders_are_in_both)
def every_order_was_read(ctx: CheckContext) -> None:
    read = ctx.answer("read", dict[str, list[str]], "cluster → the values of its orders that billing read, in either cluster")
    for name, each in clusters(ctx, "backup").items():
        if missing := some_of(set(values_in(name, each, ORDERS)) - set(read.get(name, ()))):
            raise Unmet(f"billing has never read {missing} of the orders of {name}.")

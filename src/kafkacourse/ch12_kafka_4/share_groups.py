"""Twenty jobs in one partition for four workers, a poison record, and the record of a worker that hangs."""

from __future__ import annotations

from collections import Counter
from typing import Any

from confluent_kafka.admin import ConfigResource, ResourceType

from kafkacourse.ch12_kafka_4.reports import reports_of
from kafkalab.checks.context import CheckContext, Unmet, text_of
from kafkalab.checks.groups import place_of, read_everything
from kafkalab.checks.lab import Lab
from kafkalab.checks.topics import existing
from kafkalab.checks.wording import counted
from kafkalab.cluster import ShareGroupView

__all__ = ["lab"]

CLASSIC, SHARE, SHOP, COURIERS = "classic-workers", "share-workers", "shop", "couriers"
JOBS = 20
ORDERS = ("order-1", "order-2", "order-4", "order-5", "order-6")
FIRST, LAST = 7, 12
TRIES = 3
LIMIT, LOCK = "share.delivery.count.limit", "share.record.lock.duration.ms"

lab = Lab("12_share_groups")


def existing_share_group(ctx: CheckContext, group: str) -> ShareGroupView:
    """Return a share group. Raise `Unmet` if it doesn't exist."""
    view = ctx.cluster.nodes.share_group(group)
    if view is None:
        raise Unmet(f"There is no share group {group!r} yet. Did a ShareConsumer with this group id subscribe?")
    return view


def settled(ctx: CheckContext, group: str, topic: str) -> None:
    """Raise `Unmet` unless a share group has settled every record of a topic."""
    lag = existing_share_group(ctx, group).lag.get((topic, 0))
    if lag is None:
        raise Unmet(
            f"The broker knows of no progress of {group} in {topic}. Was any record acknowledged, and did the consumer commit "
            "that?"
        )
    if lag:
        raise Unmet(
            f"{group} still has a lag of {lag} in {topic}. Is somebody still at work, or was a record not acknowledged, or "
            "that not committed?"
        )


def group_setting(ctx: CheckContext, group: str, name: str) -> str:
    """Return a group's effective setting."""
    return ctx.config(ConfigResource(ResourceType.GROUP, group))[name]


# -- twenty jobs ------------------------------------------------------------------------------------------------------

workers = lab.add_check(
    "12_share_workers",
    "Let four workers share one partition",
    hints=(
        "A round has three steps: poll, work and acknowledge each record, commit.",
        "The consumer's `acknowledge` notes what became of a record. `commit(consumer)` tells the broker.",
        "`run_four` takes a worker, a group, a topic, and a function without arguments that looks at the group.",
    ),
)


@workers.requires("classic-jobs and share-jobs have one partition each")
def one_partition_each(ctx: CheckContext) -> None:
    for topic in ("classic-jobs", "share-jobs"):
        if (parts := len(existing(ctx, topic))) != 1:
            raise Unmet(f"{topic} has {counted(parts, 'partition')}. With one partition you see what a share group can do.")


def done_once(ctx: CheckContext, group: str, topic: str) -> list[dict[str, Any]]:
    """Return a group's reports of the last twenty jobs. Raise `Unmet` unless it did each of them exactly once."""
    jobs = {place_of(record)[1]: text_of(record) for record in ctx.records(topic)[-JOBS:]}
    if len(jobs) < JOBS:
        raise Unmet(f"{topic} has {counted(len(jobs), 'job')}, not {JOBS}. Did `run_four` run for {group}?")
    reports = [facts for facts in reports_of(ctx, group) if facts.get("offset") in jobs]
    times = Counter(facts["offset"] for facts in reports)
    if missing := sorted(jobs.keys() - times.keys()):
        raise Unmet(
            f"`reports` shows {counted(len(times), 'job')} of {group}, not {JOBS}. Nobody did {jobs[missing[0]]}, at offset "
            f"{missing[0]} of {topic}: these are the last twenty that were sent there. Run `run_four` for {group} again."
        )
    if again := [offset for offset, number in times.items() if number > 1]:
        raise Unmet(
            f"The workers of {group} did {jobs[again[0]]} {times[again[0]]} times. How did they acknowledge it, and were they "
            "done with it before its lock timed out?"
        )
    return reports


@workers.requires("The classic group did the twenty jobs, and committed them", after=one_partition_each)
def classic_did_them(ctx: CheckContext) -> None:
    done_once(ctx, CLASSIC, "classic-jobs")
    read_everything(ctx, CLASSIC, "classic-jobs")


@workers.requires("The share group did each of the twenty jobs once", after=one_partition_each)
def share_did_them(ctx: CheckContext) -> None:
    done_once(ctx, SHARE, "share-jobs")


@workers.requires("The broker knows that they are done", after=share_did_them)
def share_settled_them(ctx: CheckContext) -> None:
    settled(ctx, SHARE, "share-jobs")


@workers.requires("At least three jobs were in progress at the same time", after=share_did_them)
def several_at_once(ctx: CheckContext) -> None:
    reports = done_once(ctx, SHARE, "share-jobs")
    most = max(sum(other["began"] <= facts["began"] < other["ended"] for other in reports) for facts in reports)
    if most < 3:
        raise Unmet(
            f"At most {counted(most, 'job')} of {SHARE} went on at the same time. Were all four workers members of the share "
            "group when the jobs came, and is each record a batch of its own?"
        )


# -- records that fail ------------------------------------------------------------------------------------------------

poison = lab.add_check(
    "12_share_poison",
    "Decide what happens to a record that fails",
    hints=(
        "`charge` raises one error for what can't be read, and another one for what may succeed later.",
        "try: charge(record), then one `except` for each error; after them, the work is done.",
        "`set_group` above changes a group's settings, with underscores for dots.",
    ),
)


@poison.requires("shop tries each record at most 3 times")
def limit_is_set(ctx: CheckContext) -> None:
    if (limit := group_setting(ctx, SHOP, LIMIT)) != str(TRIES):
        raise Unmet(f"The {LIMIT} of {SHOP} is {limit}, not {TRIES}. It's a setting of the group, not of a consumer.")


def verdicts(ctx: CheckContext, order: str) -> list[str]:
    """Return how the learner's loop acknowledged an order at each delivery. An order that was sent again counts anew."""
    existing(ctx, "orders")
    sent = [record.offset() for record in ctx.records("orders") if text_of(record) == order]
    acks = [str(facts.get("verdict")) for facts in reports_of(ctx, SHOP) if facts.get("offset") in sent[-1:]]
    if not acks:
        raise Unmet(f"{SHOP} hasn't reported {order!r} yet. Did you send the orders and run the shop?")
    return acks


@poison.requires("Every order that can be charged was accepted, and only once")
def orders_are_accepted(ctx: CheckContext) -> None:
    for order in (o for o in ORDERS if o != "order-5"):
        acks = verdicts(ctx, order)
        if "ACCEPT" not in acks:
            ask = "Could another try have succeeded?" if acks[-1] == "REJECT" else "What does `judge` return after a charge?"
            raise Unmet(
                f"{order} was delivered {counted(len(acks), 'time')} and never accepted. It ended with {acks[-1]}. {ask}"
            )
        if acks.count("ACCEPT") > 1 or acks[-1] != "ACCEPT":
            raise Unmet(f"{order} was acknowledged with {', '.join(acks)}. Send the orders again.")


@poison.requires("What isn't an order was set aside at its first delivery")
def junk_is_rejected(ctx: CheckContext) -> None:
    acks = verdicts(ctx, "oops")
    if acks != ["REJECT"]:
        raise Unmet(f"The record that isn't an order was acknowledged with {', '.join(acks)}. Can a later try succeed?")


@poison.requires("order-5 was tried until the limit, and never accepted", after=limit_is_set)
def poison_reached_the_limit(ctx: CheckContext) -> None:
    acks = verdicts(ctx, "order-5")
    if "ACCEPT" in acks:
        raise Unmet("order-5 was accepted, but nobody could charge it. Which error did `judge` catch?")
    tries = f"order-5 was delivered {counted(len(acks), 'time')}: {', '.join(acks)}."
    if acks[-1] == "REJECT" and len(acks) < TRIES:
        raise Unmet(f"{tries} REJECT sets a record aside at once. Might another try have succeeded?")
    if len(acks) != TRIES:
        raise Unmet(f"{tries} The group's limit is {TRIES}. Was it set before the shop ran?")


@poison.requires("The broker has nothing left to hand out", after=poison_reached_the_limit)
def shop_is_settled(ctx: CheckContext) -> None:
    settled(ctx, SHOP, "orders")


# -- locks ------------------------------------------------------------------------------------------------------------

locks = lab.add_check(
    "12_share_locks",
    "See a lock time out",
    hints=(
        "The group's setting is share.record.lock.duration.ms, in milliseconds.",
        "Freeze the holder after it was handed parcel-7, and before the new courier starts. Let it stay frozen.",
        "The courier gets parcel-7 when the lock has timed out: wait for all six values, not for five.",
    ),
)


@locks.requires("A record of couriers is locked for 3 s")
def lock_is_short(ctx: CheckContext) -> None:
    if (duration := group_setting(ctx, COURIERS, LOCK)) != "3000":
        raise Unmet(f"The {LOCK} of {COURIERS} is {duration}. How many milliseconds are 3 seconds?")


@locks.requires("The twelve parcels are settled")
def parcels_are_settled(ctx: CheckContext) -> None:
    existing(ctx, "parcels")
    parcels = set(ctx.values("parcels"))
    if missing := [f"parcel-{n}" for n in range(1, LAST + 1) if f"parcel-{n}" not in parcels]:
        raise Unmet(f"{missing[0]} isn't in the topic parcels.")
    settled(ctx, COURIERS, "parcels")


@locks.requires("A holder has parcel-7, and its process wasn't ended", after=parcels_are_settled)
def holder_has_seven(ctx: CheckContext) -> None:
    holder = ctx.answer("holder", object, "the ConsoleShareConsumer that took parcel-7 and froze")
    values = list(getattr(holder, "values", []))
    if f"parcel-{FIRST}" not in values:
        held = ", ".join(map(str, values)) or "no parcel"
        raise Unmet(f"The holder was handed {held}, not parcel-7. Is `holder` the one that you started last?")
    if not getattr(holder, "alive", False):
        raise Unmet(
            "The process of the holder has ended, and the group gets its parcels back at once. What makes the group wait for "
            "the lock?"
        )


@locks.requires("parcel-7 came to the courier from that lock, as its second delivery", after=holder_has_seven)
def seven_came_again(ctx: CheckContext) -> None:
    delivered = ctx.answer("delivered", list[tuple[str, int]], "(value, delivery count) of each delivery to the courier")
    values = [value for value, _ in delivered]
    if missing := [f"parcel-{n}" for n in range(FIRST, LAST + 1) if f"parcel-{n}" not in values]:
        raise Unmet(f"The courier wasn't handed {missing[0]}. Did you wait for all six?")
    if dict(delivered)[f"parcel-{FIRST}"] < 2:
        raise Unmet("The courier got parcel-7 at its first delivery. Did a holder take it before the courier started?")

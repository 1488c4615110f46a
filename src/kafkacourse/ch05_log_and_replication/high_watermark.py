"""Records that the leader has but no consumer gets: the high watermark and the log end offsets."""

from __future__ import annotations

from kafkalab.checks.brokers import DOWN_VERBS, faulted
from kafkalab.checks.context import CheckContext, Unmet
from kafkalab.checks.lab import Lab
from kafkalab.checks.logs import view_of
from kafkalab.checks.topics import existing, has_shape, in_sync
from kafkalab.checks.wording import counted
from kafkalab.cluster.log_offsets import LogOffsets
from kafkalab.cluster.log_reader import LogView

__all__ = ["lab"]

TOPIC = "payments"
COMMITTED, ALL = 5, 8
AGAIN = "Run the cells again from section 1 on: they bring all brokers back and begin with a new topic."

lab = Lab("05_high_watermark")


def offsets_of(ctx: CheckContext) -> LogOffsets:
    """Return the partition's offsets, as brokers report them."""

    def told(view: LogView) -> bool:
        return view.offsets.high_watermark is not None and set(view.isr) <= view.offsets.ends.keys()

    return view_of(ctx, TOPIC, told).offsets


# -- hidden -----------------------------------------------------------------------------------------------------------

hiding = lab.add_check(
    "05_hidden",
    "Write records that nobody can read yet",
    hints=(
        "A setting of the topic says how many replicas must be in sync. It has to be more than there will be.",
        "Stop one broker, not two, and wait until the ISR has noticed.",
        "With acks=all the leader refuses the write. Which acks asks for the leader's own copy only?",
    ),
)
is_shaped = hiding.requires("payments has 1 partition with 3 replicas")(has_shape(TOPIC, 1, 3))


@hiding.requires("One of its replicas isn't in sync", after=is_shaped)
def one_is_out(ctx: CheckContext) -> None:
    [p] = existing(ctx, TOPIC)
    if p.leader is None:
        raise Unmet(f"The partition has no leader. How many brokers did you stop? {AGAIN}")
    if len(p.isr) != 2:
        raise Unmet(
            f"The ISR has {counted(len(p.isr), 'member')}; the lab asks for two. Which brokers are down, and did the "
            "controller have time to notice?"
        )


@hiding.requires("The leader holds records above the high watermark", after=one_is_out)
def records_are_hidden(ctx: CheckContext) -> None:
    [p], offsets = existing(ctx, TOPIC), offsets_of(ctx)
    end, mark = offsets.ends.get(p.leader if p.leader is not None else -1), offsets.high_watermark
    if end is None or mark is None:
        raise Unmet(
            "The leader doesn't tell its high watermark. A leader that was elected just now may not know it yet, and can't "
            "move it while replicas are missing. Which broker did you stop, the leader or a follower? " + AGAIN
        )
    if end < ALL:
        raise Unmet(
            f"The leader's log ends at offset {end}; the lab asks for {COMMITTED} records and then "
            f"{ALL - COMMITTED} more. What did the delivery reports of the last ones say? {AGAIN}"
        )
    if mark == end:
        raise Unmet(
            f"The high watermark is {mark}, and so is the end of the leader's log: consumers get everything. How many in-sync "
            "replicas does this topic ask for, and how many are there? " + AGAIN
        )
    if (mark, end) != (COMMITTED, ALL):
        raise Unmet(
            f"The high watermark is {mark} and the leader's log ends at {end}. The lab asks for {COMMITTED} records before the "
            f"broker stops, and {ALL - COMMITTED} after. {AGAIN}"
        )


# -- seen -------------------------------------------------------------------------------------------------------------

showing = lab.add_check(
    "05_high_watermark",
    "Let the high watermark catch up",
    hints=(
        "restart starts a broker with its data. It returns when the broker is registered; its replicas may still be catching "
        "up.",
        "cluster.wait_for(lambda view: view.in_sync(…), …) waits for the ISR.",
    ),
)


@showing.requires("A broker went down and came back")
def one_came_back(ctx: CheckContext) -> None:
    if not (ended := faulted(ctx, *DOWN_VERBS)):
        raise Unmet("No broker has been down yet.")
    if ended[-1] not in faulted(ctx, "restart"):
        raise Unmet(f"Broker {ended[-1]} hasn't come back yet.")


is_in_sync = showing.requires("All three replicas of payments are in sync", after=one_came_back)(in_sync(TOPIC))


@showing.requires("High watermark and all log end offsets are the same", after=is_in_sync)
def all_are_even(ctx: CheckContext) -> None:
    offsets = offsets_of(ctx)
    if (mark := offsets.high_watermark) is None or len(offsets.ends) < 3:
        raise Unmet("Not every replica reports its log end offset at this moment. Are all brokers running?")
    if behind := [broker for broker, end in sorted(offsets.ends.items()) if end != mark]:
        raise Unmet(
            f"The high watermark is {mark}, but the log of broker {behind[0]} ends at {offsets.ends[behind[0]]}. Did the "
            "replicas have time to catch up?"
        )
    if mark < ALL:
        raise Unmet(f"All replicas end at offset {mark}. Where are the {ALL} records of the lab?")

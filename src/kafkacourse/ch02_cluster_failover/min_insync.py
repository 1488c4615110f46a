"""A write rejected for lack of in-sync replicas, and the ISR that grows again."""

from __future__ import annotations

from kafkalab.checks.brokers import all_up, faulted
from kafkalab.checks.context import CheckContext, Unmet
from kafkalab.checks.lab import Lab
from kafkalab.checks.topics import asks_for_copies, existing, has_shape, in_sync
from kafkalab.checks.wording import START_OVER, counted, listed_brokers

__all__ = ["lab"]

TOPIC = "orders"

lab = Lab("02_min_insync")

# -- refused ----------------------------------------------------------------------------------------------------------

refusal = lab.add_check(
    "02_min_insync",
    "See a write refused while reads continue",
    hints=(
        "min.insync.replicas is a setting of the topic: NewTopic takes config=.",
        "The followers are the brokers in replicas that aren't the leader. Wait until the ISR has shrunk.",
        "With retries left, the client tries until its delivery.timeout.ms is over, and reports that. Give it retries=0.",
    ),
)
is_shaped = refusal.requires("orders has 1 partition with 3 replicas")(has_shape(TOPIC, 1, 3))

refusal.requires("A write to orders needs 2 replicas in sync", after=is_shaped)(asks_for_copies(TOPIC, 2))


@refusal.requires("Both followers are down, and only the leader is in the ISR", after=is_shaped)
def followers_are_down(ctx: CheckContext) -> None:
    [p] = existing(ctx, TOPIC)
    if p.leader is None:
        raise Unmet("The partition has no leader. The lab asks you to kill the followers, not the leader.")
    if len(p.isr) > 1:
        raise Unmet(
            f"Its ISR has {len(p.isr)} members. Are both followers down, and did you wait until the controller noticed?"
        )


@refusal.requires("You know the error with which the broker refuses", after=followers_are_down)
def error_is_known(ctx: CheckContext) -> None:
    given = ctx.error_name("refused", "the name of the error with which the third order was refused")
    if given in ("_MSG_TIMED_OUT", "_TIMED_OUT"):
        raise Unmet(f"{given} is the client giving up after many retries. How do you get to see the broker's first answer?")
    if given != "NOT_ENOUGH_REPLICAS":
        raise Unmet(
            f"A broker with too few in-sync replicas doesn't answer {given!r}. What did the delivery report's error say?"
        )


@refusal.requires("You can still read the acknowledged orders, and nothing else", after=followers_are_down)
def reads_continue(ctx: CheckContext) -> None:
    found = ctx.values(TOPIC)
    if list(dict.fromkeys(found)) != ["order-1", "order-2"]:  # a cell run twice has sent its order twice
        raise Unmet(
            f"A consumer can read {found or 'nothing'} at this moment. It should be the two orders that were acknowledged "
            "while the ISR had at least two members."
        )


# -- the ISR grows ----------------------------------------------------------------------------------------------------

growth = lab.add_check(
    "02_isr_grows",
    "Let the ISR grow again",
    hints=(
        "restart starts a broker with its data. It returns when the broker is registered; its replicas may still be catching "
        "up.",
        "cluster.wait_for(lambda view: …) waits for what you need to see.",
    ),
)


@growth.requires("Two brokers went down and came back")
def both_came_back(ctx: CheckContext) -> None:
    ended, restarted = set(faulted(ctx, "kill", "stop")), set(faulted(ctx, "restart"))
    if len(ended) < 2:
        raise Unmet(f"Only {counted(len(ended), 'broker')} went down so far. The lab asks for two.")
    if ended - restarted:
        raise Unmet(f"You haven't restarted {listed_brokers(sorted(ended - restarted))} yet.")
    all_up(ctx)


growth.requires("All three replicas of orders are in sync", after=both_came_back)(in_sync(TOPIC))


@growth.requires("orders holds every order except the one that was refused", after=both_came_back)
def orders_are_complete(ctx: CheckContext) -> None:
    existing(ctx, TOPIC)
    found, wanted = ctx.values(TOPIC), ["order-1", "order-2", "order-4", "order-5"]
    if "order-3" in found:
        raise Unmet(
            f"order-3 was refused, but it's in the topic. Did you send it again when more brokers were up? {START_OVER}"
        )
    if missing := [value for value in wanted if value not in found]:
        raise Unmet(f"The topic holds {found or 'nothing'}. What became of {missing[0]}?")
    if list(dict.fromkeys(found)) != wanted:
        raise Unmet(f"The topic holds {found}. The lab sends one order after the other. {START_OVER}")

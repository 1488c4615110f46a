"""A cluster that grows from one broker to three, and a topic ``purchases`` that survives one of them."""

from __future__ import annotations

from collections import Counter

from kafkalab.checks.brokers import DOWN_VERBS, are_up, is_down, nodes
from kafkalab.checks.context import CheckContext, Unmet, text_of
from kafkalab.checks.lab import Lab
from kafkalab.checks.timing import sent_while_down
from kafkalab.checks.topics import (
    asks_for_copies,
    each_once,
    existing,
    has_shape,
    holds_each_once,
    in_sync,
    isr_lacks_only,
    led_by_others,
    still_names,
)
from kafkalab.checks.wording import listed_brokers

__all__ = ["lab"]

PURCHASES, RETURNS = "purchases", "returns"
FIVE = tuple(f"purchase{n}" for n in range(1, 6))
MORE = ("purchase6", "purchase7")
TEN = tuple(f"return{n}" for n in range(1, 11))

lab = Lab("02_atu")

grow = lab.add_check(
    "02_atu_brokers",
    "Grow from one broker to three",
    hints=(
        "A cluster needs no restart to grow: a new node that finds the controller registers itself.",
        "cluster.add_broker() starts one more broker and returns its id.",
    ),
)
three_are_up = grow.requires("Brokers 0, 1 and 2 are up")(are_up(0, 1, 2))


@grow.requires("atu still has one partition, on broker 0", after=three_are_up)
def atu_is_as_before(ctx: CheckContext) -> None:
    found = existing(ctx, "atu")
    if len(found) != 1 or found[0].replicas != (0,):
        raise Unmet(
            "atu should have one partition, on broker 0 only. A new broker doesn't take over existing replicas by itself."
        )


# -- purchases --------------------------------------------------------------------------------------------------------

purchases = lab.add_check(
    "02_atu_purchases",
    "Create a partitioned and replicated topic",
    hints=(
        "kafka-topics.sh --create takes --partitions, --replication-factor and --config name=value, and any broker's address.",
        "answer = !kafka-topics.sh --bootstrap-server {cluster.bootstrap(broker)} --list gives the lines of the answer.",
    ),
)
is_shaped = purchases.requires("purchases has 3 partitions with 3 replicas each")(has_shape(PURCHASES, 3, 3))
purchases.requires("A write to purchases needs 2 replicas in sync", after=is_shaped)(asks_for_copies(PURCHASES, 2))


@purchases.requires("Each broker is the preferred leader of one of them", after=is_shaped)
def preferred_leaders_differ(ctx: CheckContext) -> None:
    leaders = {p.replicas[0] for p in existing(ctx, PURCHASES)}
    if len(leaders) < 3:
        raise Unmet(
            f"Only {listed_brokers(sorted(leaders))} stand first among the replicas. Were all three brokers up when you "
            "created the topic?"
        )


@purchases.requires("Every broker lists the same topics", after=is_shaped)
def lists_are_the_same(ctx: CheckContext) -> None:
    listed = ctx.answer("listed", dict[int, set[str]], "broker → set of topics")
    view = ctx.view()
    for broker in view.brokers:
        if broker not in listed:
            raise Unmet(f"`listed` has no entry for broker {broker}. Ask each broker by its own address.")
        said = {topic for topic in listed[broker] if not topic.startswith("__")}  # not Kafka's own topics
        if missing := sorted({"atu", PURCHASES} - said):
            raise Unmet(f"The list from broker {broker} lacks {missing[0]}. Did you ask before you created the topic?")
        if extra := sorted(said - set(view.topics)):
            raise Unmet(f"The list from broker {broker} has {extra[0]!r}, but there is no such topic.")


messages = lab.add_check(
    "02_atu_messages",
    "Send five purchases",
    hints=(
        "A ConsoleProducer sends several values with one call, one after the other.",
        'ConsoleProducer(cluster, "purchases").send("purchase1", …)',
    ),
)


@messages.requires("purchase1 … purchase5 are in purchases, each once, and nothing else")
def five_and_no_more(ctx: CheckContext) -> None:
    each_once(ctx, PURCHASES, FIVE)
    # The next part sends two more. You may run this check again after that.
    if others := [value for value in ctx.values(PURCHASES) if value not in (*FIVE, *MORE)]:
        raise Unmet(f"{PURCHASES} also holds {others[0]!r}. The lab asks for purchase1 … purchase5 only.")


# -- broker 1 goes and comes back -------------------------------------------------------------------------------------

failover = lab.add_check(
    "02_atu_failover",
    "Shut broker 1 down",
    hints=(
        "Shut down, not killed: which verb of the cluster sends SIGTERM?",
        "cluster.stop_broker(1). Then send with the same producer as before.",
        "A new ConsoleConsumer with from_beginning=True; what wait_for(7) returns is the list to give to check().",
    ),
)
broker_is_down = failover.requires("Broker 1 is down")(is_down(1))


@failover.requires("It was shut down, not killed", after=broker_is_down)
def was_shut_down(ctx: CheckContext) -> None:
    if nodes(ctx)[1].state != "stopped":
        raise Unmet(
            "Broker 1 was killed, so it couldn't hand over what it led. Restart it, wait until it's in sync, and end it with "
            "the verb that sends SIGTERM."
        )


others_lead = failover.requires("Brokers 0 and 2 lead every partition of purchases", after=broker_is_down)(
    led_by_others(PURCHASES, 1)
)
failover.requires("Every ISR holds the other two brokers", after=others_lead)(isr_lacks_only(PURCHASES, 1))
failover.requires("The replicas still include broker 1", after=others_lead)(still_names(PURCHASES, 1))
more_are_there = failover.requires("purchase6 and purchase7 are in purchases, each once")(holds_each_once(PURCHASES, MORE))
failover.requires("You sent these two after broker 1 had gone down", after=more_are_there)(sent_while_down(PURCHASES, MORE, 1))


@failover.requires("You read all seven from the beginning", after=more_are_there)
def all_seven_were_read(ctx: CheckContext) -> None:
    reread = ctx.answer("reread", list[str], "the values that the new consumer read")
    if missing := [value for value in (*FIVE, *MORE) if value not in reread]:
        why = "At which offset did your consumer start?" if missing[0] in FIVE else "Did you send it before the consumer ended?"
        raise Unmet(f"{missing[0]!r} isn't in `reread`. {why}")


ids = lab.add_check(
    "02_atu_ids",
    "Tell partition numbers from broker ids",
    hints=(
        "Only one number in a line of --describe is a partition's. All the others are ids of brokers.",
        "Leader is the broker that leads now. Replicas are the brokers that the copies are assigned to. Isr are the ones "
        "that have kept up.",
    ),
)


@ids.requires("leader_of says which broker leads which partition of purchases")
def leaders_are_right(ctx: CheckContext) -> None:
    leader_of = ctx.answer("leader_of", dict[int, int], "partition → broker")
    actual = {p.partition: p.leader for p in existing(ctx, PURCHASES)}
    if set(leader_of) != set(actual):
        raise Unmet("Its keys should be the partitions of purchases. In a line of --describe, which number is the partition's?")
    if wrong := [p for p in actual if leader_of[p] != actual[p]]:
        unrelated = " A partition's number says nothing about its broker." if leader_of[wrong[0]] == wrong[0] else ""
        raise Unmet(f"Broker {leader_of[wrong[0]]} doesn't lead partition {wrong[0]}.{unrelated}")


@ids.requires("held_by_1 says which partitions are assigned to broker 1, whether it's up or not")
def replicas_are_right(ctx: CheckContext) -> None:
    held = ctx.answer("held_by_1", set[int], "the partitions with a replica on broker 1", may_be_empty=True)
    if held != {p.partition for p in existing(ctx, PURCHASES) if 1 in p.replicas}:
        raise Unmet(
            f"It isn't {sorted(held) or 'none'}. Which column of --describe lists the brokers that a partition is assigned to, "
            "up or down?"
        )


rebalance = lab.add_check(
    "02_atu_rebalance",
    "Give leadership back",
    hints=(
        "A broker that comes back follows everywhere and leads nothing until an election.",
        "Restart it, wait until every ISR is complete, then kafka-leader-election.sh --election-type preferred …",
        "--all-topic-partitions saves you from naming them. Only a replica in the ISR can be elected: wait for it first.",
    ),
)


@rebalance.requires("Broker 1 was down and came back")
def was_down(ctx: CheckContext) -> None:
    verbs = [f.verb for f in ctx.cluster.faults if f.broker == 1 and f.verb in (*DOWN_VERBS, "restart")]
    if not verbs:
        raise Unmet("Broker 1 never went down.")
    if verbs[-1] != "restart":
        raise Unmet("You haven't restarted broker 1 yet.")


all_are_up = rebalance.requires("All three brokers are up", after=was_down)(are_up(0, 1, 2))
is_in_sync = rebalance.requires("All replicas of purchases are in sync", after=all_are_up)(in_sync(PURCHASES))


@rebalance.requires("The preferred leader leads each partition of purchases", after=is_in_sync)
def preferred_leaders_lead(ctx: CheckContext) -> None:
    for p in existing(ctx, PURCHASES):
        if p.leader != p.replicas[0]:
            raise Unmet(
                f"Broker {p.leader} leads partition {p.partition}, but broker {p.replicas[0]} stands first among its replicas. "
                "Which command moves leadership back to the preferred leader?"
            )


# -- returns ----------------------------------------------------------------------------------------------------------

counts = lab.add_check(
    "02_atu_counts",
    "Combine five partitions, two replicas and three brokers",
    hints=(
        "You can choose any number of partitions. What is the largest number of replicas that three brokers can hold?",
        "--partitions 5 --replication-factor 2, while all three brokers are up.",
    ),
)
returns_are_shaped = counts.requires("returns has 5 partitions with 2 replicas each")(has_shape(RETURNS, 5, 2))


@counts.requires("Every broker has some of its ten replicas", after=returns_are_shaped)
def replicas_are_spread(ctx: CheckContext) -> None:
    used = Counter(broker for p in existing(ctx, RETURNS) for broker in p.replicas)
    if unused := [i for i in nodes(ctx) if not used[i]]:
        raise Unmet(f"Broker {unused[0]} has no replica of it. Were all three brokers up when you created the topic?")


order = lab.add_check(
    "02_atu_order",
    "See the order in each partition",
    hints=(
        "A consumer doesn't have to join a group: you can assign partitions to it.",
        "ConsoleConsumer(cluster, topic, partitions=[p], from_beginning=True), or Consumer.assign([TopicPartition(topic, p, "
        "0)]).",
        "How many to wait for: consumer.get_watermark_offsets(TopicPartition(topic, p)) returns the first offset and the one "
        "after the last.",
    ),
)


@order.requires("return1 … return10 are in returns, each once, in more than one partition")
def ten_are_spread(ctx: CheckContext) -> None:
    if len({m.partition() for m in each_once(ctx, RETURNS, TEN)}) < 2:
        raise Unmet(
            "All ten are in one partition. Send them one at a time and without a key, so that they spread over several."
        )


@order.requires("Each partition has them in the order in which you sent them", after=ten_are_spread)
def partitions_are_in_order(ctx: CheckContext) -> None:
    records = each_once(ctx, RETURNS, TEN)
    for number in {m.partition() for m in records}:
        own = [text_of(m) for m in records if m.partition() == number]
        if own != sorted(own, key=TEN.index):
            raise Unmet(f"Partition {number} holds {', '.join(own)} in this order. Did you send them one after the other?")


@order.requires("by_partition shows each partition as you read it", after=ten_are_spread)
def readings_are_right(ctx: CheckContext) -> None:
    by_partition = ctx.answer("by_partition", dict[int, list[str]], "partition → values in the order read")
    records = each_once(ctx, RETURNS, TEN)
    partitions = [p.partition for p in existing(ctx, RETURNS)]
    if set(by_partition) != set(partitions):
        raise Unmet("It should have an entry for each of the five partitions, even for an empty one.")
    for number in partitions:
        said, true = by_partition[number], [text_of(m) for m in records if m.partition() == number]
        if sorted(said) != sorted(true):
            raise Unmet(f"Partition {number} holds other messages. Does your consumer read this partition only, and all of it?")
        if said != true:
            raise Unmet(
                f"The values of partition {number} are in another order in the log. Keep them as you read them: sorted as "
                "text, return10 comes before return2."
            )

"""A cluster configured by hand, and a topic, its groups and its brokers broken step by step."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from kafkalab.checks.answers import WrongType, convert
from kafkalab.checks.brokers import are_up, is_down
from kafkalab.checks.context import CheckContext, Unmet
from kafkalab.checks.groups import existing_group, has_members, is_assigned_evenly, unread
from kafkalab.checks.lab import Lab
from kafkalab.checks.requirements import Probe
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
from kafkalab.checks.wording import counted

__all__ = ["lab"]

TOPIC, GROUP = "my-failsafe-topic", "mygroup"
GREETINGS = ("Hi mom", "How are you?", "How are things going?", "Good!", "message 1", "message 2", "message 3")
ORDINALS = ("1st", "2nd", "3rd")

lab = Lab("02_failsafe")


def numbered(first: int, last: int) -> tuple[str, ...]:
    """Return the values of the messages, from ``m1`` or a later one."""
    return tuple(f"m{n}" for n in range(first, last + 1))


def has_committed(values: Sequence[str]) -> Probe:
    """Return a probe: ``mygroup`` must have committed offsets after all records with these values."""

    def probe(ctx: CheckContext) -> None:
        records = each_once(ctx, TOPIC, values)
        if left := unread(ctx, existing_group(ctx, GROUP), TOPIC, records):
            raise Unmet(f"{GROUP} has no committed offset behind {left[0]!r}. Is a member alive to read it, and did you wait?")

    return probe


# -- three configurations ---------------------------------------------------------------------------------------------

three_brokers = lab.add_check(
    "02_three_brokers",
    "Write three configurations for three brokers",
    hints=(
        "Two nodes on one machine can't share an id, a port or a data folder. Which lines of the file name them?",
        "node.id, both ports in listeners, and log.dirs differ. controller.quorum.bootstrap.servers doesn't.",
        'Replace in the text of server-0: server_0.replace("node.id=0", f"node.id={n}"), and so on; write_text() it.',
    ),
)


def folder(ctx: CheckContext) -> Path:
    """Return the folder with the learner's files."""
    return ctx.answer("folder", Path, "the folder with your files")


def configurations(ctx: CheckContext) -> dict[int, dict[str, str]]:
    """Return the settings of ``server-0.properties`` … by number. If a key appears twice the last one wins, as in Kafka."""
    found = {}
    for n in range(3):
        path = folder(ctx) / f"server-{n}.properties"
        if not path.is_file():
            raise Unmet(f"There is no {path.name} in your folder.")
        lines = (line.strip() for line in path.read_text().splitlines())
        pairs = (re.split(r"\s*[=:]\s*|\s+", line, maxsplit=1) for line in lines if line and line[0] not in "#!")
        found[n] = {pair[0]: pair[1] if len(pair) > 1 else "" for pair in pairs}
    return found


def ports(settings: Mapping[str, str]) -> dict[str, str]:
    """Return each listener's port."""
    return dict(re.findall(r"(\w+)://[^:,]*:(\d+)", settings.get("listeners", "")))


def data_folder(settings: Mapping[str, str]) -> str:
    """Return the node's data folder."""
    return settings.get("log.dirs") or settings.get("log.dir", "")


@three_brokers.requires("server-0, server-1 and server-2.properties are in your folder")
def files_are_there(ctx: CheckContext) -> None:
    configurations(ctx)


@three_brokers.requires("Each node has its own node.id", after=files_are_there)
def ids_differ(ctx: CheckContext) -> None:
    for n, settings in configurations(ctx).items():
        if (found := settings.get("node.id", settings.get("broker.id"))) != str(n):
            raise Unmet(f"server-{n}.properties has node.id={found}. How do brokers tell each other apart?")


@three_brokers.requires("No two listeners share a port", after=files_are_there)
def ports_differ(ctx: CheckContext) -> None:
    seen: dict[str, int] = {}
    for n, settings in configurations(ctx).items():
        for listener in ("PLAINTEXT", "CONTROLLER"):
            port = ports(settings).get(listener)
            if port is None:
                raise Unmet(f"server-{n}.properties has no listener {listener}. Each of these nodes is broker and controller.")
            if port in seen:
                owner = "this node" if seen[port] == n else f"node {seen[port]}"
                raise Unmet(
                    f"The {listener} listener of node {n} uses port {port}, which {owner} uses already. Only one listener can "
                    "have a port."
                )
            seen[port] = n


@three_brokers.requires("No two nodes share a data folder", after=files_are_there)
def folders_differ(ctx: CheckContext) -> None:
    seen: dict[str, int] = {}
    for n, settings in configurations(ctx).items():
        path = data_folder(settings)
        if not path:
            raise Unmet(f"server-{n}.properties doesn't say where node {n} keeps its data.")
        if path in seen:
            raise Unmet(f"Nodes {seen[path]} and {n} would both write to {path}. The second one would refuse to start.")
        seen[path] = n


@three_brokers.requires(
    "All three files name the same controllers, at the ports where they listen", after=(files_are_there, ports_differ)
)
def controllers_are_the_same(ctx: CheckContext) -> None:
    name, settings = "controller.quorum.bootstrap.servers", configurations(ctx)
    named = {n: set(re.findall(r":(\d+)", s.get(name, ""))) for n, s in settings.items()}
    if named[0] != named[1] or named[0] != named[2]:
        raise Unmet(f"The files don't have the same {name}. Do these addresses belong to one node, or to the cluster?")
    for n in settings:
        if (listens := ports(settings[n])["CONTROLLER"]) not in named[0]:
            raise Unmet(
                f"{name} names {'the ports ' + ', '.join(sorted(named[0])) if named[0] else 'no port'}, but the CONTROLLER "
                f"listener of node {n} uses port {listens}."
            )


@three_brokers.requires("Committed offsets survive the loss of a broker", after=files_are_there)
def offsets_are_replicated(ctx: CheckContext) -> None:
    for n, settings in configurations(ctx).items():
        factor = settings.get("offsets.topic.replication.factor", "3")  # Kafka's default
        if not factor.isdigit() or int(factor) < 2:
            raise Unmet(
                f"With server-{n}.properties, a consumer group could lose its committed offsets together with one broker. In "
                "which topic does Kafka keep them, and how many replicas does it have?"
            )


@three_brokers.requires(
    "Each data folder is formatted for its node, and all for one cluster", after=(ids_differ, folders_differ)
)
def folders_are_formatted(ctx: CheckContext) -> None:
    clusters = set()
    for n, settings in configurations(ctx).items():
        meta = folder(ctx) / data_folder(settings) / "meta.properties"
        if not meta.is_file():
            raise Unmet(
                f"The data folder of node {n} isn't formatted. Run the cell with kafka-storage.sh after you write the files."
            )
        found = dict(line.partition("=")[::2] for line in meta.read_text().splitlines() if "=" in line)
        if found.get("node.id") != str(n):
            raise Unmet(
                f"The data folder of server-{n}.properties was formatted for node {found.get('node.id')}. Run the cell with "
                "kafka-storage.sh again: it starts over."
            )
        clusters.add(found.get("cluster.id"))
    if len(clusters) > 1:
        raise Unmet("The folders were formatted for different clusters. Format all three with the same id.")


@three_brokers.requires("start-1st, start-2nd and start-3rd-server.sh start nodes 0, 1 and 2", after=files_are_there)
def scripts_start_the_nodes(ctx: CheckContext) -> None:
    for n, ordinal in enumerate(ORDINALS):
        path = folder(ctx) / f"start-{ordinal}-server.sh"
        if not path.is_file():
            raise Unmet(f"There is no {path.name} in your folder.")
        text = path.read_text()
        if "kafka-server-start.sh" not in text:
            raise Unmet(f"{path.name} doesn't run kafka-server-start.sh.")
        if (named := set(re.findall(r"server-\d\.properties", text))) != {f"server-{n}.properties"}:
            raise Unmet(f"{path.name} uses {', '.join(sorted(named)) or 'no file of settings'}. Which node is the {ordinal}?")


three_brokers.requires("A cluster of three brokers is up")(are_up(0, 1, 2))

# -- the topic --------------------------------------------------------------------------------------------------------

failsafe = lab.add_check(
    "02_failsafe",
    "Create a topic that survives",
    hints=(
        "One number decides into how many partitions the topic is split, another one how many brokers keep a copy of each.",
        "NewTopic(name, num_partitions=…, replication_factor=…, config={…}), passed to admin.create_topics(). Wait for the "
        "result.",
    ),
)
is_shaped = failsafe.requires(f"{TOPIC} has 13 partitions with 3 replicas each")(has_shape(TOPIC, 13, 3))
failsafe.requires("A write with acks=all needs 2 replicas in sync", after=is_shaped)(asks_for_copies(TOPIC, 2))
failsafe.requires("All replicas are in sync", after=is_shaped)(in_sync(TOPIC))


@failsafe.requires("The preferred leaders are spread evenly over the brokers", after=is_shaped)
def preferred_leaders_are_spread(ctx: CheckContext) -> None:
    # The current leaders may have moved for other reasons.
    counts = Counter(p.replicas[0] for p in existing(ctx, TOPIC))
    shares = [counts[broker] for broker in ctx.view().brokers]
    if max(shares) - min(shares) > 1:
        raise Unmet(
            f"The brokers are the preferred leaders of {', '.join(map(str, shares))} partitions. Did you assign the replicas "
            "yourself? Kafka would have spread them evenly."
        )


# -- groups -----------------------------------------------------------------------------------------------------------

publish_subscribe = lab.add_check(
    "02_publish_subscribe",
    "Let three groups read everything",
    hints=(
        "What must three consumers not have in common, so that each gets everything?",
        "A ConsoleConsumer without group=… gets a group of its own. Where does it start if it joins after the first four "
        "messages?",
        "from_beginning=True; then consumer.wait_for(7) and consumer.wait_committed().",
    ),
)
greetings_are_there = publish_subscribe.requires(f"The seven messages are in {TOPIC}, each once")(
    holds_each_once(TOPIC, GREETINGS)
)


@publish_subscribe.requires("Three groups have each read all seven", after=greetings_are_there)
def three_groups_read_everything(ctx: CheckContext) -> None:
    records = each_once(ctx, TOPIC, GREETINGS)
    groups = {i: g for i, g in ctx.view().groups.items() if i != GROUP and any(topic == TOPIC for topic, _ in g.lag)}
    if len(groups) < 3:
        raise Unmet(
            f"{counted(len(groups), 'group')} committed offsets in the topic. How many groups does it take for three consumers "
            "to get everything each?"
        )
    left = {i: unread(ctx, group, TOPIC, records) for i, group in groups.items()}
    if sum(not values for values in left.values()) < 3:
        late = next(i for i, values in left.items() if values)
        raise Unmet(
            f"{late} missed {left[late][0]!r}, for example. Where does a new group start in the log, and did you wait until "
            "the consumer had read everything?"
        )


load_sharing = lab.add_check(
    "02_load_sharing",
    "Share the work in one group",
    hints=(
        "What must three consumers have in common, so that each message goes to one of them?",
        'group="mygroup" for each. wait_until_shared(*members) returns when every partition is assigned.',
        "Send after that. Then wait until the members together have read all seven, and until each has committed.",
    ),
)
first_are_there = load_sharing.requires(f"m1 … m7 are in {TOPIC}, each once")(holds_each_once(TOPIC, numbered(1, 7)))
three_members = load_sharing.requires("mygroup has three members")(has_members(GROUP, 3))
load_sharing.requires("Each partition is assigned to one member, and the split is even", after=three_members)(
    is_assigned_evenly(GROUP, TOPIC)
)
load_sharing.requires("mygroup has read m1 … m7", after=(first_are_there, three_members))(has_committed(numbered(1, 7)))


consumer_failover = lab.add_check(
    "02_consumer_failover",
    "Let two members take over from three",
    hints=(
        "A consumer can end in two ways. Both will do; one is faster.",
        "members[2].close() or members[2].kill(); then wait_until_shared() of the other two.",
    ),
)
next_are_there = consumer_failover.requires(f"m8 … m14 are in {TOPIC}, each once")(holds_each_once(TOPIC, numbered(8, 14)))
two_members = consumer_failover.requires("mygroup has two members")(has_members(GROUP, 2))
consumer_failover.requires("Each partition is assigned to one member, and the split is even", after=two_members)(
    is_assigned_evenly(GROUP, TOPIC)
)
consumer_failover.requires("mygroup has read m8 … m14", after=(next_are_there, two_members))(has_committed(numbered(8, 14)))

# -- brokers ----------------------------------------------------------------------------------------------------------

describe = lab.add_check(
    "02_describe",
    "Find out who leads what",
    hints=(
        "admin.describe_topics() takes a TopicCollection and returns a future per topic; its result has .partitions.",
        "A partition has .id, .leader, .replicas and .isr; the last three are nodes, and a node has an .id.",
    ),
)


@describe.requires("The table shows leader, replicas and ISR of every partition")
def table_is_right(ctx: CheckContext) -> None:
    given = ctx.answer("table", dict[int, object], "partition → (leader, replicas, isr), as broker ids")
    partitions = {p.partition: p for p in existing(ctx, TOPIC)}
    if extra := [key for key in given if key not in partitions]:
        raise Unmet(f"The table has a row {extra[0]!r}, but the topic has no such partition.")
    if missing := [p for p in partitions if p not in given]:
        raise Unmet(f"The table has no row for partition {missing[0]}.")
    for number, p in partitions.items():
        try:
            leader, replicas, isr = convert(given[number], tuple[int, list[int], set[int]])
        except WrongType:
            raise Unmet(
                f"Row {number} is {given[number]!r}. It should be (leader, replicas, isr), all as broker ids. A node has its "
                "id as .id."
            ) from None
        if leader != p.leader:
            raise Unmet(f"Broker {leader} doesn't lead partition {number}.")
        if sorted(replicas) != sorted(p.replicas):
            raise Unmet(f"Partition {number} has replicas on other brokers than {replicas}.")
        if replicas != list(p.replicas):
            raise Unmet(f"The replicas of partition {number} are right, but not their order. What is the first one?")
        if isr != set(p.isr):
            raise Unmet(f"The ISR of partition {number} isn't {sorted(isr)}.")


broker_failover = lab.add_check(
    "02_broker_failover",
    "Kill broker 0",
    hints=(
        "The map has a button for it, the cluster a verb.",
        "cluster.kill(0). The controller needs a moment to notice; cluster.wait_for(condition, what) waits for what you want "
        "to see.",
        "The condition gets a view: lambda view: view.moved_from(TOPIC, 0) and view.out_of_sync(TOPIC, 0).",
    ),
)
broker_is_down = broker_failover.requires("Broker 0 is down")(is_down(0))
others_lead = broker_failover.requires(f"Brokers 1 and 2 lead every partition of {TOPIC}", after=broker_is_down)(
    led_by_others(TOPIC, 0)
)
broker_failover.requires("Every ISR holds the other two brokers", after=others_lead)(isr_lacks_only(TOPIC, 0))
broker_failover.requires("The replicas still include broker 0", after=others_lead)(still_names(TOPIC, 0))

failover_proof = lab.add_check(
    "02_failover_proof",
    "Prove that m15 and m16 arrive",
    hints=(
        "You don't have to start anything again, neither the producer nor the members of mygroup.",
        "Send with the same producer, wait until the two members together have read both, then until both have committed.",
    ),
)
failover_proof.requires("Broker 0 is down")(is_down(0))
last_are_there = failover_proof.requires(f"m15 and m16 are in {TOPIC}, each once")(holds_each_once(TOPIC, numbered(15, 16)))
failover_proof.requires("You sent them after broker 0 had gone down", after=last_are_there)(
    sent_while_down(TOPIC, numbered(15, 16), 0)
)
failover_proof.requires("mygroup has read them", after=last_are_there)(has_committed(numbered(15, 16)))

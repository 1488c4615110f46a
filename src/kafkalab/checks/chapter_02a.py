"""Chapter 02, first half: the failsafe topic and its cluster broken step by step; the ATU lab and its errata."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from confluent_kafka import Message

from kafkalab.checks.common import answer, counted, existing, has_shape, listed_brokers
from kafkalab.checks.lab import Lab, Requirement, Unmet
from kafkalab.checks.sight import Sight, text_of
from kafkalab.cluster import GroupView

__all__ = ["LABS"]

_FAILSAFE, _GROUP = "my-failsafe-topic", "mygroup"
_GREETINGS = ("Hi mom", "How are you?", "How are things going?", "Good!", "message 1", "message 2", "message 3")
_DOWN = ("dead", "stopped")


# -- what several labs ask ------------------------------------------------------------------------------------------


def _in_sync(topic: str) -> Callable[[Sight], None]:
    def probe(sight: Sight) -> None:
        for p in existing(sight, topic):
            if missing := sorted(set(p.replicas) - set(p.isr)):
                raise Unmet(
                    f"The ISR of partition {p.partition} lacks {listed_brokers(missing)}. Does every broker run, and had it the "
                    "time to catch up?"
                )

    return probe


def _running(sight: Sight, ids: Sequence[int]) -> None:
    brokers = sight.view().brokers
    up = [i for i, b in brokers.items() if b.state == "up"]
    if absent := [i for i in ids if i not in brokers]:
        raise Unmet(f"The cluster has {listed_brokers(brokers)}. There should be {listed_brokers(absent)}, too.")
    if down := [i for i in ids if i not in up]:
        raise Unmet(f"Broker {down[0]} is {brokers[down[0]].state}.")


def _up(*ids: int) -> Callable[[Sight], None]:
    return lambda sight: _running(sight, ids)


def _is_down(broker: int) -> Callable[[Sight], None]:
    def probe(sight: Sight) -> None:
        brokers = sight.view().brokers
        if broker not in brokers:
            raise Unmet(f"There is no broker {broker}. The cluster has {listed_brokers(brokers)}.")
        down = [i for i, b in brokers.items() if b.state in _DOWN]
        if broker in down:
            return
        if down:
            raise Unmet(f"Broker {down[0]} is down, and broker {broker} is {brokers[broker].state}. Which one does the text name?")
        raise Unmet(f"Broker {broker} is {brokers[broker].state}.")

    return probe


def _led_by_the_others(topic: str, dead: int) -> Callable[[Sight], None]:
    def probe(sight: Sight) -> None:
        for p in existing(sight, topic):
            if p.leader == dead:
                raise Unmet(
                    f"Partition {p.partition} is still led by broker {dead}. Is it down? And if so, was there time for the "
                    "controller to notice?"
                )
            if p.leader is None:
                raise Unmet(f"Partition {p.partition} has no leader. Are enough brokers left?")

    return probe


def _isr_without(topic: str, dead: int) -> Callable[[Sight], None]:
    def probe(sight: Sight) -> None:
        for p in existing(sight, topic):
            if dead in p.isr:
                raise Unmet(f"Broker {dead} is still in the ISR of partition {p.partition}. Is it down, and did you wait?")
            if missing := sorted(set(p.replicas) - {dead} - set(p.isr)):
                raise Unmet(
                    f"The ISR of partition {p.partition} lacks {listed_brokers(missing)}, too. Only broker {dead} was to go down."
                )

    return probe


def _replicas_still_name(topic: str, dead: int) -> Callable[[Sight], None]:
    def probe(sight: Sight) -> None:
        moved = [p.partition for p in existing(sight, topic) if dead not in p.replicas]
        if moved:
            raise Unmet(
                f"The replicas of partition {moved[0]} do not name broker {dead}. They were planned elsewhere; nothing of that "
                "kind is needed for a failover."
            )

    return probe


def _messages(sight: Sight, topic: str, wanted: Sequence[str]) -> list[Message]:
    """The wanted messages' records: each must be there exactly once."""
    existing(sight, topic)
    records = [m for m in sight.records(topic) if text_of(m) in wanted]
    counts = Counter(text_of(m) for m in records)
    if not counts:
        raise Unmet(f"None of {wanted[0]} … {wanted[-1]} is in {topic} yet.")
    if missing := [value for value in wanted if value not in counts]:
        raise Unmet(f"{missing[0]!r} is not in {topic}.")
    if twice := [value for value in wanted if counts[value] > 1]:
        raise Unmet(
            f"{twice[0]!r} is in {topic} {counts[twice[0]]} times: was the cell run more than once? Begin again with a new cluster "
            "(restart the kernel)."
        )
    return records


def _sent(topic: str, wanted: Sequence[str]) -> Callable[[Sight], None]:
    def probe(sight: Sight) -> None:
        _messages(sight, topic, wanted)

    return probe


def _unread(sight: Sight, group: GroupView, topic: str, records: Iterable[Message]) -> list[str]:
    """Which of these records stand at or beyond the group's committed offsets."""
    ends = sight.end_offsets(topic)
    committed = {p: ends[p] - lag for (name, p), lag in group.lag.items() if name == topic}
    return [text_of(m) for m in records if m.offset() >= committed.get(m.partition(), 0)]


def _group(sight: Sight) -> GroupView:
    groups = sight.view().groups
    if _GROUP not in groups:
        told = ", ".join(groups) or "none"
        raise Unmet(f"There is no consumer group {_GROUP!r}. Groups: {told}.")
    return groups[_GROUP]


def _members(number: int) -> Callable[[Sight], None]:
    def probe(sight: Sight) -> None:
        members = _group(sight).members
        if len(members) != number:
            many = len(members) > number
            more = " One that was killed counts as a member until its session has timed out." if many else ""
            raise Unmet(f"{_GROUP} has {counted(len(members), 'member')}, not {number}.{more}")

    return probe


def _shared_evenly(sight: Sight) -> None:
    group = _group(sight)
    owners = Counter(partition for member in group.members for topic, partition in member.partitions if topic == _FAILSAFE)
    if not owners:
        raise Unmet(f"Nobody in {_GROUP} owns a partition of {_FAILSAFE}. Did you wait until the group had settled?")
    if free := [p.partition for p in existing(sight, _FAILSAFE) if p.partition not in owners]:
        raise Unmet(f"Partition {free[0]} has no owner in {_GROUP}. Did you wait until the group had settled?")
    sizes = sorted(sum(topic == _FAILSAFE for topic, _ in member.partitions) for member in group.members)
    if sizes[-1] - sizes[0] > 1:
        raise Unmet(f"The members own {', '.join(map(str, sizes))} partitions. Did you wait until the group had settled?")


def _read_by_group(wanted: Sequence[str]) -> Callable[[Sight], None]:
    def probe(sight: Sight) -> None:
        records = _messages(sight, _FAILSAFE, wanted)
        if left := _unread(sight, _group(sight), _FAILSAFE, records):
            raise Unmet(f"{_GROUP} has not committed {left[0]!r} as read. Is a member alive to read it, and did you wait?")

    return probe


def _numbered(first: int, last: int) -> tuple[str, ...]:
    return tuple(f"m{n}" for n in range(first, last + 1))


def _answer(sight: Sight, name: str, what: str) -> Mapping:
    given = answer(sight, name, what)
    if not isinstance(given, Mapping):
        raise Unmet(f"{name} should be a dictionary ({what}), not a {type(given).__name__}.")
    return given


# -- three brokers, by hand -----------------------------------------------------------------------------------------


def _configurations(sight: Sight) -> dict[int, dict[str, str]]:
    """Settings of ``server-0.properties`` … by number; where a key is given twice the last one wins, as in Kafka."""
    folder = sight.answers.get("folder")
    if not folder:
        raise Unmet("Give check() the folder of your files as folder=….")
    found = {}
    for n in range(3):
        path = Path(str(folder), f"server-{n}.properties")
        if not path.is_file():
            raise Unmet(f"There is no {path.name} in your folder.")
        lines = (line.strip() for line in path.read_text().splitlines())
        pairs = (line.partition("=") for line in lines if line and not line.startswith("#"))
        found[n] = {key.strip(): value.strip() for key, _, value in pairs}
    return found


def _ports(settings: Mapping[str, str]) -> dict[str, str]:
    """Port by listener."""
    return dict(re.findall(r"(\w+)://[^:,]*:(\d+)", settings.get("listeners", "")))


def _own_ids(sight: Sight) -> None:
    for n, settings in _configurations(sight).items():
        if settings.get("node.id") != str(n):
            raise Unmet(f"server-{n}.properties has node.id={settings.get('node.id')}. By what do the brokers know each other?")


def _own_ports(sight: Sight) -> None:
    seen: dict[str, int] = {}
    for n, settings in _configurations(sight).items():
        for listener in ("PLAINTEXT", "CONTROLLER"):
            port = _ports(settings).get(listener)
            if port is None:
                raise Unmet(f"server-{n}.properties has no listener {listener}. Each of these nodes is broker and controller.")
            if port in seen:
                both = "The same node" if seen[port] == n else f"Node {seen[port]}"
                raise Unmet(
                    f"{both} listens on port {port}, where node {n} wants to listen, too ({listener}). On one machine a port has "
                    "one owner."
                )
            seen[port] = n


def _own_folders(sight: Sight) -> None:
    seen: dict[str, int] = {}
    for n, settings in _configurations(sight).items():
        folder = settings.get("log.dirs", "")
        if not folder:
            raise Unmet(f"server-{n}.properties does not say where node {n} keeps its data.")
        if folder in seen:
            raise Unmet(f"Nodes {seen[folder]} and {n} would both write to {folder}. The second one to start would refuse.")
        seen[folder] = n


def _same_voters(sight: Sight) -> None:
    configurations = _configurations(sight)
    lists = {n: settings.get("controller.quorum.voters", "") for n, settings in configurations.items()}
    if len(set(lists.values())) > 1:
        raise Unmet(
            "The files do not name the same controller.quorum.voters. To elect a leader by majority, all must agree who votes."
        )
    voters = dict(re.findall(r"(\d+)@[^:,]*:(\d+)", lists[0]))
    for n, settings in configurations.items():
        sought, port = voters.get(str(n)), _ports(settings).get("CONTROLLER")
        if sought != port:
            raise Unmet(f"controller.quorum.voters looks for node {n} on port {sought}; its CONTROLLER listener is on {port}.")


def _offsets_replicated(sight: Sight) -> None:
    for n, settings in _configurations(sight).items():
        factor = settings.get("offsets.topic.replication.factor", "3")  # Kafka's default
        if not factor.isdigit() or int(factor) < 2:
            raise Unmet(
                f"In server-{n}.properties, think of the consumer groups: where does Kafka keep their offsets, and on how many "
                "brokers? Your topics would survive the death of one, your consumers would not."
            )


def _formatted(sight: Sight) -> None:
    clusters = {}
    for n, settings in _configurations(sight).items():
        meta = Path(str(sight.answers["folder"]), settings.get("log.dirs", ""), "meta.properties")
        if not meta.is_file():
            raise Unmet(
                f"The data folder of node {n} is not formatted. Run the cell with kafka-storage.sh again, after you have written "
                "the files."
            )
        found = dict(line.partition("=")[::2] for line in meta.read_text().splitlines() if "=" in line)
        if found.get("node.id") != str(n):
            raise Unmet(
                f"The data folder of server-{n}.properties was formatted for node {found.get('node.id')}. Run the cell with "
                "kafka-storage.sh again: it begins anew."
            )
        clusters[n] = found.get("cluster.id")
    if len(set(clusters.values())) > 1:
        raise Unmet("The folders were formatted for different clusters. Format all three with the same id.")


def _start_scripts(sight: Sight) -> None:
    _configurations(sight)
    for n, ordinal in enumerate(("1st", "2nd", "3rd")):
        path = Path(str(sight.answers["folder"]), f"start-{ordinal}-server.sh")
        if not path.is_file():
            raise Unmet(f"There is no {path.name} in your folder.")
        named = re.findall(r"server-(\d)\.properties", path.read_text())
        if "kafka-server-start.sh" not in path.read_text():
            raise Unmet(f"{path.name} does not run kafka-server-start.sh.")
        if named != [str(n)]:
            files = ", ".join(f"server-{m}.properties" for m in named) or "no file"
            raise Unmet(f"{path.name} starts with {files}. Which node is the {ordinal}?")


# -- the failsafe topic ---------------------------------------------------------------------------------------------


def _preferred_leaders_spread(sight: Sight) -> None:
    # The first replica of each partition: who leads at this moment may have moved for reasons of its own.
    counts = Counter(p.replicas[0] for p in existing(sight, _FAILSAFE))
    shares = [counts[broker] for broker in sight.view().brokers]
    if max(shares) - min(shares) > 1:
        raise Unmet(
            f"The brokers lead {', '.join(map(str, shares))} partitions by plan. Did you name the replicas yourself? Kafka would "
            "have spread them evenly."
        )


def _three_groups_heard_all(sight: Sight) -> None:
    records = _messages(sight, _FAILSAFE, _GREETINGS)
    groups = {i: g for i, g in sight.view().groups.items() if i != _GROUP and any(topic == _FAILSAFE for topic, _ in g.lag)}
    if len(groups) < 3:
        raise Unmet(
            f"{counted(len(groups), 'group')} read the topic so far. How many does it take for three consumers to get everything each?"
        )
    unread = {i: _unread(sight, group, _FAILSAFE, records) for i, group in groups.items()}
    heard = [i for i, left in unread.items() if not left]
    if len(heard) < 3:
        behind = next(i for i, left in unread.items() if left)
        raise Unmet(
            f"Only {len(heard)} of these groups read all seven. {behind} missed {unread[behind][0]!r}, for example: where does a "
            "consumer begin that comes late, and did you wait for it?"
        )


def _table_is_right(sight: Sight) -> None:
    given = _answer(sight, "table", "{partition: (leader, replicas, isr)}, with broker ids")
    partitions = {p.partition: p for p in existing(sight, _FAILSAFE)}
    if extra := [key for key in given if key not in partitions]:
        raise Unmet(f"The table has a row {extra[0]!r}, which is no partition of the topic. Its keys are partition numbers, from 0.")
    if missing := [p for p in partitions if p not in given]:
        raise Unmet(f"The table has no row for partition {missing[0]}.")
    for number, p in partitions.items():
        row = given[number]
        if not isinstance(row, Sequence) or isinstance(row, str) or len(row) != 3:
            raise Unmet(f"Row {number} should be (leader, replicas, isr).")
        leader, replicas, isr = row[0], list(row[1]), set(row[2])
        if not isinstance(leader, int) or not all(isinstance(b, int) for b in (*replicas, *isr)):
            raise Unmet(f"Row {number} should hold broker ids (numbers). A node of the answer has its id as .id.")
        if leader != p.leader:
            raise Unmet(f"The leader of partition {number} is another one.")
        if replicas != list(p.replicas):
            if sorted(replicas) == sorted(p.replicas):
                raise Unmet(f"The replicas of partition {number} are right, but not in their order: what is the first one?")
            raise Unmet(f"The replicas of partition {number} are others.")
        if isr != set(p.isr):
            raise Unmet(f"The ISR of partition {number} is another one.")


# -- the ATU lab ----------------------------------------------------------------------------------------------------

_PURCHASES, _RETURNS = "purchases", "returns"
_FIVE = tuple(f"purchase{n}" for n in range(1, 6))
_MORE = ("purchase6", "purchase7")
_TEN = tuple(f"return{n}" for n in range(1, 11))


def _atu_as_before(sight: Sight) -> None:
    found = existing(sight, "atu")
    if len(found) != 1 or found[0].replicas != (0,):
        raise Unmet("atu should still be as it was: one partition, on broker 0 only. New brokers take over nothing by themselves.")


def _distinct_leaders(sight: Sight) -> None:
    leaders = {p.replicas[0] for p in existing(sight, _PURCHASES)}
    if len(leaders) < 3:
        raise Unmet(
            f"By plan all partitions of {_PURCHASES} are led by {listed_brokers(sorted(leaders))}. Were all three brokers there when you "
            "made it?"
        )


def _same_list_everywhere(sight: Sight) -> None:
    given = _answer(sight, "listed", "{broker: set of topics}")
    there = set(sight.view().topics)
    for broker in sight.view().brokers:
        if broker not in given:
            raise Unmet(f"There is no list from broker {broker} in it. Ask each broker by its own address.")
        said = {str(topic) for topic in given[broker]} - {"__consumer_offsets"}
        if wanted := sorted({"atu", _PURCHASES} - said):
            raise Unmet(f"The list from broker {broker} lacks {wanted[0]}. Was it made before the topic?")
        if extra := sorted(said - there):
            raise Unmet(f"The list from broker {broker} has {extra[0]!r}, which is no topic.")


def _five_and_no_more(sight: Sight) -> None:
    _messages(sight, _PURCHASES, _FIVE)
    # Two more are sent in the next part.
    others = [v for v in sight.values(_PURCHASES) if v not in (*_FIVE, *_MORE)]
    if others:
        raise Unmet(f"{_PURCHASES} also holds {others[0]!r}. Only purchase1 … purchase5 were asked for.")


def _all_read_again(sight: Sight) -> None:
    given = sight.answers.get("reread")
    if not given:
        raise Unmet("Give check() what was read from the beginning, as reread=[…].")
    missing = [v for v in (*_FIVE, *_MORE) if v not in list(given)]  # type: ignore[call-overload]
    if missing:
        why = "It is still there: where did the reading begin?" if missing[0] in _FIVE else "Was it sent before the reading ended?"
        raise Unmet(f"{missing[0]!r} was not read. {why}")


def _leaders_by_partition(sight: Sight) -> None:
    given = _answer(sight, "leader_of", "{partition: broker}")
    actual = {p.partition: p.leader for p in existing(sight, _PURCHASES)}
    if set(given) != set(actual):
        raise Unmet("Its keys should be the partitions of purchases. In a line of --describe, which number is the partition's?")
    wrong = [p for p in actual if given[p] != actual[p]]
    if wrong:
        if given[wrong[0]] == wrong[0]:
            raise Unmet(
                f"Partition {wrong[0]} is not led by broker {wrong[0]}: the number of a partition says nothing about its broker."
            )
        raise Unmet(f"Partition {wrong[0]} is led by another broker.")


def _held_by_one(sight: Sight) -> None:
    given = sight.answers.get("held_by_1")
    if given is None:
        raise Unmet("Give check() the partitions that are kept on broker 1, as held_by_1={…}.")
    held = {p.partition for p in existing(sight, _PURCHASES) if 1 in p.replicas}
    if set(given) != held:  # type: ignore[call-overload]
        raise Unmet("Not these. Broker 1 is down and leads nothing, but which column says where copies belong?")


def _preferred(sight: Sight) -> None:
    away = [p for p in existing(sight, _PURCHASES) if p.leader != p.replicas[0]]
    if away:
        p = away[0]
        raise Unmet(
            f"Partition {p.partition} is led by broker {p.leader}, and broker {p.replicas[0]} stands first among its replicas. Who "
            "gives leadership back, and when?"
        )


def _was_down(broker: int) -> Callable[[Sight], None]:
    def probe(sight: Sight) -> None:
        verbs = [f.verb for f in sight.cluster.faults if f.broker == broker]
        if not {"kill", "stop"} & set(verbs):
            raise Unmet(f"Broker {broker} never went down.")
        if "restart" not in verbs:
            raise Unmet(f"Broker {broker} did not start again.")

    return probe


def _ten_replicas_spread(sight: Sight) -> None:
    found = existing(sight, _RETURNS)
    counts = Counter(broker for p in found for broker in p.replicas)
    if unused := [i for i in sight.view().brokers if not counts[i]]:
        raise Unmet(f"Broker {unused[0]} keeps none of it. Were all three brokers up when you made the topic?")


def _partition_by_partition(sight: Sight) -> None:
    records = _messages(sight, _RETURNS, _TEN)
    given = _answer(sight, "by_partition", "{partition: [values in the order read]}")
    partitions = [p.partition for p in existing(sight, _RETURNS)]
    if set(given) != set(partitions):
        raise Unmet("It should have an entry for each of the five partitions, also for one in which nothing stands.")
    for number in partitions:
        said, true = list(given[number]), [text_of(m) for m in records if m.partition() == number]
        if Counter(said) != Counter(true):
            raise Unmet(f"Partition {number} holds other messages. Does your consumer read this partition only, and all of it?")
        if said != true:
            raise Unmet(
                f"In partition {number} they stand in another order. Take them as they are read: sorted by text, return10 comes "
                "before return2."
            )


def _ascending(sight: Sight) -> None:
    records = _messages(sight, _RETURNS, _TEN)
    for number in {m.partition() for m in records}:
        own = [text_of(m) for m in records if m.partition() == number]
        if own != sorted(own, key=_TEN.index):
            raise Unmet(f"In partition {number} {own[0]!r} stands first. Were they sent in order, each after the one before?")


def _several_partitions(sight: Sight) -> None:
    if len({m.partition() for m in _messages(sight, _RETURNS, _TEN)}) < 2:
        raise Unmet(
            "All ten stand in one partition, so there is no order between partitions to be seen. Send them one at a time and "
            "without a key."
        )


# -- the labs -------------------------------------------------------------------------------------------------------

_R = Requirement

LABS = (
    Lab(
        "02_three_brokers",
        "Three configurations for three brokers",
        (
            _R("server-0, server-1 and server-2.properties are there, each with its own node.id", _own_ids),
            _R("no two listeners share a port", _own_ports),
            _R("no two nodes share a data folder", _own_folders),
            _R("all three name the same voters, where they listen", _same_voters),
            _R("the offsets of groups survive the death of a broker", _offsets_replicated),
            _R("each data folder is formatted for its node, all for one cluster", _formatted),
            _R("start-1st, -2nd and -3rd-server.sh start node 0, 1 and 2", _start_scripts),
            _R("a cluster of three brokers is up", _up(0, 1, 2)),
        ),
        (
            "Two nodes on one machine can share neither a name nor a door nor a drawer. Which lines of the file are these?",
            "node.id, both ports in listeners, and log.dirs differ. controller.quorum.voters must not.",
            'Replace in the text of server-0: server_0.replace("node.id=0", f"node.id={n}"), and so on; write_text() it.',
        ),
    ),
    Lab(
        "02_failsafe",
        "A topic that survives",
        (
            _R("my-failsafe-topic has 13 partitions with 3 replicas each", has_shape(_FAILSAFE, 13, 3)),
            _R("all replicas are in sync", _in_sync(_FAILSAFE)),
            _R("the brokers share the leadership evenly", _preferred_leaders_spread),
        ),
        (
            "One number says into how many parts the topic is split, another one on how many brokers each part is kept.",
            "NewTopic(name, num_partitions=…, replication_factor=…), handed to admin.create_topics(). Wait for the result.",
        ),
    ),
    Lab(
        "02_publish_subscribe",
        "Every group hears everything",
        (
            _R("the seven messages are in my-failsafe-topic, each once", _sent(_FAILSAFE, _GREETINGS)),
            _R("three groups have each read all seven", _three_groups_heard_all),
        ),
        (
            "What must three consumers not have in common, so that each gets everything?",
            "A ConsoleConsumer without group=… has one of its own. Where does it begin if it comes after the first four messages?",
            "from_beginning=True; then consumer.wait_for(7) and consumer.wait_committed().",
        ),
    ),
    Lab(
        "02_load_sharing",
        "One group shares the work",
        (
            _R("m1 … m7 are in my-failsafe-topic, each once", _sent(_FAILSAFE, _numbered(1, 7))),
            _R("mygroup has three members", _members(3)),
            _R("each partition has one owner, and the shares are even", _shared_evenly),
            _R("mygroup has read m1 … m7", _read_by_group(_numbered(1, 7))),
        ),
        (
            "What must three consumers have in common, so that each message goes to one of them?",
            'group="mygroup" for each. wait_until_shared(*members) returns when the group has settled.',
            "Send when the group has settled; then wait until the members together have read all seven, and until each has committed.",
        ),
    ),
    Lab(
        "02_consumer_failover",
        "Two go on for three",
        (
            _R("m8 … m14 are in my-failsafe-topic, each once", _sent(_FAILSAFE, _numbered(8, 14))),
            _R("mygroup has two members", _members(2)),
            _R("each partition has one owner, and the shares are even", _shared_evenly),
            _R("mygroup has read m8 … m14", _read_by_group(_numbered(8, 14))),
        ),
        (
            "A consumer can end in two ways. Both will do; one is faster.",
            "members[2].close() or members[2].kill(); then wait_until_shared() of the other two.",
        ),
    ),
    Lab(
        "02_describe",
        "Who leads what",
        (
            _R("the table shows leader, replicas and ISR of every partition", _table_is_right),
        ),
        (
            "admin.describe_topics() takes a TopicCollection and returns a future per topic; its result has .partitions.",
            "A partition has .id, .leader, .replicas and .isr; the last three are nodes, and a node has an .id.",
        ),
    ),
    Lab(
        "02_broker_failover",
        "Broker 0 is killed",
        (
            _R("broker 0 is down", _is_down(0)),
            _R("brokers 1 and 2 lead all of my-failsafe-topic", _led_by_the_others(_FAILSAFE, 0)),
            _R("the ISR of every partition is what is left", _isr_without(_FAILSAFE, 0)),
            _R("the replicas still name broker 0", _replicas_still_name(_FAILSAFE, 0)),
        ),
        (
            "The map has a button for it, the cluster a verb.",
            "cluster.kill(0). The controller needs a moment to notice; cluster.wait_for(condition, what) waits for what you want to see.",
            "The condition gets a view: all(p.leader not in (0, None) and 0 not in p.isr for p in view.topics[TOPIC]).",
        ),
    ),
    Lab(
        "02_failover_proof",
        "m15 and m16 arrive",
        (
            _R("broker 0 is down", _is_down(0)),
            _R("m15 and m16 are in my-failsafe-topic, each once", _sent(_FAILSAFE, _numbered(15, 16))),
            _R("mygroup has read them", _read_by_group(_numbered(15, 16))),
        ),
        (
            "Nothing has to be started anew: neither the producer nor the members of mygroup.",
            "Send with the same producer, wait until the two members together have read both, then until both have committed.",
        ),
    ),
    Lab(
        "02_atu_brokers",
        "From one broker to three",
        (
            _R("brokers 0, 1 and 2 are up", _up(0, 1, 2)),
            _R("atu is as it was: one partition, on broker 0", _atu_as_before),
        ),
        (
            "Kafka needs no restart to grow: a node that names the same voters registers itself.",
            "cluster.add_broker() starts one more and returns its id.",
        ),
    ),
    Lab(
        "02_atu_purchases",
        "A partitioned and replicated topic",
        (
            _R("purchases has 3 partitions with 3 replicas each", has_shape(_PURCHASES, 3, 3)),
            _R("each broker is the first to lead one of them", _distinct_leaders),
            _R("every broker lists the same topics", _same_list_everywhere),
        ),
        (
            "kafka-topics.sh --create takes --partitions and --replication-factor, and any broker's address.",
            "answer = !kafka-topics.sh --bootstrap-server {cluster.bootstrap(broker)} --list gives the lines of the answer.",
        ),
    ),
    Lab(
        "02_atu_messages",
        "Five purchases",
        (
            _R("purchase1 … purchase5 are in purchases, each once, and nothing else", _five_and_no_more),
        ),
        (
            "A ConsoleProducer sends several values with one call, one after the other.",
            'ConsoleProducer(cluster, "purchases").send("purchase1", …)',
        ),
    ),
    Lab(
        "02_atu_failover",
        "Broker 1 is shut down",
        (
            _R("broker 1 is down", _is_down(1)),
            _R("brokers 0 and 2 lead all of purchases", _led_by_the_others(_PURCHASES, 1)),
            _R("the ISR of every partition is what is left", _isr_without(_PURCHASES, 1)),
            _R("the replicas still name broker 1", _replicas_still_name(_PURCHASES, 1)),
            _R("purchase6 and purchase7 were sent", _sent(_PURCHASES, _MORE)),
            _R("all seven were read from the beginning", _all_read_again),
        ),
        (
            "Shut down, not killed: which verb of the cluster is SIGTERM?",
            "cluster.stop_broker(1). Then send with the same producer as before.",
            "A new ConsoleConsumer with from_beginning=True; what wait_for(7) returns is the list that is asked for.",
        ),
    ),
    Lab(
        "02_atu_ids",
        "Numbers of partitions, ids of brokers",
        (
            _R("leader_of says which broker leads which partition of purchases", _leaders_by_partition),
            _R("held_by_1 says which partitions belong on broker 1, dead or alive", _held_by_one),
        ),
        (
            "In a line of --describe only one number is a partition's. All the others are ids of brokers.",
            "Leader is who leads now. Replicas is where copies belong. Isr is where they are up to date.",
        ),
    ),
    Lab(
        "02_atu_rebalance",
        "Leadership is given back",
        (
            _R("broker 1 was down and came back", _was_down(1)),
            _R("all three brokers are up", _up(0, 1, 2)),
            _R("all replicas of purchases are in sync", _in_sync(_PURCHASES)),
            _R("each partition of purchases is led by the first of its replicas", _preferred),
        ),
        (
            "A broker that comes back follows everywhere and leads nowhere, until somebody asks for an election.",
            "Restart it, wait until every ISR is complete, then kafka-leader-election.sh --election-type preferred …",
            "--all-topic-partitions spares you naming them. Whoever is not in sync cannot be elected: hence the waiting.",
        ),
    ),
    Lab(
        "02_atu_counts",
        "Five partitions, two replicas, three brokers",
        (
            _R("returns has 5 partitions with 2 replicas each", has_shape(_RETURNS, 5, 2)),
            _R("every broker keeps some of its ten replicas", _ten_replicas_spread),
        ),
        (
            "The number of partitions is free. The number of replicas is not: what is the most that three brokers can keep?",
            "--partitions 5 --replication-factor 2, while all three brokers are up.",
        ),
    ),
    Lab(
        "02_atu_order",
        "Order, partition by partition",
        (
            _R("return1 … return10 are in returns, each once, in more than one partition", _several_partitions),
            _R("within each partition they stand in the order sent", _ascending),
            _R("by_partition shows each partition as it was read", _partition_by_partition),
        ),
        (
            "A consumer need not join a group: it can be given partitions by hand.",
            "ConsoleConsumer(cluster, topic, partitions=[p], from_beginning=True), or Consumer.assign([TopicPartition(topic, p, 0)]).",
            "How much to wait for: consumer.get_watermark_offsets(TopicPartition(topic, p)) returns the first offset and the one after the last.",
        ),
    ),
)
"""Labs of the first half of chapter 02."""

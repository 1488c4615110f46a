"""Chapter 02, second half: customers in groups, storage, the quorum, racks, min.insync.replicas, isolation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from kafkalab.checks.common import any_answer, counted, existing, has_shape, listed_brokers, shaped
from kafkalab.checks.lab import Lab, Requirement, Unmet
from kafkalab.checks.sight import Sight, text_of
from kafkalab.cluster import ClusterView, GroupView
from kafkalab.datasets import customers, customers_partition

__all__ = ["LABS", "class_placement"]

_DOWN = ("dead", "stopped")


# -- what several labs ask ------------------------------------------------------------------------------------------


def _now(sight: Sight) -> ClusterView:
    """The cluster without its groups, which are slow to ask for while brokers are down."""
    return sight.cluster.describe(groups=False)


def _full_isr(sight: Sight, name: str) -> None:
    short = [p for p in existing(sight, name) if set(p.isr) != set(p.replicas)]
    if short:
        p = short[0]
        missing = sorted(set(p.replicas) - set(p.isr))
        raise Unmet(
            f"In partition {p.partition} the replicas on {listed_brokers(missing)} are not in the ISR. Does every broker run again, "
            "and did you wait?"
        )


def _all_up(sight: Sight) -> None:
    amiss = {b.id: b.state for b in _now(sight).brokers.values() if b.state != "up"}
    if amiss:
        told = ", ".join(f"{i} is {state}" for i, state in sorted(amiss.items()))
        raise Unmet(f"Not every node runs and is reached by its peers: {told}.")


def _faults(sight: Sight, *verbs: str) -> list[int]:
    """Brokers on which a fault of one of these kinds was carried out, in order."""
    return [f.broker for f in sight.cluster.faults if f.verb in verbs]


# -- customers ------------------------------------------------------------------------------------------------------

_GROUP_SIZES = (1, 2, 3, 5)


def _lines() -> list[tuple[int, str]]:
    """Partition and value of every record that the topic customers should have."""
    return [(customers_partition(index), ",".join(customer)) for index, customer in enumerate(customers())]


def _group_name(size: int) -> str:
    return f"customer-group-{size}"


def _customers_divided(sight: Sight) -> None:
    existing(sight, "customers")
    ends = sight.end_offsets("customers")
    wanted = Counter(partition for partition, _ in _lines())
    if ends == dict(wanted):
        return
    total, all_of_them = sum(ends.values()), sum(wanted.values())
    if total == 0:
        raise Unmet("The topic is empty.")
    if total > all_of_them:
        raise Unmet(
            f"There are {total} records for {all_of_them} customers: the file was loaded more than once. Delete the topic and "
            "begin again."
        )
    if total < all_of_them:
        raise Unmet(
            f"There are {total} records for {all_of_them} customers. Did the producer wait, at the end, until all were "
            "delivered?"
        )
    raise Unmet(
        "The number of records is right, but they are not divided as in the class. Who chose the partition: the producer's "
        "hash, or you?"
    )


def _customers_complete(sight: Sight) -> None:
    existing(sight, "customers")
    found = Counter((m.partition(), text_of(m)) for m in sight.records("customers"))
    wanted = Counter(_lines())
    if found == wanted:
        return
    values, wanted_values = Counter(v for _, v in found.elements()), Counter(v for _, v in wanted.elements())
    if missing := wanted_values - values:
        raise Unmet(
            f"{counted(missing.total(), 'customer')} of the file cannot be found, the first one is {next(iter(missing))!r}. Is "
            "a record's value the whole line?"
        )
    if surplus := values - wanted_values:
        raise Unmet(f"{counted(surplus.total(), 'record')} should not be there, the first one is {next(iter(surplus))!r}.")
    raise Unmet("All customers are there, but some of them are in another partition than the data set says.")


def _spark_counted(sight: Sight) -> None:
    given = any_answer(sight, "counted", "a dictionary, partition → number of records as Spark counted them")
    ends = sight.end_offsets("customers")
    if not isinstance(given, Mapping):
        raise Unmet(f"counted is a {type(given).__name__}, not a dictionary: partition → number of records.")
    if not given:
        raise Unmet("counted is empty: Spark has not counted anything yet.")
    if dict(given) != ends:
        raise Unmet(
            "What Spark counted is not what the brokers have. Does the query group by partition, and does it start with the "
            "earliest offset?"
        )


def _groups(sight: Sight) -> dict[int, GroupView]:
    there = sight.view().groups
    if missing := [_group_name(n) for n in _GROUP_SIZES if _group_name(n) not in there]:
        raise Unmet(f"There is no group {missing[0]!r}.")
    return {n: there[_group_name(n)] for n in _GROUP_SIZES}


def _group_sizes(sight: Sight) -> None:
    for size, group in _groups(sight).items():
        if len(group.members) != size:
            raise Unmet(
                f"{group.id} has {counted(len(group.members), 'member')}. Do all of its consumers run, and do they name this "
                "group?"
            )


def _one_owner_each(sight: Sight) -> None:
    every = {("customers", p.partition) for p in existing(sight, "customers")}
    for group in _groups(sight).values():
        owned = Counter(place for member in group.members for place in member.partitions)
        if set(owned) != every or owned.total() != len(every):
            raise Unmet(
                f"In {group.id} not every partition has exactly one owner (the group is {group.state}). Did you wait until it "
                "had settled?"
            )


def _idle_members(sight: Sight) -> None:
    partitions = len(existing(sight, "customers"))
    for size, group in _groups(sight).items():
        idle = sum(not member.partitions for member in group.members)
        if idle != max(0, size - partitions):
            raise Unmet(
                f"{group.id}: {idle} of {counted(len(group.members), 'member')} own nothing, which does not fit "
                f"{counted(partitions, 'partition')}."
            )


def _groups_done(sight: Sight) -> None:
    ends = sight.end_offsets("customers")
    if not sum(ends.values()):
        raise Unmet("There is nothing to read: the topic is missing or empty.")
    for group in _groups(sight).values():
        if set(group.lag) != {("customers", p) for p in ends}:
            raise Unmet(
                f"{group.id} has committed offsets for {counted(len(group.lag), 'partition')} only. Has it read from the "
                "beginning?"
            )
        if behind := sum(group.lag.values()):
            raise Unmet(
                f"{group.id} is {counted(behind, 'record')} behind. Wait until its consumers have read and committed everything."
            )


# -- storage --------------------------------------------------------------------------------------------------------


_WANTED = 32  # place in the data set of the customer whose address is asked for: C00033


def _spread_over_brokers(sight: Sight) -> None:
    keepers = Counter(p.replicas[0] for p in shaped(sight, "topic1", 3, 1))
    if len(keepers) < 3:
        broker, number = keepers.most_common(1)[0]
        raise Unmet(f"Broker {broker} keeps {number} of the 3 partitions. Kafka spreads them by itself, if you let it.")


def _every_partition_used(topic: str) -> Callable[[Sight], None]:
    def probe(sight: Sight) -> None:
        existing(sight, topic)
        empty = [p for p, end in sorted(sight.end_offsets(topic).items()) if not end]
        if empty:
            raise Unmet(
                f"Nothing was ever written to partition {empty[0]}. What decides where a record goes, and what if you say it "
                "yourself?"
            )

    return probe


def _rolled_by_age(sight: Sight) -> None:
    existing(sight, "customers-new")
    config = sight.topic_config("customers-new")
    if (config["segment.ms"], config["segment.bytes"]) != (str(7 * 24 * 3600 * 1000), str(1 << 30)):
        raise Unmet(
            "The topic's segment.ms or segment.bytes was changed. Here the week stays a week: it is the records that come from "
            "other weeks."
        )
    few = {p: names for p, names in sight.log_files("customers-new").items() if len(names) < 3}
    if few:
        p, names = min(few.items())
        raise Unmet(
            f"Partition {p} has {counted(len(names), 'segment')}, and the text asks for three. What is it that Kafka compares "
            "with segment.ms?"
        )


def _old_records_kept(sight: Sight) -> None:
    existing(sight, "customers-new")
    if sight.topic_config("customers-new")["retention.ms"] != "-1":
        raise Unmet(
            "Records older than retention.ms may be deleted at any moment, and some of yours are. Let this topic keep them "
            "without a limit."
        )


def _segment_named(sight: Sight) -> None:
    given = any_answer(sight, "segment", "the name of the file that holds offset 7 of partition 2")
    existing(sight, "customers-new")
    names = sight.log_files("customers-new").get(2, [])
    holding = [name for name in names if int(name.removesuffix(".log")) <= 7]
    if sight.end_offsets("customers-new").get(2, 0) <= 7:
        raise Unmet("Partition 2 does not reach offset 7 yet.")
    if given not in names:
        raise Unmet(f"Partition 2 has no file {given!r}. Look into its folder, and give the whole name.")
    if given != holding[-1]:
        raise Unmet("That file is there, but offset 7 is not in it. What does the number in a segment's name stand for?")


def _address_found(sight: Sight) -> None:
    given = any_answer(sight, "address", "topic, partition and offset of the customer asked for")
    wanted = customers()[_WANTED].customer_id
    match given:
        case (str(topic), int(p), int(offset)):
            pass
        case _:
            raise Unmet("An address has three parts, in this order: a text and two numbers.")
    for message in sight.records(topic):
        if (message.partition(), message.offset()) == (p, offset):
            if not (value := text_of(message)).startswith(wanted):
                raise Unmet(f"At that address there is another customer: {value!r}.")
            return
    raise Unmet(f"There is no record at {topic}, partition {p}, offset {offset}.")


# -- quorum ---------------------------------------------------------------------------------------------------------


def _stopped_and_back(sight: Sight) -> None:
    if 0 not in _faults(sight, "stop"):
        raise Unmet("Broker 0 was never shut down in order. There is a verb for that, which is not kill.")
    if _now(sight).brokers[0].state != "up":
        raise Unmet("Broker 0 does not run. Start it again, with the same data.")


def _status_pair(sight: Sight, name: str) -> tuple[int, int]:
    match any_answer(sight, name, "(LeaderId, LeaderEpoch) as kafka-metadata-quorum said"):
        case (int(leader), int(epoch)):
            return leader, epoch
    raise Unmet(f"{name} is a pair of two numbers: LeaderId and LeaderEpoch.")


def _controller_killed(sight: Sight) -> None:
    leader, _ = _status_pair(sight, "before")
    killed = _faults(sight, "kill")
    if leader not in killed:
        done = f"{listed_brokers(sorted(set(killed)))} {'was' if len(set(killed)) == 1 else 'were'}" if killed else "no node was"
        raise Unmet(f"By your own answer the active controller was node {leader}; but {done} killed.")


def _another_elected(sight: Sight) -> None:
    (leader, epoch), (new_leader, new_epoch) = _status_pair(sight, "before"), _status_pair(sight, "after")
    if new_leader == leader:
        raise Unmet("Before and after name the same leader. Did you look again only when another one had been elected?")
    if new_epoch <= epoch:
        raise Unmet("The epoch did not grow, and every election makes it grow. Was 'before' read first?")
    view = _now(sight)
    if view.controller_epoch < new_epoch:
        raise Unmet("The quorum's epoch is lower than your answer: that is not what this cluster said.")
    if view.controller_epoch == new_epoch and view.controller != new_leader:
        raise Unmet(f"In epoch {new_epoch} this cluster's leader is another node than your answer names.")


def _majority_understood(sight: Sight) -> None:
    given = any_answer(sight, "may_die", "a dictionary, number of voters → how many of them may die")
    if not isinstance(given, Mapping) or set(given) != {1, 3, 4, 5}:
        raise Unmet("The dictionary has an entry for 1, 3, 4 and 5 voters.")
    wrong = [voters for voters, dead in sorted(given.items()) if dead != (voters - 1) // 2]
    if wrong:
        voters = wrong[0]
        raise Unmet(
            f"Think again about {counted(voters, 'voter')}: those who are left must be more than half of all, the dead included."
        )


def _dedicated_voters(sight: Sight) -> None:
    voting = [b for b in _now(sight).brokers.values() if b.voter and b.address]
    if voting:
        raise Unmet(f"Broker {voting[0].id} is a voter of the quorum, too. Here the voters must be nodes of their own.")


def _two_brokers_dead(sight: Sight) -> None:
    brokers = [b for b in _now(sight).brokers.values() if b.address]
    dead = [b.id for b in brokers if b.state in _DOWN]
    if (len(brokers), len(dead)) != (3, 2):
        raise Unmet(f"Of {counted(len(brokers), 'broker')} {len(dead)} are down. The experiment needs two of three down.")


def _still_governed(sight: Sight) -> None:
    view = _now(sight)
    if view.controller is None:
        raise Unmet("No controller is active: too few voters are left.")
    if "after-the-fall" not in view.topics:
        raise Unmet("There is no topic 'after-the-fall'. Only an active controller can make one, so make one.")
    if any(set(p.replicas) & {b.id for b in view.brokers.values() if b.state in _DOWN} for p in view.topics["after-the-fall"]):
        raise Unmet("A replica of 'after-the-fall' is on a broker that is down: so the topic is older than the fall.")


# -- racks ----------------------------------------------------------------------------------------------------------

RACK_OF = {0: "R1", 1: "R1", 2: "R1", 3: "R2", 4: "R2", 5: "R2"}
"""Rack of each broker, as in the class."""


def class_placement() -> dict[int, list[int]]:
    """The class's placement of 10 partitions with 3 replicas on 6 brokers in 2 racks: partition → brokers, leader first."""
    alternating = [0, 3, 1, 4, 2, 5]
    return {p: [alternating[(p + step) % 6] for step in range(3)] for p in range(10)}


def _placement(sight: Sight) -> dict[int, list[int]]:
    given = any_answer(sight, "placement", "a dictionary, partition → list of brokers, leader first")
    if not isinstance(given, Mapping) or not all(isinstance(brokers, Sequence) for brokers in given.values()):
        raise Unmet("The placement is a dictionary: partition → list of brokers, leader first.")
    return {p: list(brokers) for p, brokers in given.items()}


def _placement_complete(sight: Sight) -> None:
    placement = _placement(sight)
    if set(placement) != set(range(10)):
        raise Unmet(f"It has {counted(len(placement), 'partition')}; the class's topic has partitions 0 to 9.")
    for p, brokers in sorted(placement.items()):
        if len(brokers) != 3 or not set(brokers) <= set(RACK_OF):
            raise Unmet(f"Partition {p} is on {brokers}: three of the brokers 0 to 5 are wanted.")
        if len(set(brokers)) != 3:
            raise Unmet(f"Partition {p} has two replicas on one broker: if that dies, both are gone.")


def _placement_on_both_racks(sight: Sight) -> None:
    _placement_complete(sight)
    for p, brokers in sorted(_placement(sight).items()):
        if len({RACK_OF[b] for b in brokers}) == 1:
            raise Unmet(f"Partition {p} is on rack {RACK_OF[brokers[0]]} only. In which order must the brokers be listed?")


def _placement_by_the_rule(sight: Sight) -> None:
    _placement_complete(sight)
    placement, rule = _placement(sight), class_placement()
    if leaders := [p for p in range(10) if placement[p][0] != rule[p][0]]:
        raise Unmet(
            f"The leader of partition {leaders[0]} is another one by the rule: leaders go round the list, one after the other."
        )
    for p in range(10):
        for step, name in ((1, "first"), (2, "second")):
            if placement[p][step] != rule[p][step]:
                raise Unmet(
                    f"The {name} follower of partition {p} is on another broker by the rule. By how many places is it away "
                    "from the leader?"
                )


def _placed_by_hand(sight: Sight) -> None:
    found = shaped(sight, "by-hand", 10, 3)
    differ = [p.partition for p in found if list(p.replicas) != class_placement()[p.partition]]
    if differ:
        raise Unmet(f"Partition {differ[0]} of 'by-hand' is not where the rule puts it. Who chose its brokers, you or Kafka?")


def _placed_by_kafka(sight: Sight) -> None:
    found = shaped(sight, "by-kafka", 10, 3)
    racks = {b.id: b.rack for b in _now(sight).brokers.values()}
    if None in racks.values() or len(set(racks.values())) != 2:
        raise Unmet("The brokers are not in two racks. Which argument of Cluster tells each broker its rack?")
    if {i: r for i, r in racks.items() if i in RACK_OF} != RACK_OF:
        raise Unmet("The brokers are not in the racks of the class: 0, 1, 2 in R1 and 3, 4, 5 in R2.")
    for p in found:
        if len({racks[b] for b in p.replicas}) == 1:
            raise Unmet(
                f"Partition {p.partition} of 'by-kafka' is on one rack only: Kafka itself does not do that when it knows the "
                "racks."
            )


# -- min.insync.replicas --------------------------------------------------------------------------------------------


def _needs_two(sight: Sight) -> None:
    shaped(sight, "orders", 1, 3)
    if (found := sight.topic_config("orders")["min.insync.replicas"]) != "2":
        raise Unmet(
            f"Its effective min.insync.replicas is {found}. It can be given to a topic when it is made, or later with "
            "kafka-configs.sh."
        )


def _two_followers_down(sight: Sight) -> None:
    (p,) = shaped(sight, "orders", 1, 3)
    if p.leader is None:
        raise Unmet("The partition has no leader. The followers were to go, not the leader.")
    if len(p.isr) > 1:
        raise Unmet(
            f"Its ISR has {len(p.isr)} members. Are both followers down, and did you wait until the controller noticed?"
        )


def _refused(sight: Sight) -> None:
    given = any_answer(sight, "refused", "the name of the error with which the third order was refused")
    if given in ("_MSG_TIMED_OUT", "_TIMED_OUT"):
        raise Unmet("That is the client giving up after many retries. How does one see the broker's own first answer?")
    if given != "NOT_ENOUGH_REPLICAS":
        raise Unmet(
            f"{given!r} is not what a broker answers when too few replicas are in sync. What did the delivery report's error "
            "say?"
        )


def _reads_go_on(sight: Sight) -> None:
    existing(sight, "orders")
    found = sight.values("orders")
    if found != ["order-1", "order-2"]:
        raise Unmet(
            f"A consumer can read {found or 'nothing'} at this moment. It should be the two orders that were acknowledged by "
            "all of the ISR, no less and no more."
        )


def _orders_complete(sight: Sight) -> None:
    existing(sight, "orders")
    found = sight.values("orders")
    if "order-3" in found:
        raise Unmet("The order that was refused has been written after all: was it retried?")
    wanted = ["order-1", "order-2", "order-4", "order-5"]
    if found != wanted:
        missing = [value for value in wanted if value not in found]
        raise Unmet(
            f"The topic holds {found}."
            + (f" What became of {missing[0]}?" if missing else " Each order was to be sent once, in order.")
        )


def _both_came_back(sight: Sight) -> None:
    killed, restarted = set(_faults(sight, "kill", "stop")), set(_faults(sight, "restart"))
    if len(killed) < 2:
        raise Unmet(f"Only {counted(len(killed), 'broker')} went down so far, and two are needed to see it.")
    if killed - restarted:
        raise Unmet(f"The {listed_brokers(sorted(killed - restarted))} did not come back.")
    _all_up(sight)


# -- isolation ------------------------------------------------------------------------------------------------------


def _isolated_and_healed(sight: Sight) -> None:
    isolated = _faults(sight, "isolate")
    if not isolated:
        verbs = ", ".join(sorted({f.verb for f in sight.cluster.faults}))
        instead = f" (there was: {verbs})" if verbs else ""
        raise Unmet(f"No broker was isolated{instead}. An isolated broker runs, and clients still reach it.")
    if _faults(sight, "heal").count(isolated[-1]) < isolated.count(isolated[-1]):
        raise Unmet(f"Broker {isolated[-1]} is still cut off.")
    _all_up(sight)


def _letter_answers(sight: Sight, name: str, what: str) -> list[str]:
    given = any_answer(sight, name, what)
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise Unmet(f"{name} is a list of values.")
    return [str(value) for value in given]


def _nothing_acknowledged_lost(sight: Sight) -> None:
    acknowledged = _letter_answers(sight, "acknowledged", "the values that were acknowledged with acks=all")
    shaped(sight, "letters", 3, 3)
    if len(acknowledged) < 100:
        raise Unmet(
            f"The ledger tells of {counted(len(acknowledged), 'message')}. It should have run before, during and after the "
            "isolation."
        )
    there = set(sight.values("letters"))
    if lost := [value for value in acknowledged if value not in there]:
        raise Unmet(
            f"{counted(len(lost), 'acknowledged message')} cannot be found, the first one is {lost[0]!r}. Which acks did that "
            "producer ask for?"
        )


def _outcome(sight: Sight, name: str) -> object:
    return any_answer(sight, name, "what the delivery report said: the error's name, or 'acknowledged'")


def _all_refused(sight: Sight) -> None:
    match _outcome(sight, "with_all"):
        case "acknowledged":
            raise Unmet(
                "With acks=all an isolated leader cannot acknowledge anything: did the message go to the isolated broker, "
                "while it was isolated?"
            )
        case "REQUEST_TIMED_OUT" | "_MSG_TIMED_OUT" | "_TIMED_OUT":
            return
        case other:
            raise Unmet(f"{other!r} is not the sign of a leader that waits in vain for its followers.")


def _one_lost(sight: Sight) -> None:
    if _outcome(sight, "with_one") != "acknowledged":
        raise Unmet("With acks=1 the leader asks nobody. Did the message go to the isolated broker, through its own address?")
    lost = _letter_answers(sight, "lost", "the values that were acknowledged but are not in the topic")
    there = sight.values("letters")
    if not lost:
        raise Unmet("One message was acknowledged and is gone. Compare what was acknowledged with what can be read.")
    if found := [value for value in lost if value in there]:
        raise Unmet(f"{found[0]!r} is not lost: it is in the topic.")


LABS: tuple[Lab, ...] = (
    Lab(
        "02_customers",
        "customers.csv in three partitions, counted by Spark",
        (
            Requirement("customers has 3 partitions with 1 replica each", has_shape("customers", 3, 1)),
            Requirement("the partitions hold 4428, 4004 and 4002 records", _customers_divided),
            Requirement("every customer is there once, in the partition that the data set says", _customers_complete),
            Requirement("Spark counted the same", _spark_counted),
        ),
        (
            "NewTopic takes the name, then num_partitions, then replication_factor.",
            "produce() takes partition=: the producer's hash is then not asked. Every customer knows its partition.",
            "A producer that ends without flush() takes along what it has not sent yet.",
            "Kafka's source for Spark gives a column partition. Group by it, count, and collect.",
        ),
    ),
    Lab(
        "02_customer_groups",
        "Groups of one, two, three and five consumers",
        (
            Requirement("the four groups have 1, 2, 3 and 5 members", _group_sizes),
            Requirement("in each group every partition has exactly one owner", _one_owner_each),
            Requirement("members own nothing only where there are more of them than partitions", _idle_members),
            Requirement("each group has read all 12434 records", _groups_done),
        ),
        (
            "Consumers share partitions if they are given the same group, and only then.",
            "The groups are named customer-group-1, customer-group-2, customer-group-3 and customer-group-5.",
            "wait_until_shared(*consumers) returns when a group has settled.",
        ),
    ),
    Lab(
        "02_topic1",
        "One folder per partition",
        (
            Requirement("topic1 has 3 partitions with 1 replica each", has_shape("topic1", 3, 1)),
            Requirement("each of them is on another broker", _spread_over_brokers),
            Requirement("each of them has records", _every_partition_used("topic1")),
        ),
        (
            "Give the number of partitions and the replication factor, and leave the brokers to Kafka.",
            "Records without a key go to one partition until a batch is full. produce() takes partition=.",
        ),
    ),
    Lab(
        "02_storage",
        "Replicas and segments on disk",
        (
            Requirement("customers-new has 3 partitions with 3 replicas each", has_shape("customers-new", 3, 3)),
            Requirement("all replicas are in sync", partial(_full_isr, name="customers-new")),
            Requirement("old records are kept", _old_records_kept),
            Requirement("each partition has 3 segments, with Kafka's own segment settings", _rolled_by_age),
            Requirement("you named the segment that holds offset 7 of partition 2", _segment_named),
            Requirement("you found one customer's topic, partition and offset", _address_found),
        ),
        (
            "A segment is closed at 1 GiB, or when a record comes that is a week younger than the segment's first one.",
            "produce() takes timestamp=, in milliseconds since 1970. Weeks ago is allowed; tomorrow is not.",
            "NewTopic takes config=, a dictionary of settings. A retention of -1 means for ever.",
            "A segment's name is the offset of its first record. Consumers and kafka-dump-log both show offsets.",
        ),
    ),
    Lab(
        "02_quorum",
        "The active controller dies",
        (
            Requirement("broker 0 was shut down in order and runs again", _stopped_and_back),
            Requirement("the node that was active controller was killed", _controller_killed),
            Requirement("another one was elected, in a later epoch", _another_elected),
            Requirement("all three nodes run again", _all_up),
        ),
        (
            "stop_broker shuts down in order, kill does not ask. restart starts a node again with its data.",
            "quorum_status()['LeaderId'] is the active controller. AdminClient's idea of the controller is not.",
            "After the kill, wait with cluster.wait_for until view.controller is another node, and not None.",
        ),
    ),
    Lab(
        "02_majority",
        "How many voters may die",
        (
            Requirement("you know how many of 1, 3, 4 and 5 voters may die", _majority_understood),
            Requirement("the voters are dedicated controllers", _dedicated_voters),
            Requirement("two of the three brokers are down", _two_brokers_dead),
            Requirement("there is an active controller all the same, and it made a topic", _still_governed),
        ),
        (
            "A quorum decides while more than half of all its voters are there.",
            "Cluster takes controllers=: how many nodes are controllers and nothing else.",
            "A topic with a replication factor of 1 needs one live broker.",
        ),
    ),
    Lab(
        "02_rack_placement",
        "30 replicas, 6 brokers, 2 racks",
        (
            Requirement("your placement has 10 partitions on 3 different brokers each", _placement_complete),
            Requirement("each partition is on both racks", _placement_on_both_racks),
            Requirement("it is the class's placement", _placement_by_the_rule),
            Requirement("by-hand is a topic with exactly this placement", _placed_by_hand),
            Requirement("by-kafka is a topic of the same size, which Kafka placed on both racks", _placed_by_kafka),
        ),
        (
            "List the brokers so that neighbours are in different racks: 0, 3, 1, …",
            "Partition p has its leader at place p of that list; after the last place comes the first one again.",
            "The first follower is one place further than the leader, the second one two places.",
            "NewTopic takes replica_assignment=, a list with one list of brokers per partition.",
        ),
    ),
    Lab(
        "02_min_insync",
        "A write is refused, reads go on",
        (
            Requirement("orders has 1 partition with 3 replicas, and needs 2 of them in sync", _needs_two),
            Requirement("both followers are down, and only the leader is in the ISR", _two_followers_down),
            Requirement("you know the error with which the broker refuses", _refused),
            Requirement("the acknowledged orders can still be read, and nothing else", _reads_go_on),
        ),
        (
            "min.insync.replicas is a setting of the topic: NewTopic takes config=.",
            "The followers are those in replicas that are not the leader. Wait until the ISR has got shorter.",
            "With retries left, the client tries until its delivery.timeout.ms is over, and names that. Give it retries=0.",
        ),
    ),
    Lab(
        "02_isr_grows",
        "The ISR grows again",
        (
            Requirement("two brokers went down and came back", _both_came_back),
            Requirement("all three replicas of orders are in sync", partial(_full_isr, name="orders")),
            Requirement("orders holds all but the one that was refused", _orders_complete),
        ),
        (
            "restart starts a broker with its data. It returns when that is a member; its replicas may still catch up.",
            "cluster.wait_for(lambda view: …) waits for what you need to see.",
        ),
    ),
    Lab(
        "02_isolated",
        "A leader that nobody hears",
        (
            Requirement("a broker was isolated and healed, and all brokers are together again", _isolated_and_healed),
            Requirement("all replicas of letters are in sync", partial(_full_isr, name="letters")),
            Requirement("with acks=all the isolated leader did not acknowledge", _all_refused),
            Requirement("with acks=1 it did, and that message is gone", _one_lost),
            Requirement("nothing that was acknowledged with acks=all is lost", _nothing_acknowledged_lost),
        ),
        (
            "isolate cuts a broker off from its peers and from the controller; heal undoes it.",
            "send_to_isolated(acks) uses a producer that already knows the leader. Call it right after isolate.",
            "What is lost: acknowledged, but not among the values that can be read.",
        ),
    ),
)

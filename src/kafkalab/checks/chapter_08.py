"""Chapter 08: clusters that are mirrored into each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from kafkalab.checks.common import answer, any_answer, behind, counted, existing
from kafkalab.checks.lab import Lab, Requirement, Unmet
from kafkalab.checks.sight import Sight, text_of
from kafkalab.cluster import Cluster

__all__ = ["LABS"]

# -- what several labs ask ------------------------------------------------------------------------------------------


def _sights(sight: Sight, *others: str) -> dict[str, Sight]:
    """The cluster that is checked, and those that were given besides it, by name."""
    found = {sight.cluster.name: sight}
    for name in others:
        other = answer(sight, name, "the other cluster")
        if not isinstance(other, Cluster) or not other.running:
            raise Unmet(f"Give check() a running cluster as {name}=….")
        found[name] = Sight(other, sight.answers)
    return found


def _in(name: str, sight: Sight, topic: str) -> None:
    try:
        existing(sight, topic)
    except Unmet as unmet:
        raise Unmet(f"In {name}: {unmet}") from unmet


def _contents(sight: Sight, topic: str) -> Counter[tuple[int, str, str]]:
    """Partition, key and value of each record, and how often they are there."""
    return Counter((m.partition(), (m.key() or b"").decode(), text_of(m)) for m in sight.records(topic))


def _values(name: str, sight: Sight, topic: str) -> Counter[str]:
    _in(name, sight, topic)
    return Counter(sight.values(topic))


def _read_to_the_end(name: str, sight: Sight, group: str, topic: str) -> None:
    for partition, end, lag in behind(sight, sight.committed(group), topic):
        if lag is None:
            raise Unmet(f"In {name} the group {group} has committed nothing in partition {partition} of {topic}, where {counted(end, 'record')} stand.")
        raise Unmet(f"In {name} {group} is {counted(lag, 'record')} behind the end of partition {partition} of {topic}.")


def _missing(wanted: Iterable[str], there: Iterable[str]) -> str | None:
    """As in "'message 7' and 3 more", or None where all are there."""
    left = sorted(set(wanted) - set(there))
    return f"{left[0]!r}" + (f" and {len(left) - 1} more" if len(left) > 1 else "") if left else None


# -- three clusters -------------------------------------------------------------------------------------------------

_PRICES, _READERS = "stock-prices", "readers"
_SHAPES = {"first": 3, "second": 13, "third": 33}


def _three(sight: Sight) -> dict[str, Sight]:
    return _sights(sight, "second", "third")


def _partitions(sight: Sight) -> None:
    for name, each in _three(sight).items():
        _in(name, each, _PRICES)
        found = len(each.partitions(_PRICES))
        if found != _SHAPES[name]:
            why = " MirrorMaker makes a topic like the one it copies; who has to be there first?" if found == 3 else ""
            raise Unmet(f"In {name} it has {counted(found, 'partition')}, not {_SHAPES[name]}.{why}")


def _same_name(sight: Sight) -> None:
    for name, each in _three(sight).items():
        if others := [topic for topic in each.view().topics if topic.endswith("." + _PRICES)]:
            raise Unmet(f"In {name} there is a topic {others[0]!r}. Which policy leaves names as they are?")


def _all_prices(sight: Sight) -> None:
    three = _three(sight)
    for name, each in three.items():
        _in(name, each, _PRICES)
    wanted = _contents(sight, _PRICES)
    if not wanted:
        raise Unmet("There are no prices in the first cluster yet.")
    for name, each in three.items():
        found = _contents(each, _PRICES)
        if missing := wanted - found:
            partition, key, _ = min(missing)
            raise Unmet(f"{name} lacks {counted(missing.total(), 'price')} of the first cluster, for example one of {key} in partition {partition}.")
        if more := found.keys() - wanted.keys():  # a copy may have a record twice
            raise Unmet(f"{name} has {counted(len(more), 'record')} that the first cluster has not. Who else wrote there?")


def _readers(sight: Sight) -> None:
    for name, each in _three(sight).items():
        _in(name, each, _PRICES)
        _read_to_the_end(name, each, _READERS, _PRICES)


def _last_prices(sight: Sight) -> None:
    latest = answer(sight, "latest", "a dictionary with the last price of each stock for each cluster")
    for name, each in _three(sight).items():
        _in(name, each, _PRICES)
        wanted = {(m.key() or b"").decode(): text_of(m) for m in each.records(_PRICES)}
        told = latest.get(name) if isinstance(latest, Mapping) else None
        if told != wanted:
            stock = next((s for s in sorted(wanted) if not isinstance(told, Mapping) or told.get(s) != wanted[s]), "one that is not there")
            raise Unmet(f"For {name} your answer is not the last price of each stock in it; look at {stock}.")


_THREE = Lab(
    "08_three_clusters",
    "The same prices in three clusters",
    (
        Requirement("stock-prices has 3, 13 and 33 partitions", _partitions),
        Requirement("it has the same name everywhere", _same_name),
        Requirement("the second and the third cluster have every price of the first, and nothing else", _all_prices),
        Requirement("in each cluster the group readers has read everything", _readers),
        Requirement("the last price of each stock is known for all three", _last_prices),
    ),
    (
        "MirrorMaker makes a topic only where there is none. Before it starts, make the topics with `NewTopic`, each with an `AdminClient` of its own cluster.",
        "`first->second.enabled`, `first->second.topics`, the same for `second->third`, and `replication.policy.class` for both: look at chapter 8.",
        "A consumer of the group `readers` in each cluster: subscribe, `consume` until it has all, `commit(asynchronous=False)`. "
        "Prices of one stock lie in one partition, so the last one that you read is the last one.",
    ),
)

# -- names ----------------------------------------------------------------------------------------------------------

_ORDERS, _GROUP = "orders", "all-orders"


def _two(sight: Sight) -> dict[str, tuple[Sight, str, Sight]]:
    """For each of two cities: its sight, the other's name and sight."""
    (a, first), (b, second) = _sights(sight, "tokyo").items()
    return {a: (first, b, second), b: (second, a, first)}


def _copies_are_marked(sight: Sight) -> None:
    for name, (each, other, other_sight) in _two(sight).items():
        wanted = _values(other, other_sight, _ORDERS)
        found = _values(name, each, f"{other}.{_ORDERS}")
        if missing := _missing(wanted, found):
            raise Unmet(f"{other}.{_ORDERS} in {name} lacks {missing}.")


def _no_echo(sight: Sight) -> None:
    for name, (each, other, _) in _two(sight).items():
        _in(name, each, f"{other}.{_ORDERS}")
        _no_copy_of_a_copy(name, each.view().topics)
        values = _values(name, each, _ORDERS)
        if foreign := [value for value in values if not value.startswith(f"{name} ")]:
            raise Unmet(f"In {name} the topic {_ORDERS} holds {foreign[0]!r}, which was not ordered there.")


def _no_copy_of_a_copy(name: str, topics: Iterable[str]) -> None:
    if back := [topic for topic in topics if topic.count(".") > 1 and topic.endswith(_ORDERS)]:
        raise Unmet(f"In {name} there is a copy of a copy: {back[0]!r}.")


def _everything_read(sight: Sight) -> None:
    read = answer(sight, "read", "a dictionary with what the group all-orders read in each city")
    for name, (each, other, _) in _two(sight).items():
        wanted = _values(name, each, _ORDERS) + _values(name, each, f"{other}.{_ORDERS}")
        found = Counter(read.get(name, ())) if isinstance(read, Mapping) else Counter()
        if missing := _missing(wanted, found):
            raise Unmet(f"In {name} {missing} was not read. Does your subscription name both topics?")
        if twice := sorted(found - wanted):
            raise Unmet(f"In {name} {twice[0]!r} was read more often than it is there.")
        for topic in (_ORDERS, f"{other}.{_ORDERS}"):
            _read_to_the_end(name, each, _GROUP, topic)


_BOTH_WAYS = Lab(
    "08_both_ways",
    "Two cities, each with the orders of both",
    (
        Requirement("each city has the other's orders under the other's name", _copies_are_marked),
        Requirement("nothing was copied back", _no_echo),
        Requirement("in each city the group all-orders has read every order of both, once", _everything_read),
    ),
    (
        "Two flows, `berlin->tokyo` and `tokyo->berlin`; no replication policy is named: the default one it is.",
        'A regular expression in a subscription begins with "^": `["^(.*[.])?orders$"]`. Or name the two topics.',
        "`to_the_end(consumer, 6)` reads two topics of three partitions each, where the consumer has `enable_partition_eof=True`. Then `commit(asynchronous=False)`.",
    ),
)

# -- a loop ---------------------------------------------------------------------------------------------------------

_ECHO, _CALM, _SENT = "echo", "calm", 10


def _echoes(sight: Sight) -> None:
    for name, (each, _, _) in _two(sight).items():
        values = _values(name, each, _ECHO)
        if len(values) > 1:
            raise Unmet(f"In {name} {_ECHO} holds {len(values)} different values. One record is enough for this.")
        if values.total() < 10:
            raise Unmet(f"In {name} {_ECHO} holds {counted(values.total(), 'record')}. With which policy, and which flows, would one record come back?")


def _calm(sight: Sight) -> None:
    both = _two(sight)
    for name, (each, _, _) in both.items():
        values = _values(name, each, _CALM)
        if others := [topic for topic in each.view().topics if topic.endswith("." + _CALM)]:
            raise Unmet(f"In {name} there is a topic {others[0]!r}. It was to keep its name.")
        own = name == sight.cluster.name  # a copy may have a record twice
        if len(values) != _SENT or (own and values.total() != _SENT):
            raise Unmet(f"In {name} {_CALM} holds {counted(values.total(), 'record')}, {len(values)} of them different, and not {_SENT}. In how many directions is it copied?")


def _same_calm(sight: Sight) -> None:
    contents = [_values(name, each, _CALM) for name, (each, _, _) in _two(sight).items()]
    if contents[0].keys() != contents[1].keys():
        raise Unmet("The two cities do not hold the same.")


_LOOP = Lab(
    "08_loop",
    "A record that goes round and round",
    (
        Requirement("one record of echo has become ten or more in both cities", _echoes),
        Requirement("calm has its ten records in both cities under its own name", _calm),
        Requirement("calm is the same in both cities", _same_calm),
    ),
    (
        "Which policy leaves no mark in the name? `replication.policy.class` takes the whole name of the class; chapter 8 has it.",
        "`berlin->tokyo.topics` and `tokyo->berlin.topics` need not be the same.",
        "`echo|calm` in one direction, `echo` in the other.",
    ),
)

# -- a disaster, and the way back -----------------------------------------------------------------------------------

_BILLING, _COPY = "billing", "main.orders"


def _in_backup(sight: Sight) -> Counter[str]:
    return _values("backup", sight, _COPY)


def _has_gone_on(sight: Sight) -> None:
    copied = _in_backup(sight)
    read = answer(sight, "read", "the values that billing read in the backup cluster")
    before = answer(sight, "before", "the values that billing read in the main cluster")
    if missing := _missing(copied, [*before, *read]):  # type: ignore[misc]
        raise Unmet(f"{missing} was copied, but billing read it in neither cluster.")
    if len(read) >= copied.total():  # type: ignore[arg-type]
        raise Unmet(
            f"Billing read all {counted(copied.total(), 'order')} once more. In which group do you read, and does the topic have the name under which "
            "MirrorMaker has committed?"
        )


def _began(sight: Sight) -> None:
    _in_backup(sight)
    by_partition: dict[int, list[str]] = {p: [] for p in sight.end_offsets(_COPY)}
    for message in sight.records(_COPY):
        by_partition[message.partition() or 0].append(text_of(message))
    kept = any_answer(sight, "kept", "the offsets that billing had committed in the main cluster, one for each partition")
    began = any_answer(sight, "began", "the offsets at which billing began in the backup cluster, one for each partition")
    if not all(isinstance(told, list) and len(told) == len(by_partition) for told in (kept, began)):
        raise Unmet(f"There are {counted(len(by_partition), 'partition')}: kept and began are lists of as many offsets.")
    read = answer(sight, "read", "the values that billing read in the backup cluster")
    left = sum(map(len, by_partition.values())) - sum(began)  # type: ignore[call-overload]
    if len(read) != left:  # type: ignore[arg-type]
        raise Unmet(f"From {began} on {counted(left, 'order')} are to be read, and billing read {len(read)}. Note began before it reads.")  # type: ignore[arg-type]
    for partition, values in by_partition.items():
        repeats = len(values) - len(set(values))
        if began[partition] > kept[partition] + repeats:  # type: ignore[index]
            raise Unmet(
                f"In partition {partition} billing began at offset {began[partition]}, and had committed {kept[partition]} "  # type: ignore[index]
                "in the main cluster: it skips what it has not read."
            )


def _billing_in_backup(sight: Sight) -> None:
    _in_backup(sight)
    _read_to_the_end("backup", sight, _BILLING, _COPY)


_FAILOVER = Lab(
    "08_readers",
    "Readers go on in the other cluster",
    (
        Requirement("billing missed no order that was copied, and did not begin anew", _has_gone_on),
        Requirement("billing began where its offsets had been translated to, nowhere ahead of what it had committed", _began),
        Requirement("billing has committed to the end in the backup cluster", _billing_in_backup),
    ),
    (
        "The group has the same name in the backup cluster; its offsets were committed there by MirrorMaker. Subscribe, and read.",
        "`enable_partition_eof=True` gives a message with the error `KafkaError._PARTITION_EOF` for each partition that is read to its end. "
        "How many there are, `len(cluster.describe().topics[topic])` tells.",
        "`consumer.commit(asynchronous=False)` before `close`.",
    ),
)


def _acknowledged(sight: Sight) -> set[str]:
    ledger = answer(sight, "ledger", "the producer with the ledger")
    return {entry.value for entry in ledger.entries}  # type: ignore[attr-defined]


def _lost(sight: Sight) -> None:
    lost = _acknowledged(sight) - _in_backup(sight).keys()
    told = set(any_answer(sight, "lost", "the orders that were acknowledged and are not in the backup cluster"))
    if told != lost:
        raise Unmet(f"You name {counted(len(told), 'order')} as lost, which are not those in the ledger that the backup cluster has not.")


def _twice(sight: Sight) -> None:
    read = any_answer(sight, "read", "the values that billing read in the backup cluster")
    before = any_answer(sight, "before", "the values that billing read in the main cluster")
    if not read:
        raise Unmet("Billing has read nothing in the backup cluster yet.")
    twice = {value for value, count in (Counter(before) + Counter(read)).items() if count > 1}
    told = set(any_answer(sight, "twice", "the orders that billing has read more than once"))
    if told != twice:
        raise Unmet(f"You name {counted(len(told), 'order')} as read twice, which are not those that billing has read more than once in all.")


_DISASTER = Lab(
    "08_disaster",
    "What the disaster cost",
    (
        Requirement("it is known which acknowledged orders are lost", _lost),
        Requirement("it is known which orders billing has read twice", _twice),
    ),
    (
        "Sets: what the ledger has and the backup cluster has not. `{entry.value for entry in ledger.entries}` is the one.",
        "`read_all(backup, 'main.orders')` is the other; values of records are bytes, those of the ledger are text.",
        "Twice: `Counter(before) + Counter(read)`, and those that count more than 1. It may be twice within one cluster, too.",
    ),
)


def _home(sight: Sight) -> dict[str, Sight]:
    return _sights(sight, "backup")


def _reconciled(sight: Sight) -> None:
    home = _home(sight)
    for (name, each), (other, theirs) in (tuple(home.items()), tuple(home.items())[::-1]):
        wanted = _values(name, each, _ORDERS)
        if not wanted:
            raise Unmet(f"There are no orders of its own in {name}.")
        if missing := _missing(wanted, _values(other, theirs, f"{name}.{_ORDERS}")):
            raise Unmet(f"{name}.{_ORDERS} in {other} lacks {missing}. Is there a flow from {name} to {other}, and was it given time?")


def _no_circle(sight: Sight) -> None:
    for name, each in _home(sight).items():
        topics = each.view().topics
        if not any(topic.endswith(f".{_ORDERS}") for topic in topics):
            raise Unmet(f"There are no copies in {name} yet.")
        _no_copy_of_a_copy(name, topics)


def _nothing_unread(sight: Sight) -> None:
    read = answer(sight, "read", "a dictionary with all values that billing has read of each cluster's orders, in either cluster")
    for name, each in _home(sight).items():
        told = read.get(name, ()) if isinstance(read, Mapping) else ()
        if missing := _missing(_values(name, each, _ORDERS), told):
            raise Unmet(f"Billing has never read {missing} of the orders of {name}.")


def _billing_at_home(sight: Sight) -> None:
    for topic in (_ORDERS, f"backup.{_ORDERS}"):
        _in("main", sight, topic)
        _read_to_the_end("main", sight, _BILLING, topic)


_BACK = Lab(
    "08_fail_back",
    "The way back",
    (
        Requirement("each cluster has all orders of the other one", _reconciled),
        Requirement("nothing was copied back to where it came from", _no_circle),
        Requirement("billing is at the end of both topics in the main cluster", _billing_at_home),
        Requirement("every order of either cluster was read by billing", _nothing_unread),
    ),
    (
        "Both flows in one MirrorMaker, with the default policy. What `main` had and nobody copied is still on its disk.",
        "Wait for the copies before you read: `values(main, 'orders') <= values(backup, 'main.orders')`, and the same the other way.",
        "In the main cluster billing reads `orders` and `backup.orders`: `go_on(main, 'billing', ['orders', 'backup.orders'])`.",
    ),
)

LABS = (_THREE, _BOTH_WAYS, _LOOP, _FAILOVER, _DISASTER, _BACK)

"""The checks of chapter 08: what passes, and what each wrong answer is told. The copies are written by hand here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import SimpleNamespace

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from kafkalab import Cluster

from .support import Verdict, create, empty, put

SETTINGS = {"auto.create.topics.enable": False}


@pytest.fixture(scope="module")
def three() -> Iterator[list[Cluster]]:
    """Three clusters of one broker."""
    with (
        Cluster(1, backend="local", settings=SETTINGS) as a,
        Cluster(1, backend="local", settings=SETTINGS) as b,
        Cluster(1, backend="local", settings=SETTINGS) as c,
    ):
        yield [a, b, c]


@pytest.fixture
def named(three: list[Cluster]) -> Iterator:
    """Call it with names: so many of the clusters, under these names; they are empty."""

    def name(*names: str) -> list[Cluster]:
        for cluster, called in zip(three, names, strict=False):
            cluster.name = called
        return three[: len(names)]

    yield name
    for cluster in three:
        empty(cluster)


def fill(cluster: Cluster, topic: str, values: Iterable[str], partitions: int = 3) -> None:
    """Make a topic with these values, in turn in partitions 0 to 2 (or 0)."""
    create(cluster, topic, partitions, copies=1)
    add(cluster, topic, values, min(partitions, 3))


def add(cluster: Cluster, topic: str, values: Iterable[str], partitions: int = 3) -> None:
    put(cluster, topic, [(f"key {n % partitions}", value, n % partitions) for n, value in enumerate(values)])


def commit(cluster: Cluster, group: str, topic: str, offsets: Mapping[int, int]) -> None:
    consumer = Consumer(cluster.client_config(group_id=group))
    consumer.commit(offsets=[TopicPartition(topic, p, offset) for p, offset in offsets.items()], asynchronous=False)
    consumer.close()


def drop(cluster: Cluster, topic: str) -> None:
    admin = AdminClient(cluster.client_config())
    admin.delete_topics([topic])[topic].result()
    cluster.wait_for(lambda view: topic not in view.topics, f"{topic} to be gone")


# -- 08_three_clusters ----------------------------------------------------------------------------------------------

LAB, PRICES = "08_three_clusters", "stock-prices"
SENT = [f"price {n}" for n in range(30)]
LAST = {"key 0": "price 27", "key 1": "price 28", "key 2": "price 29"}


def test_three_clusters(named, verdict: Verdict) -> None:
    first, second, third = named("first", "second", "third")
    given = {"second": second, "third": third, "latest": dict.fromkeys(("first", "second", "third"), LAST)}
    verdict.says("In first: There is no topic 'stock-prices' yet", LAB, first, **given)
    verdict.says("Give check() a running cluster as third=", LAB, first, **{**given, "third": Cluster(1, backend="local")})
    for cluster, partitions in ((first, 3), (second, 13), (third, 33)):
        fill(cluster, PRICES, SENT, partitions)
        verdict.says("has committed nothing in partition 0", LAB, first, **given)
        commit(cluster, "readers", PRICES, dict.fromkeys(range(3), 10))
    verdict.passes(LAB, first, **given)
    verdict.says("For third your answer is not the last price", LAB, first, **{**given, "latest": {"first": LAST, "second": LAST}})
    wrong = {**given["latest"], "second": LAST | {"key 1": "price 1"}}
    verdict.says("look at key 1", LAB, first, **{**given, "latest": wrong})
    verdict.says("Give check() your answer as latest=", LAB, first, second=second, third=third)
    commit(second, "readers", PRICES, {1: 9})
    verdict.says("In second readers is 1 record behind the end of partition 1", LAB, first, **given)
    create(third, "second.first.stock-prices", 3, copies=1)
    verdict.says("In third there is a topic 'second.first.stock-prices'. Which policy", LAB, first, **given)
    add(second, PRICES, ["price 0"])  # a record that was copied twice
    commit(second, "readers", PRICES, {0: 11, 1: 10})
    drop(third, "second.first.stock-prices")
    verdict.passes(LAB, first, **{**given, "latest": {**given["latest"], "second": LAST | {"key 0": "price 0"}}})
    add(second, PRICES, ["no price"])
    verdict.says("second has 1 record that the first cluster has not", LAB, first, **given)
    add(first, PRICES, ["one more"])
    verdict.says("second lacks 1 price of the first cluster, for example one of key 0 in partition 0", LAB, first, **given)
    drop(second, PRICES)
    create(second, PRICES, 3, copies=1)
    verdict.says("In second it has 3 partitions, not 13. MirrorMaker makes a topic like the one it copies", LAB, first, **given)


# -- 08_both_ways ---------------------------------------------------------------------------------------------------

ORDERS = {city: [f"{city} order {n}" for n in range(6)] for city in ("berlin", "tokyo")}


def test_both_ways(named, verdict: Verdict) -> None:
    cities = dict(zip(("berlin", "tokyo"), named("berlin", "tokyo"), strict=True))
    berlin, tokyo = cities.values()
    read = dict.fromkeys(cities, [*ORDERS["berlin"], *ORDERS["tokyo"]])
    for name, city in cities.items():
        fill(city, "orders", ORDERS[name])
    verdict.says("In berlin: There is no topic 'tokyo.orders' yet", "08_both_ways", berlin, tokyo=tokyo, read=read)
    fill(berlin, "tokyo.orders", ORDERS["tokyo"])
    fill(tokyo, "berlin.orders", ORDERS["berlin"][:5])
    verdict.says("berlin.orders in tokyo lacks 'berlin order 5'.", "08_both_ways", berlin, tokyo=tokyo, read=read)
    put(tokyo, "berlin.orders", [("key 2", ORDERS["berlin"][5], 2)])
    for city, topics in ((berlin, ("orders", "tokyo.orders")), (tokyo, ("orders", "berlin.orders"))):
        verdict.says("the group all-orders has committed nothing", "08_both_ways", berlin, tokyo=tokyo, read=read)
        for topic in topics:
            commit(city, "all-orders", topic, dict.fromkeys(range(3), 2))
    verdict.passes("08_both_ways", berlin, tokyo=tokyo, read=read)
    for says, wrong in {
        "Give check() your answer as read=": {},
        "In berlin 'tokyo order 0' and 5 more was not read": {**read, "berlin": ORDERS["berlin"]},
        "In tokyo 'berlin order 0' was read more often": {**read, "tokyo": [*read["tokyo"], "berlin order 0"]},
    }.items():
        verdict.says(says, "08_both_ways", berlin, tokyo=tokyo, read=wrong)
    create(berlin, "tokyo.berlin.orders", 3, copies=1)
    verdict.says("a copy of a copy: 'tokyo.berlin.orders'", "08_both_ways", berlin, tokyo=tokyo, read=read)
    drop(berlin, "tokyo.berlin.orders")
    add(tokyo, "orders", ["berlin order 0"])
    verdict.says("In tokyo the topic orders holds 'berlin order 0'", "08_both_ways", berlin, tokyo=tokyo, read=read)


# -- 08_loop --------------------------------------------------------------------------------------------------------


def test_loop(named, verdict: Verdict) -> None:
    berlin, tokyo = named("berlin", "tokyo")
    calm = [f"calm {n}" for n in range(10)]
    for city in (berlin, tokyo):
        fill(city, "echo", ["hello?"], 1)
    fill(berlin, "calm", calm)
    verdict.says("In berlin echo holds 1 record. With which policy", "08_loop", berlin, tokyo=tokyo)
    for city in (berlin, tokyo):
        add(city, "echo", ["hello?"] * 9, 1)
    verdict.says("In tokyo: There is no topic 'calm' yet", "08_loop", berlin, tokyo=tokyo)
    fill(tokyo, "calm", [*calm[:9], "calm x"])
    verdict.says("The two cities do not hold the same", "08_loop", berlin, tokyo=tokyo)
    drop(tokyo, "calm")
    fill(tokyo, "calm", calm)
    verdict.passes("08_loop", berlin, tokyo=tokyo)
    add(tokyo, "calm", calm[:2])  # copied twice
    verdict.passes("08_loop", berlin, tokyo=tokyo)
    create(tokyo, "berlin.calm", 3, copies=1)
    verdict.says("there is a topic 'berlin.calm'", "08_loop", berlin, tokyo=tokyo)
    add(berlin, "calm", calm[:2])  # came back
    verdict.says("In berlin calm holds 12 records, 10 of them different, and not 10", "08_loop", berlin, tokyo=tokyo)
    add(berlin, "echo", ["hello again"], 1)
    verdict.says("In berlin echo holds 2 different values", "08_loop", berlin, tokyo=tokyo)


# -- 08_readers, 08_disaster ----------------------------------------------------------------------------------------

MESSAGES = [f"message {n}" for n in range(12)]


def test_readers(named, verdict: Verdict) -> None:
    (backup,) = named("backup")
    verdict.says("There is no topic 'main.orders' yet", "08_readers", backup, before=MESSAGES, read=MESSAGES)
    fill(backup, "main.orders", MESSAGES[:9])
    right = {"before": MESSAGES[:7], "read": MESSAGES[5:9], "kept": [3, 2, 2], "began": [2, 2, 1]}
    verdict.says("In backup the group billing has committed nothing", "08_readers", backup, **right)
    commit(backup, "billing", "main.orders", dict.fromkeys(range(3), 3))
    verdict.passes("08_readers", backup, **right)
    for says, wrong in {
        "Give check() your answer as read=": {"read": []},
        "'message 8' was copied, but billing read it in neither cluster": {"read": MESSAGES[5:8]},
        "Billing read all 9 orders once more": {"read": MESSAGES[:9]},
        "Give check() your answer as began=": {"began": None},
        "There are 3 partitions: kept and began are lists": {"began": [5]},
        "From [3, 3, 3] on 0 orders are to be read, and billing read 4": {"began": [3, 3, 3]},
        "In partition 2 billing began at offset 3, and had committed 2 in the main cluster": {"began": [1, 1, 3]},
    }.items():
        verdict.says(says, "08_readers", backup, **{**right, **wrong})
    commit(backup, "billing", "main.orders", {2: 1})
    verdict.says("In backup billing is 2 records behind the end of partition 2", "08_readers", backup, **right)


def test_disaster(named, verdict: Verdict) -> None:
    (backup,) = named("backup")
    ledger = SimpleNamespace(entries=[SimpleNamespace(value=value) for value in MESSAGES])
    fill(backup, "main.orders", MESSAGES[:9])
    right = {
        "ledger": ledger,
        "before": MESSAGES[:7],
        "read": MESSAGES[5:9],
        "lost": {*MESSAGES[9:]},
        "twice": {*MESSAGES[5:7]},
    }
    verdict.passes("08_disaster", backup, **right)
    for says, wrong in {
        "Give check() your answer as ledger=": {"ledger": None},
        "You name 0 orders as lost": {"lost": set()},
        "You name 5 orders as lost": {"lost": {*MESSAGES[7:]}},  # what billing had not read
        "Give check() your answer as lost=": {"lost": None},
        "You name 0 orders as read twice": {"twice": set()},
        "You name 9 orders as read twice": {"twice": {*MESSAGES[:9]}},
        "Billing has read nothing in the backup cluster yet": {"read": []},
    }.items():
        verdict.says(says, "08_disaster", backup, **{**right, **wrong})
    # Nothing lost, nothing twice: that is an answer as well.
    put(backup, "main.orders", [("key", value, 0) for value in MESSAGES[9:]])
    verdict.passes("08_disaster", backup, **{**right, "lost": set(), "read": MESSAGES[7:], "twice": set()})


# -- 08_fail_back ---------------------------------------------------------------------------------------------------


def test_fail_back(named, verdict: Verdict) -> None:
    main, backup = named("main", "backup")
    new = [f"new {n}" for n in range(6)]
    read = {"main": [*MESSAGES, *MESSAGES[3:]], "backup": new}
    fill(main, "orders", MESSAGES)
    fill(backup, "orders", [])
    verdict.says("There are no copies in main yet", "08_fail_back", main, backup=backup, read=read)
    fill(backup, "main.orders", MESSAGES[:10])
    verdict.says("main.orders in backup lacks 'message 10' and 1 more. Is there a flow from main to backup", "08_fail_back", main, backup=backup, read=read)
    put(backup, "main.orders", [("key 1", "message 10", 1), ("key 2", "message 11", 2)])
    verdict.says("There are no orders of its own in backup", "08_fail_back", main, backup=backup, read=read)
    add(backup, "orders", new)
    verdict.says("In main: There is no topic 'backup.orders' yet", "08_fail_back", main, backup=backup, read=read)
    fill(main, "backup.orders", new)
    commit(main, "billing", "orders", dict.fromkeys(range(3), 4))
    verdict.says("has committed nothing in partition 0 of backup.orders", "08_fail_back", main, backup=backup, read=read)
    commit(main, "billing", "backup.orders", dict.fromkeys(range(3), 2))
    verdict.passes("08_fail_back", main, backup=backup, read=read)
    verdict.says("Billing has never read 'message 10' and 2 more", "08_fail_back", main, backup=backup, read={**read, "main": read["main"][:7] + ["message 7", "message 8"]})
    verdict.says("Billing has never read 'new 0' and 5 more of the orders of backup", "08_fail_back", main, backup=backup, read={"main": MESSAGES})
    verdict.says("Give check() your answer as backup=", "08_fail_back", main, read=read)
    create(main, "backup.main.orders", 3, copies=1)
    verdict.says("In main there is a copy of a copy: 'backup.main.orders'", "08_fail_back", main, backup=backup, read=read)

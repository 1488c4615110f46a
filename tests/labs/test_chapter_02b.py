"""The labs of chapter 02 on groups, storage, quorum, racks, min.insync.replicas and isolation.

Each wrong answer is a small function that does the wrong thing, with the sentence that the check must say about it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from kafkalab import Cluster, ConsoleConsumer, wait_until
from kafkalab.checks.chapter_02b import class_placement
from kafkalab.datasets import customers, customers_partition
from kafkalab.workers import wait_until_shared

from .support import Verdict

pytestmark = pytest.mark.cluster

LINES = [",".join(customer) for customer in customers()]
DAY = 24 * 60 * 60 * 1000


def create(cluster: Cluster, *topics: NewTopic) -> None:
    admin = AdminClient(cluster.client_config())
    for made in admin.create_topics(list(topics)).values():
        made.result()
    names = {topic.topic for topic in topics}
    cluster.wait_for(
        lambda view: names <= view.topics.keys() and all(set(p.isr) == set(p.replicas) for n in names for p in view.topics[n]),
        f"{', '.join(names)} with all replicas in sync",
    )


def delete(cluster: Cluster, *topics: str) -> None:
    admin = AdminClient(cluster.client_config())
    for deleted in admin.delete_topics(list(topics)).values():
        deleted.result()
    cluster.wait_for(lambda view: not set(topics) & view.topics.keys(), "the topics to be gone")


# -- 02_customers ---------------------------------------------------------------------------------------------------


def load(cluster: Cluster, lines: list[str] = LINES, rule: Callable[[int], int] = customers_partition, **more: object) -> None:
    producer = Producer(cluster.client_config(**more))
    for index, line in enumerate(lines):
        producer.produce("customers", line, partition=rule(index))
    producer.flush()


def test_customers_right(clean: Cluster, verdict: Verdict) -> None:
    create(clean, NewTopic("customers", 3, 1))
    load(clean)
    counted = {0: 4428, 1: 4004, 2: 4002}
    verdict.passes("02_customers", clean, counted=counted)
    verdict.says("Give check() your answer as counted=", "02_customers", clean)
    verdict.says("counted is empty", "02_customers", clean, counted={})
    verdict.says("counted is a list, not a dictionary", "02_customers", clean, counted=[4428, 4004, 4002])
    verdict.says("What Spark counted is not what the brokers have", "02_customers", clean, counted={0: 12434})
    load(clean)
    verdict.says("the file was loaded more than once", "02_customers", clean, counted=counted)


def untouched(cluster: Cluster) -> None:
    pass


def with_three_copies(cluster: Cluster) -> None:
    create(cluster, NewTopic("customers", 3, 3))
    load(cluster)


def with_one_partition(cluster: Cluster) -> None:
    create(cluster, NewTopic("customers", 1, 1))
    load(cluster, rule=lambda _: 0)


def not_loaded(cluster: Cluster) -> None:
    create(cluster, NewTopic("customers", 3, 1))


def loaded_in_part(cluster: Cluster) -> None:
    create(cluster, NewTopic("customers", 3, 1))
    load(cluster, LINES[:5000])


def partition_left_to_the_producer(cluster: Cluster) -> None:
    create(cluster, NewTopic("customers", 3, 1))
    load(cluster, rule=lambda index: index % 3)


def only_ids_sent(cluster: Cluster) -> None:
    create(cluster, NewTopic("customers", 3, 1))
    load(cluster, [customer.customer_id for customer in customers()])


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (untouched, "There is no topic 'customers'"),
        (with_three_copies, "Each partition has 3 replicas, not 1"),
        (with_one_partition, "It has 1 partition. How many does the text ask for?"),
        (not_loaded, "The topic is empty"),
        (loaded_in_part, "There are 5000 records for 12434 customers"),
        (partition_left_to_the_producer, "they are not divided as in the class"),
        (only_ids_sent, "Is a record's value the whole line?"),
    ],
)
def test_customers_wrong(clean: Cluster, verdict: Verdict, build: Callable[[Cluster], None], sentence: str) -> None:
    build(clean)
    verdict.says(sentence, "02_customers", clean, counted={})


# -- 02_customer_groups ---------------------------------------------------------------------------------------------


def start_groups(cluster: Cluster, sizes: dict[str, int], *, beginning: bool = True) -> list[ConsoleConsumer]:
    consumers = []
    for name, size in sizes.items():
        consumers += [ConsoleConsumer(cluster, "customers", group=name, from_beginning=beginning) for _ in range(size)]
    cluster.wait_for(
        lambda view: all(
            name in view.groups and view.groups[name].state == "Stable" and len(view.groups[name].members) == size
            for name, size in sizes.items()
        ),
        "all members",
        groups=True,
    )
    for name in sizes:
        wait_until_shared(*(c for c in consumers if c.group == name))
    return consumers


def close(consumers: list[ConsoleConsumer]) -> None:
    for consumer in consumers:
        consumer.close()


def test_customer_groups(clean: Cluster, verdict: Verdict) -> None:
    verdict.says("There is no group 'customer-group-1'", "02_customer_groups", clean)
    create(clean, NewTopic("customers", 3, 1))
    groups = {"customer-group-1": 1, "customer-group-2": 2, "customer-group-3": 3, "customer-group-5": 4}
    consumers = start_groups(clean, groups)
    try:
        verdict.says("There is nothing to read", "02_customer_groups", clean)
        load(clean, LINES[:30])
        wait_until(lambda: sum(len(c.records) for c in consumers) == 120, 15, "all to be read")
        for consumer in consumers:
            consumer.wait_committed()
        verdict.says("customer-group-5 has 4 members", "02_customer_groups", clean)
        consumers += [ConsoleConsumer(clean, "customers", group="customer-group-5", from_beginning=True)]
        clean.wait_for(
            lambda view: (
                view.groups["customer-group-5"].state == "Stable" and len(view.groups["customer-group-5"].members) == 5
            ),
            "the fifth member",
            groups=True,
        )
        verdict.passes("02_customer_groups", clean)
        consumers.pop(0).close()
        verdict.says("customer-group-1 has 0 members", "02_customer_groups", clean)
        verdict.says("In customer-group-1 not every partition has exactly one owner", "02_customer_groups", clean)
    finally:
        close(consumers)


def test_customer_groups_that_began_with_the_latest(clean: Cluster, verdict: Verdict) -> None:
    create(clean, NewTopic("customers", 3, 1))
    load(clean, LINES[:30])
    groups = {"customer-group-1": 1, "customer-group-2": 2, "customer-group-3": 3, "customer-group-5": 5}
    consumers = start_groups(clean, groups, beginning=False)
    try:
        verdict.says("Has it read from the beginning?", "02_customer_groups", clean)
    finally:
        close(consumers)


# -- 02_topic1 ------------------------------------------------------------------------------------------------------


def send(cluster: Cluster, topic: str, *values: str, partition: Callable[[int], int] = lambda n: n % 3, **more: object) -> None:
    producer = Producer(cluster.client_config())
    for number, value in enumerate(values):
        producer.produce(topic, value, partition=partition(number), **more)
    assert producer.flush(15) == 0


def test_topic1_right(clean: Cluster, verdict: Verdict) -> None:
    create(clean, NewTopic("topic1", 3, 1))
    send(clean, "topic1", *LINES[:6])
    verdict.passes("02_topic1", clean)


def topic1_replicated(cluster: Cluster) -> None:
    create(cluster, NewTopic("topic1", 3, 3))


def topic1_on_one_broker(cluster: Cluster) -> None:
    create(cluster, NewTopic("topic1", 3, replica_assignment=[[1], [1], [1]]))


def topic1_in_one_partition(cluster: Cluster) -> None:
    create(cluster, NewTopic("topic1", 3, 1))
    send(cluster, "topic1", *LINES[:6], partition=lambda _: 2)


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (untouched, "There is no topic 'topic1'"),
        (topic1_replicated, "Each partition has 3 replicas, not 1"),
        (topic1_on_one_broker, "Broker 1 keeps 3 of the 3 partitions"),
        (topic1_in_one_partition, "Nothing was ever written to partition 0"),
    ],
)
def test_topic1_wrong(clean: Cluster, verdict: Verdict, build: Callable[[Cluster], None], sentence: str) -> None:
    build(clean)
    verdict.says(sentence, "02_topic1", clean)


# -- 02_storage -----------------------------------------------------------------------------------------------------


def send_rounds(cluster: Cluster, *ages: int) -> None:
    now = int(time.time() * 1000)
    for number, age in enumerate(ages):
        send(cluster, "customers-new", *LINES[15 * number : 15 * number + 15], timestamp=now - age * DAY)


def three_rounds(cluster: Cluster, **config: str) -> None:
    create(cluster, NewTopic("customers-new", 3, 3, config={"retention.ms": "-1"} | config))
    send_rounds(cluster, 16, 8, 0)


def test_storage_right(clean: Cluster, verdict: Verdict) -> None:
    three_rounds(clean)
    segment, address = "00000000000000000005.log", ("customers-new", 2, 10)
    verdict.passes("02_storage", clean, segment=segment, address=address)
    verdict.says("Give check() your answer as segment=", "02_storage", clean, address=address)
    verdict.says("Give check() your answer as address=", "02_storage", clean, segment=segment)

    def named(segment: str, sentence: str) -> None:
        verdict.says(sentence, "02_storage", clean, segment=segment, address=address)

    named("00000000000000000007.log", "Partition 2 has no file '00000000000000000007.log'")
    named("5.log", "Partition 2 has no file '5.log'")
    named("00000000000000000010.log", "offset 7 is not in it")
    named("00000000000000000000.log", "offset 7 is not in it")

    def at(address: object, sentence: str) -> None:
        verdict.says(sentence, "02_storage", clean, segment=segment, address=address)

    at(("customers-new", 10), "An address has three parts")
    at(("customers-new", 10, 2), "There is no record at customers-new, partition 10, offset 2")
    at(("customers-new", 2, 9), "At that address there is another customer: 'C00030")
    at(("customers-neu", 2, 10), "There is no record at customers-neu")


def storage_with_one_copy(cluster: Cluster) -> None:
    create(cluster, NewTopic("customers-new", 3, 1, config={"retention.ms": "-1"}))


def storage_that_forgets(cluster: Cluster) -> None:
    three_rounds(cluster, **{"retention.ms": "604800000"})


def storage_with_a_shorter_week(cluster: Cluster) -> None:
    three_rounds(cluster, **{"segment.ms": "60000"})


def storage_in_one_round(cluster: Cluster) -> None:
    create(cluster, NewTopic("customers-new", 3, 3, config={"retention.ms": "-1"}))
    send_rounds(cluster, 0, 0, 0)


def storage_less_than_a_week_apart(cluster: Cluster) -> None:
    create(cluster, NewTopic("customers-new", 3, 3, config={"retention.ms": "-1"}))
    send_rounds(cluster, 12, 6, 0)


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (untouched, "There is no topic 'customers-new'"),
        (storage_with_one_copy, "Each partition has 1 replica, not 3"),
        (storage_that_forgets, "Records older than retention.ms may be deleted at any moment"),
        (storage_with_a_shorter_week, "The topic's segment.ms or segment.bytes was changed"),
        (storage_in_one_round, "Partition 0 has 1 segment, and the text asks for three"),
        (storage_less_than_a_week_apart, "Partition 0 has 2 segments, and the text asks for three"),
    ],
)
def test_storage_wrong(clean: Cluster, verdict: Verdict, build: Callable[[Cluster], None], sentence: str) -> None:
    build(clean)
    verdict.says(sentence, "02_storage", clean)


# -- 02_quorum, 02_majority -----------------------------------------------------------------------------------------


def quorum_of(cluster: Cluster) -> tuple[int, int]:
    view = cluster.wait_for(lambda view: view.controller is not None and view, "a controller")
    assert view.controller is not None
    return view.controller, view.controller_epoch


def test_quorum(verdict: Verdict) -> None:
    with Cluster(brokers=3, backend="local") as cluster:
        lab = "02_quorum"
        verdict.says("Broker 0 was never shut down in order", lab, cluster)
        verdict.says("Give check() your answer as before=", lab, cluster)

        cluster.stop_broker(0)
        verdict.says("Broker 0 does not run", lab, cluster)
        verdict.says("0 is stopped", lab, cluster)
        cluster.restart(0)

        before = quorum_of(cluster)
        follower = next(broker for broker in (0, 1, 2) if broker != before[0])
        verdict.says("no node was killed", lab, cluster, before=before, after=before)
        cluster.kill(follower)
        cluster.restart(follower)
        before = quorum_of(cluster)
        victim = before[0]
        if victim != follower:  # else an election came between, and this wrong answer would be a right one
            verdict.says(f"was node {victim}; but broker {follower} was killed", lab, cluster, before=before, after=before)

        cluster.kill(victim)
        cluster.wait_for(lambda view: view.controller not in (None, victim), "another controller")
        after = quorum_of(cluster)
        verdict.says(f"{victim} is dead", lab, cluster, before=before, after=after)
        cluster.restart(victim)
        verdict.passes(lab, cluster, before=before, after=after)
        verdict.says("Before and after name the same leader", lab, cluster, before=before, after=before)
        verdict.says("The epoch did not grow", lab, cluster, before=before, after=(after[0], before[1]))
        verdict.says("that is not what this cluster said", lab, cluster, before=before, after=(after[0], 99))
        verdict.says("before is a pair of two numbers", lab, cluster, before=victim, after=after)


RIGHT = {1: 0, 3: 1, 4: 1, 5: 2}


def test_majority(verdict: Verdict) -> None:
    with Cluster(brokers=3, controllers=1, backend="local") as cluster:
        lab = "02_majority"
        verdict.says("Of 3 brokers 0 are down", lab, cluster, may_die=RIGHT)
        create(cluster, NewTopic("after-the-fall", num_partitions=2, replica_assignment=[[1], [2]]))
        cluster.kill(1)
        verdict.says("Of 3 brokers 1 are down", lab, cluster, may_die=RIGHT)
        cluster.kill(2)
        # Both: a client is told of any unfenced broker as its controller, and would wait a minute for one that is dead.
        cluster.wait_for(lambda view: all(p.leader is None for p in view.topics["after-the-fall"]), "the brokers to be fenced")
        verdict.says("so the topic is older than the fall", lab, cluster, may_die=RIGHT)
        delete(cluster, "after-the-fall")
        verdict.says("There is no topic 'after-the-fall'", lab, cluster, may_die=RIGHT)
        create(cluster, NewTopic("after-the-fall", num_partitions=1, replica_assignment=[[0]]))
        verdict.passes(lab, cluster, may_die=RIGHT)
        verdict.says("Think again about 4 voters", lab, cluster, may_die=RIGHT | {4: 2})
        verdict.says("Think again about 1 voter", lab, cluster, may_die=RIGHT | {1: None})
        verdict.says("an entry for 1, 3, 4 and 5 voters", lab, cluster, may_die={3: 1})


def test_majority_with_combined_nodes(verdict: Verdict) -> None:
    with Cluster(brokers=3, backend="local") as cluster:
        cluster.kill(0)
        cluster.kill(1)
        cluster.wait_for(lambda view: view.controller is None, "the quorum to be lost")
        verdict.says("Broker 0 is a voter of the quorum, too", "02_majority", cluster, may_die=RIGHT)
        verdict.says("No controller is active", "02_majority", cluster, may_die=RIGHT)


# -- 02_min_insync, 02_isr_grows ------------------------------------------------------------------------------------

LAB_MIN = "02_min_insync"


def order(cluster: Cluster, value: str, acks: str | int = "all") -> str:
    reports: list[str] = []
    producer = Producer(cluster.client_config(acks=acks, retries=0))
    producer.produce("orders", value, on_delivery=lambda error, _: reports.append(error.name() if error else "acknowledged"))
    producer.flush()
    return reports[0]


def wait_for_isr(cluster: Cluster, size: int) -> None:
    cluster.wait_for(lambda view: len(view.topics["orders"][0].isr) == size, f"an ISR of {size}")


def test_min_insync(verdict: Verdict) -> None:
    with Cluster(brokers=3, controllers=1, backend="local") as cluster:
        verdict.says("There is no topic 'orders'", LAB_MIN, cluster)
        create(cluster, NewTopic("orders", 1, 3))
        verdict.says("Its effective min.insync.replicas is 1", LAB_MIN, cluster)
        delete(cluster, "orders")

        create(cluster, NewTopic("orders", 1, 3, config={"min.insync.replicas": "2"}))
        partition = cluster.describe().topics["orders"][0]
        first, second = (broker for broker in partition.replicas if broker != partition.leader)
        assert order(cluster, "order-1") == "acknowledged"
        verdict.says("Its ISR has 3 members", LAB_MIN, cluster)
        verdict.says("A consumer can read ['order-1'] at this moment", LAB_MIN, cluster)
        cluster.kill(first)
        wait_for_isr(cluster, 2)
        assert order(cluster, "order-2") == "acknowledged"
        verdict.says("Its ISR has 2 members", LAB_MIN, cluster)
        verdict.says("Only 1 broker went down so far", "02_isr_grows", cluster)
        cluster.kill(second)
        wait_for_isr(cluster, 1)

        refused = order(cluster, "order-3")
        assert order(cluster, "order-4", acks=1) == "acknowledged"
        verdict.passes(LAB_MIN, cluster, refused=refused)
        verdict.says("Give check() your answer as refused=", LAB_MIN, cluster)
        verdict.says("That is the client giving up", LAB_MIN, cluster, refused="_MSG_TIMED_OUT")
        verdict.says("'acknowledged' is not what a broker answers", LAB_MIN, cluster, refused="acknowledged")

        cluster.restart(first)
        wait_for_isr(cluster, 2)
        verdict.says(f"The broker {second} did not come back", "02_isr_grows", cluster)
        verdict.says(f"the replicas on broker {second} are not in the ISR", "02_isr_grows", cluster)
        cluster.restart(second)
        wait_for_isr(cluster, 3)
        verdict.says("What became of order-5?", "02_isr_grows", cluster)
        order(cluster, "order-5")
        verdict.passes("02_isr_grows", cluster)
        order(cluster, "order-3")
        verdict.says("was it retried?", "02_isr_grows", cluster)


# -- 02_isolated ----------------------------------------------------------------------------------------------------


def test_isolated(verdict: Verdict) -> None:
    with Cluster(brokers=3, backend="local") as cluster:
        lab = "02_isolated"
        right = {"with_one": "acknowledged", "with_all": "REQUEST_TIMED_OUT", "lost": ["letter with acks=1"]}
        create(cluster, NewTopic("letters", 3, 3, config={"min.insync.replicas": "2"}))
        values = [f"message {n}" for n in range(120)]
        send(cluster, "letters", *values)
        verdict.says("No broker was isolated.", lab, cluster, acknowledged=values, **right)

        controller, _ = quorum_of(cluster)
        isolated = next(broker for broker in (0, 1, 2) if broker != controller)
        cluster.kill(isolated)  # not the same: who is dead acknowledges nothing
        cluster.restart(isolated)
        verdict.says("No broker was isolated (there was: kill, restart)", lab, cluster, acknowledged=values, **right)
        # Otherwise "not in the ISR" would say nothing yet: it may still be about to come back.
        cluster.wait_for(lambda view: all(len(p.isr) == 3 for p in view.topics["letters"]), "all replicas in sync")

        cluster.isolate(isolated)
        cluster.wait_for(lambda view: all(isolated not in p.isr for p in view.topics["letters"]), "the broker to be fenced")
        verdict.says(f"Broker {isolated} is still cut off", lab, cluster, acknowledged=values, **right)
        verdict.says(f"the replicas on broker {isolated} are not in the ISR", lab, cluster, acknowledged=values, **right)
        cluster.heal(isolated)
        cluster.wait_for(lambda view: all(len(p.isr) == 3 for p in view.topics["letters"]), "all replicas in sync")
        verdict.passes(lab, cluster, acknowledged=values, **right)

        def refused(sentence: str, **answers: object) -> None:
            verdict.says(sentence, lab, cluster, **({"acknowledged": values} | right | answers))

        refused("The ledger tells of 3 messages", acknowledged=values[:3])
        refused(
            "2 acknowledged messages cannot be found, the first one is 'message 120'",
            acknowledged=[*values, "message 120", "x"],
        )
        refused("Give check() your answer as with_all=", with_all=None)
        refused("an isolated leader cannot acknowledge anything", with_all="acknowledged")
        refused("is not the sign of a leader that waits in vain", with_all="NOT_ENOUGH_REPLICAS")
        refused("With acks=1 the leader asks nobody", with_one="REQUEST_TIMED_OUT")
        refused("One message was acknowledged and is gone", lost=[])
        refused("'message 7' is not lost: it is in the topic", lost=["message 7"])
        refused("lost is a list of values", lost="letter with acks=1")


# -- 02_rack_placement ----------------------------------------------------------------------------------------------

LAB_RACKS = "02_rack_placement"


@pytest.fixture(scope="module")
def six() -> Iterator[Cluster]:
    with Cluster(brokers=6, racks=["R1"] * 3 + ["R2"] * 3, backend="local") as cluster:
        yield cluster


def test_the_rule_gives_the_totals_of_the_class() -> None:
    placed = [broker for brokers in class_placement().values() for broker in brokers]
    assert [placed.count(broker) for broker in (0, 3, 1, 4, 2, 5)] == [4, 5, 6, 6, 5, 4]


def test_rack_placement_topics(six: Cluster, verdict: Verdict) -> None:
    rule = class_placement()
    by_order = {p: [(p + step) % 6 for step in range(3)] for p in range(10)}  # racks are not looked at
    verdict.says("There is no topic 'by-hand'", LAB_RACKS, six, placement=rule)
    create(six, NewTopic("by-hand", 10, 3))
    verdict.says("Who chose its brokers, you or Kafka?", LAB_RACKS, six, placement=rule)
    delete(six, "by-hand")
    create(
        six,
        NewTopic("by-hand", num_partitions=10, replica_assignment=list(rule.values())),
        NewTopic("by-kafka", num_partitions=10, replica_assignment=list(by_order.values())),
    )
    verdict.says("Partition 0 of 'by-kafka' is on one rack only", LAB_RACKS, six, placement=rule)
    delete(six, "by-kafka")
    create(six, NewTopic("by-kafka", 10, 2))
    verdict.says("Each partition has 2 replicas, not 3", LAB_RACKS, six, placement=rule)
    delete(six, "by-kafka")
    create(six, NewTopic("by-kafka", 10, 3))
    verdict.passes(LAB_RACKS, six, placement=rule)


def in_order_of_id() -> dict[int, list[int]]:
    return {p: [(p + step) % 6 for step in range(3)] for p in range(10)}


def all_leaders_on_the_first() -> dict[int, list[int]]:
    return {p: [0, 3, 1] for p in range(10)}


def followers_two_places_on() -> dict[int, list[int]]:
    in_turn = [0, 3, 1, 4, 2, 5]
    return {p: [in_turn[p % 6], in_turn[(p + 1) % 6], in_turn[(p + 3) % 6]] for p in range(10)}


def twice_on_one_broker() -> dict[int, list[int]]:
    return class_placement() | {7: [3, 1, 3]}


def two_copies() -> dict[int, list[int]]:
    return {p: brokers[:2] for p, brokers in class_placement().items()}


def six_partitions() -> dict[int, list[int]]:
    return {p: brokers for p, brokers in class_placement().items() if p < 6}


def a_list() -> object:
    return list(class_placement().values())


@pytest.mark.parametrize(
    ("placement", "sentence"),
    [
        (lambda: None, "Give check() your answer as placement="),
        (dict, "It has 0 partitions; the class's topic has partitions 0 to 9"),
        (a_list, "The placement is a dictionary"),
        (six_partitions, "It has 6 partitions; the class's topic has partitions 0 to 9"),
        (two_copies, "Partition 0 is on [0, 3]: three of the brokers 0 to 5 are wanted"),
        (twice_on_one_broker, "Partition 7 has two replicas on one broker"),
        (in_order_of_id, "Partition 0 is on rack R1 only"),
        (all_leaders_on_the_first, "The leader of partition 1 is another one by the rule"),
        (followers_two_places_on, "The second follower of partition 0 is on another broker by the rule"),
    ],
)
def test_rack_placement_wrong(six: Cluster, verdict: Verdict, placement: Callable[[], object], sentence: str) -> None:
    verdict.says(sentence, LAB_RACKS, six, placement=placement())


def test_rack_placement_without_racks(clean: Cluster, verdict: Verdict) -> None:
    create(clean, NewTopic("by-kafka", 10, 3))
    verdict.says("The brokers are not in two racks", LAB_RACKS, clean, placement=class_placement())

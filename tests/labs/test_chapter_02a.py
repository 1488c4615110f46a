"""The labs of chapter 02, first half: each wrong answer is told apart from the right one, with a sentence that helps."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from kafkalab import Cluster, ConsoleConsumer
from kafkalab.checks.sight import watermarks
from kafkalab.cluster import ClusterView, PartitionView
from kafkalab.distribution import put_tools_on_path
from kafkalab.workers import wait_until_shared

from .support import Verdict

pytestmark = pytest.mark.cluster

FAILSAFE, PURCHASES, RETURNS = "my-failsafe-topic", "purchases", "returns"
GREETINGS = ["Hi mom", "How are you?", "How are things going?", "Good!", "message 1", "message 2", "message 3"]


def create(cluster: Cluster, topic: str, partitions: int, copies: int = 3, plan: list[list[int]] | None = None) -> None:
    admin = AdminClient(cluster.client_config())
    new = NewTopic(topic, partitions, replica_assignment=plan) if plan else NewTopic(topic, partitions, copies)
    admin.create_topics([new])[topic].result()

    def there(view: ClusterView) -> bool:
        return len(view.topics[topic]) == partitions and all(len(p.isr) == len(p.replicas) for p in view.topics[topic])

    cluster.wait_for(there, f"the topic {topic}")


def send(cluster: Cluster, topic: str, *values: str, partition: int | None = None) -> None:
    """One record at a time, over the partitions in turn."""
    partitions = len(cluster.describe(groups=False).topics[topic])
    producer = Producer(cluster.client_config())
    for number, value in enumerate(values):
        producer.produce(topic, value, partition=number % partitions if partition is None else partition)
        producer.flush()


def commit(cluster: Cluster, group: str, topic: str, *, partitions: list[int] | None = None) -> None:
    """Commit a group as having read all of these partitions, without joining it."""
    consumer = Consumer(cluster.client_config(group_id=group))
    ends = {p: end for p, (_, end) in watermarks(cluster, topic).items() if partitions is None or p in partitions}
    consumer.commit(offsets=[TopicPartition(topic, p, end) for p, end in ends.items()], asynchronous=False)
    consumer.close()


def m(first: int, last: int) -> list[str]:
    return [f"m{n}" for n in range(first, last + 1)]


class Doctored:
    """A cluster that shows something else than it is: what is over in a moment, for example."""

    def __init__(self, cluster: Cluster, change: Callable[[PartitionView], PartitionView], topic: str) -> None:
        self._cluster, self._change, self._topic = cluster, change, topic

    def __getattr__(self, name: str) -> object:
        return getattr(self._cluster, name)

    def describe(self, **options: bool) -> ClusterView:
        view = self._cluster.describe(**options)
        topics = {**view.topics, self._topic: tuple(self._change(p) for p in view.topics[self._topic])}
        return replace(view, topics=topics)


# -- 02_three_brokers -----------------------------------------------------------------------------------------------

ORDINALS = ("1st", "2nd", "3rd")


def configuration(n: int) -> dict[str, str]:
    return {
        "process.roles": "broker,controller",
        "node.id": str(n),
        "listeners": f"PLAINTEXT://localhost:{9092 + n},CONTROLLER://localhost:{9192 + n}",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": "0@localhost:9192,1@localhost:9193,2@localhost:9194",
        "log.dirs": f"./logs/kafka-{n}",
        "offsets.topic.replication.factor": "3",
    }


def write(folder: Path, *, formatted: bool = True, scripts: bool = True, **changed: Mapping[str, str]) -> None:
    """The three files, of which some are changed: ``n1={"node.id": "0"}``."""
    for n, ordinal in enumerate(ORDINALS):
        settings = {**configuration(n), **changed.get(f"n{n}", {})}
        (folder / f"server-{n}.properties").write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        if scripts:
            (folder / f"start-{ordinal}-server.sh").write_text(f"#!/bin/sh\nexec kafka-server-start.sh server-{n}.properties\n")
        if formatted:
            data = folder / settings["log.dirs"]
            data.mkdir(parents=True, exist_ok=True)
            (data / "meta.properties").write_text(f"version=1\ncluster.id=abc\nnode.id={settings['node.id']}\n")


def only_the_first(folder: Path) -> None:
    write(folder)
    (folder / "server-1.properties").unlink()


def copied_unchanged(folder: Path) -> None:
    write(folder, n1=configuration(0), n2=configuration(0))


def ids_alike(folder: Path) -> None:
    write(folder, n2={"node.id": "1"})


def port_twice(folder: Path) -> None:
    write(folder, n1={"listeners": "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9193"})


def controller_port_twice(folder: Path) -> None:
    write(folder, n2={"listeners": "PLAINTEXT://localhost:9094,CONTROLLER://localhost:9192"})


def one_port_for_both_roles(folder: Path) -> None:
    write(folder, n2={"listeners": "PLAINTEXT://localhost:9094,CONTROLLER://localhost:9094"})


def folder_shared(folder: Path) -> None:
    write(folder, n2={"log.dirs": "./logs/kafka-1"})


def voters_differ(folder: Path) -> None:
    write(folder, n1={"controller.quorum.voters": "1@localhost:9193"})


def voters_elsewhere(folder: Path) -> None:
    voters = {"controller.quorum.voters": "0@localhost:9092,1@localhost:9093,2@localhost:9094"}
    write(folder, n0=voters, n1=voters, n2=voters)


def offsets_kept_once(folder: Path) -> None:
    write(folder, n0={"offsets.topic.replication.factor": "1"})


def not_formatted(folder: Path) -> None:
    write(folder, formatted=False)


def formatted_for_two_clusters(folder: Path) -> None:
    write(folder)
    (folder / "logs/kafka-2/meta.properties").write_text("version=1\ncluster.id=other\nnode.id=2\n")


def formatted_before_the_id_was_set(folder: Path) -> None:
    write(folder)
    (folder / "logs/kafka-2/meta.properties").write_text("version=1\ncluster.id=abc\nnode.id=0\n")


def no_scripts(folder: Path) -> None:
    write(folder, scripts=False)


def first_script_starts_the_third(folder: Path) -> None:
    write(folder)
    (folder / "start-1st-server.sh").write_text("exec kafka-server-start.sh server-2.properties\n")


@pytest.mark.parametrize(
    ("wrong", "helps"),
    [
        (only_the_first, "There is no server-1.properties"),
        (copied_unchanged, "By what do the brokers know each other?"),
        (ids_alike, "server-2.properties has node.id=1"),
        (port_twice, "Node 0 listens on port 9092"),
        (controller_port_twice, "Node 0 listens on port 9192"),
        (one_port_for_both_roles, "The same node listens on port 9094"),
        (folder_shared, "would both write to ./logs/kafka-1"),
        (voters_differ, "all must agree who votes"),
        (voters_elsewhere, "looks for node 0 on port 9092"),
        (offsets_kept_once, "where does Kafka keep their offsets"),
        (not_formatted, "is not formatted"),
        (formatted_for_two_clusters, "formatted for different clusters"),
        (formatted_before_the_id_was_set, "was formatted for node 0"),
        (no_scripts, "There is no start-1st-server.sh"),
        (first_script_starts_the_third, "Which node is the 1st?"),
    ],
)
def test_three_brokers_wrong(cluster: Cluster, verdict: Verdict, tmp_path: Path, wrong: Callable[[Path], None], helps: str) -> None:
    wrong(tmp_path)
    passed, said = verdict("02_three_brokers", cluster, folder=tmp_path)
    assert not passed and helps in said


def test_three_brokers_right(cluster: Cluster, verdict: Verdict, tmp_path: Path) -> None:
    write(tmp_path, formatted=False)
    put_tools_on_path()
    for n in range(3):
        command = ["kafka-storage.sh", "format", "--cluster-id", "4L6g3nShT-eMCtK--X86sw", "--config", f"server-{n}.properties"]
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    passed, said = verdict("02_three_brokers", cluster, folder=str(tmp_path))
    assert passed, said


def test_three_brokers_without_a_folder(cluster: Cluster, verdict: Verdict) -> None:
    assert "folder=" in verdict("02_three_brokers", cluster)[1]


# -- 02_failsafe ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "helps"),
    [
        (lambda c: None, "There is no topic 'my-failsafe-topic'"),
        (lambda c: create(c, "my-topic", 13), "The cluster's topics: my-topic"),
        (lambda c: create(c, FAILSAFE, 3), "It has 3 partitions"),
        (lambda c: create(c, FAILSAFE, 13, 1), "Each partition has 1 replica, not 3"),
        (lambda c: create(c, FAILSAFE, 13, plan=[[0, 1, 2]] * 13), "Did you name the replicas yourself?"),
    ],
    ids=["nothing", "another_name", "three_partitions", "one_replica", "all_led_by_one"],
)
def test_failsafe_wrong(clean: Cluster, verdict: Verdict, wrong: Callable[[Cluster], None], helps: str) -> None:
    wrong(clean)
    passed, said = verdict("02_failsafe", clean)
    assert not passed and helps in said


def test_failsafe_right(clean: Cluster, verdict: Verdict) -> None:
    create(clean, FAILSAFE, 13)
    passed, said = verdict("02_failsafe", clean)
    assert passed, said
    lagging = Doctored(clean, lambda p: replace(p, isr=p.isr[:2]), FAILSAFE)
    assert "had it the time to catch up?" in verdict("02_failsafe", lagging)[1]


# -- 02_publish_subscribe -------------------------------------------------------------------------------------------


def one_group_for_all(cluster: Cluster) -> None:
    send(cluster, FAILSAFE, *GREETINGS)
    commit(cluster, "readers", FAILSAFE)


def late_ones_from_the_end(cluster: Cluster) -> None:
    send(cluster, FAILSAFE, *GREETINGS)
    commit(cluster, "first", FAILSAFE)
    for group in ("second", "third"):
        commit(cluster, group, FAILSAFE, partitions=[4, 5, 6])  # where message 1 … message 3 are


def not_all_sent(cluster: Cluster) -> None:
    send(cluster, FAILSAFE, *GREETINGS[:6])


def sent_twice(cluster: Cluster) -> None:
    send(cluster, FAILSAFE, *GREETINGS, *GREETINGS[:2])


@pytest.mark.parametrize(
    ("wrong", "helps"),
    [
        (lambda c: None, "None of Hi mom … message 3 is in my-failsafe-topic yet"),
        (one_group_for_all, "1 group read the topic so far"),
        (late_ones_from_the_end, "where does a consumer begin that comes late"),
        (not_all_sent, "'message 3' is not in my-failsafe-topic"),
        (sent_twice, "'Hi mom' is in my-failsafe-topic 2 times"),
    ],
)
def test_publish_subscribe_wrong(clean: Cluster, verdict: Verdict, wrong: Callable[[Cluster], None], helps: str) -> None:
    create(clean, FAILSAFE, 13)
    wrong(clean)
    passed, said = verdict("02_publish_subscribe", clean)
    assert not passed and helps in said


def test_publish_subscribe_right(clean: Cluster, verdict: Verdict) -> None:
    create(clean, FAILSAFE, 13)
    send(clean, FAILSAFE, *GREETINGS)
    for group in ("first", "second", "third"):
        commit(clean, group, FAILSAFE)
    send(clean, FAILSAFE, *m(1, 7))  # what comes later is another lab's matter
    passed, said = verdict("02_publish_subscribe", clean)
    assert passed, said


# -- 02_load_sharing and 02_consumer_failover -----------------------------------------------------------------------


def member(cluster: Cluster, number: int, group: str = "mygroup", **settings: object) -> ConsoleConsumer:
    return ConsoleConsumer(cluster, FAILSAFE, group=group, name=f"member-{number}", from_beginning=True, **settings)


def all_committed(cluster: Cluster) -> None:
    """Wait until ``mygroup`` has read and committed all that `send` spread over the first seven partitions."""

    def done(view: ClusterView) -> bool:
        lag = view.groups["mygroup"].lag  # nothing committed yet: no entry
        return set(range(7)) <= {p for _, p in lag} and not any(lag.values())

    cluster.wait_for(done, "commits of all seven", groups=True)


def test_load_sharing_and_consumer_failover(clean: Cluster, verdict: Verdict) -> None:
    create(clean, FAILSAFE, 13)
    passed, said = verdict("02_load_sharing", clean)
    assert not passed and "None of m1 … m7" in said and "There is no consumer group 'mygroup'. Groups: none." in said

    members = [member(clean, 1), member(clean, 2)]
    wait_until_shared(*members)
    send(clean, FAILSAFE, *m(1, 7))
    passed, said = verdict("02_load_sharing", clean)
    assert not passed and "mygroup has 2 members, not 3" in said

    members.append(member(clean, 3))
    wait_until_shared(*members)
    clean.wait_for(lambda v: len(v.groups["mygroup"].members) == 3, "three members", groups=True)
    all_committed(clean)
    passed, said = verdict("02_load_sharing", clean)
    assert passed, said

    passed, said = verdict("02_consumer_failover", clean)
    assert not passed and "3 members, not 2. One that was killed counts as a member" in said and "None of m8 … m14" in said

    members[2].close()
    members[1].close()
    wait_until_shared(members[0])
    passed, said = verdict("02_consumer_failover", clean)
    assert not passed and "mygroup has 1 member, not 2" in said

    members[1] = member(clean, 2)
    wait_until_shared(*members[:2])
    send(clean, FAILSAFE, *m(8, 14))
    members[0].wait_for(1)
    all_committed(clean)
    passed, said = verdict("02_consumer_failover", clean)
    assert passed, said
    for one in members:
        one.close()
    assert "mygroup has 0 members" in verdict("02_consumer_failover", clean)[1]


def test_load_sharing_in_groups_of_their_own(clean: Cluster, verdict: Verdict) -> None:
    create(clean, FAILSAFE, 13)
    send(clean, FAILSAFE, *m(1, 7))
    for group in ("mygroup1", "mygroup2", "mygroup3"):
        commit(clean, group, FAILSAFE)
    passed, said = verdict("02_load_sharing", clean)
    assert not passed and "There is no consumer group 'mygroup'. Groups: mygroup1, mygroup2, mygroup3" in said


def test_load_sharing_without_commits(clean: Cluster, verdict: Verdict) -> None:
    create(clean, FAILSAFE, 13)
    members = [member(clean, n, **{"enable.auto.commit": False}) for n in (1, 2, 3)]
    wait_until_shared(*members)
    send(clean, FAILSAFE, *m(1, 7))
    passed, said = verdict("02_load_sharing", clean)
    assert not passed and "mygroup has not committed 'm1' as read" in said
    for one in members:
        one.close()


# -- 02_describe ----------------------------------------------------------------------------------------------------


def test_describe(clean: Cluster, verdict: Verdict) -> None:
    create(clean, FAILSAFE, 13)
    partitions = clean.describe().topics[FAILSAFE]
    right = {p.partition: (p.leader, list(p.replicas), list(p.isr)) for p in partitions}
    one = {**right, 3: (None, right[3][1], right[3][2])}
    wrong: list[tuple[object, str]] = [
        ({}, "as table="),
        ([(0, 1)], "should be a dictionary"),
        ({n: right[n] for n in range(12)}, "no row for partition 12"),
        ({n + 1: row for n, row in right.items()}, "has a row 13"),
        (one, "Row 3 should hold broker ids"),
        ({**right, 0: ((right[0][0] + 1) % 3, *right[0][1:])}, "The leader of partition 0 is another one"),
        ({n: (leader, sorted(replicas, reverse=replicas == sorted(replicas)), isr) for n, (leader, replicas, isr) in right.items()},
         "right, but not in their order"),
        ({n: (leader, replicas, isr[:2]) for n, (leader, replicas, isr) in right.items()}, "The ISR of partition 0 is another one"),
        ({n: row[:2] for n, row in right.items()}, "should be (leader, replicas, isr)"),
    ]  # fmt: skip
    for table, helps in wrong:
        passed, said = verdict("02_describe", clean, table=table)
        assert not passed and helps in said
    passed, said = verdict("02_describe", clean, table=right)
    assert passed, said


# -- 02_broker_failover and 02_failover_proof; 02_atu_failover and 02_atu_rebalance -----------------------------------


@pytest.fixture
def own() -> Iterator[Cluster]:
    """Three brokers of which a test may end one."""
    with Cluster(brokers=3, backend="local") as cluster:
        yield cluster


def without(cluster: Cluster, broker: int, topic: str) -> None:
    cluster.wait_for(lambda v: all(p.leader not in (broker, None) and broker not in p.isr for p in v.topics[topic]), "new leaders")


def test_broker_failover_and_proof(own: Cluster, verdict: Verdict) -> None:
    create(own, FAILSAFE, 13)
    send(own, FAILSAFE, *m(1, 14))
    commit(own, "mygroup", FAILSAFE)
    passed, said = verdict("02_broker_failover", own)
    assert not passed and "Broker 0 is up." in said and "was there time for the controller to notice?" in said

    own.kill(1)
    without(own, 1, FAILSAFE)
    passed, said = verdict("02_broker_failover", own)
    assert not passed and "Broker 1 is down, and broker 0 is up. Which one does the text name?" in said
    own.restart(1)
    own.wait_for(lambda v: all(len(p.isr) == 3 for p in v.topics[FAILSAFE]), "complete ISRs")

    own.kill(0)
    without(own, 0, FAILSAFE)
    passed, said = verdict("02_broker_failover", own)
    assert passed, said

    at_once = Doctored(own, lambda p: replace(p, leader=p.replicas[0], isr=p.replicas), FAILSAFE)
    passed, said = verdict("02_broker_failover", at_once)
    assert not passed and "was there time for the controller to notice?" in said and "still in the ISR of partition" in said
    leaderless = Doctored(own, lambda p: replace(p, leader=None), FAILSAFE)
    assert "has no leader" in verdict("02_broker_failover", leaderless)[1]
    two_gone = Doctored(own, lambda p: replace(p, isr=(2,)), FAILSAFE)
    assert "lacks broker 1, too" in verdict("02_broker_failover", two_gone)[1]
    planned_away = Doctored(own, lambda p: replace(p, replicas=(1, 2)), FAILSAFE)
    assert "do not name broker 0" in verdict("02_broker_failover", planned_away)[1]

    passed, said = verdict("02_failover_proof", own)
    assert not passed and "None of m15 … m16" in said
    send(own, FAILSAFE, "m15")
    assert "'m16' is not in my-failsafe-topic" in verdict("02_failover_proof", own)[1]
    send(own, FAILSAFE, "m16")
    passed, said = verdict("02_failover_proof", own)
    assert not passed and "mygroup has not committed 'm15' as read" in said
    commit(own, "mygroup", FAILSAFE)
    passed, said = verdict("02_failover_proof", own)
    assert passed, said
    own.restart(0)
    passed, said = verdict("02_failover_proof", own)
    assert not passed and "Broker 0 is up." in said


def test_atu_failover_ids_and_rebalance(own: Cluster, verdict: Verdict) -> None:
    create(own, PURCHASES, 3, plan=[[0, 1, 2], [1, 2, 0], [2, 0, 1]])
    send(own, PURCHASES, *[f"purchase{n}" for n in range(1, 6)])
    everything = [f"purchase{n}" for n in range(1, 8)]
    passed, said = verdict("02_atu_failover", own, reread=[])
    assert not passed and "Broker 1 is up." in said and "None of purchase6 … purchase7" in said and "as reread=" in said
    assert "Broker 1 never went down" in verdict("02_atu_rebalance", own)[1]

    own.stop_broker(1)
    without(own, 1, PURCHASES)
    send(own, PURCHASES, "purchase6", "purchase7")
    passed, said = verdict("02_atu_failover", own, reread=["purchase6", "purchase7"])
    assert not passed and "It is still there: where did the reading begin?" in said
    passed, said = verdict("02_atu_failover", own, reread=everything[:5])
    assert not passed and "Was it sent before the reading ended?" in said
    passed, said = verdict("02_atu_failover", own, reread=everything)
    assert passed, said

    leaders = {p: leader for p, leader in own.describe().leaders(PURCHASES).items()}
    other = {0: 2, 2: 0}
    wrong: list[tuple[dict[str, object], str]] = [
        ({}, "as leader_of="),
        ({"leader_of": {0: 0, 1: 1, 2: 2}, "held_by_1": {0, 1, 2}}, "the number of a partition says nothing about its broker"),
        ({"leader_of": {0: 0, 2: 2}, "held_by_1": {0, 1, 2}}, "which number is the partition's?"),
        ({"leader_of": {**leaders, 1: other[leaders[1]]}, "held_by_1": {0, 1, 2}}, "Partition 1 is led by another broker"),
        ({"leader_of": leaders}, "as held_by_1="),
        ({"leader_of": leaders, "held_by_1": set()}, "which column says where copies belong?"),
    ]
    for answers, helps in wrong:
        passed, said = verdict("02_atu_ids", own, **answers)
        assert not passed and helps in said, said
    passed, said = verdict("02_atu_ids", own, leader_of=leaders, held_by_1={0, 1, 2})
    assert passed, said

    assert "Broker 1 did not start again" in verdict("02_atu_rebalance", own)[1]
    own.restart(1)
    own.wait_for(lambda v: all(len(p.isr) == 3 for p in v.topics[PURCHASES]), "complete ISRs")
    passed, said = verdict("02_atu_rebalance", own)
    assert not passed and "Who gives leadership back, and when?" in said
    put_tools_on_path()
    command = ["kafka-leader-election.sh", "--bootstrap-server", own.bootstrap_servers, "--election-type", "preferred"]
    subprocess.run([*command, "--all-topic-partitions"], check=True, capture_output=True)
    own.wait_for(lambda v: all(p.leader == p.replicas[0] for p in v.topics[PURCHASES]), "preferred leaders")
    passed, said = verdict("02_atu_rebalance", own)
    assert passed, said


# -- the other parts of the ATU lab -----------------------------------------------------------------------------------


def test_atu_brokers(verdict: Verdict) -> None:
    with Cluster(brokers=1, backend="local") as cluster:
        assert "There is no topic 'atu'" in verdict("02_atu_brokers", cluster)[1]
        create(cluster, "atu", 1, 1)
        passed, said = verdict("02_atu_brokers", cluster)
        assert not passed and "The cluster has broker 0. There should be brokers 1, 2, too." in said
        cluster.add_broker()
        passed, said = verdict("02_atu_brokers", cluster)
        assert not passed and "There should be broker 2, too." in said
        cluster.add_broker()
        passed, said = verdict("02_atu_brokers", cluster)
        assert passed, said
        moved = Doctored(cluster, lambda p: replace(p, replicas=(1,)), "atu")
        assert "New brokers take over nothing" in verdict("02_atu_brokers", moved)[1]
        cluster.stop_broker(2)
        assert "Broker 2 is stopped" in verdict("02_atu_brokers", cluster)[1]


def lists(*topics: str) -> dict[int, set[str]]:
    return {broker: set(topics) for broker in (0, 1, 2)}


@pytest.mark.parametrize(
    ("make", "listed", "helps"),
    [
        (lambda c: None, lists("atu"), "There is no topic 'purchases'"),
        (lambda c: create(c, PURCHASES, 1), lists("atu", PURCHASES), "It has 1 partition."),
        (lambda c: create(c, PURCHASES, 3, 2), lists("atu", PURCHASES), "Each partition has 2 replicas, not 3"),
        (lambda c: create(c, PURCHASES, 3, plan=[[0, 1, 2]] * 3), lists("atu", PURCHASES), "Were all three brokers there"),
        (lambda c: create(c, PURCHASES, 3), {}, "as listed="),
        (lambda c: create(c, PURCHASES, 3), lists("atu"), "Was it made before the topic?"),
        (lambda c: create(c, PURCHASES, 3), {0: {"atu", PURCHASES}}, "no list from broker 1"),
        (lambda c: create(c, PURCHASES, 3), lists("atu", PURCHASES, "returns"), "'returns', which is no topic"),
    ],
    ids=["nothing", "one_partition", "two_replicas", "led_by_one", "no_lists", "listed_too_early", "one_broker_asked", "made_up"],
)
def test_atu_purchases_wrong(
    clean: Cluster, verdict: Verdict, make: Callable[[Cluster], None], listed: dict[int, set[str]], helps: str
) -> None:
    create(clean, "atu", 1, 1)
    make(clean)
    passed, said = verdict("02_atu_purchases", clean, listed=listed)
    assert not passed and helps in said, said


def test_atu_purchases_and_messages_right(clean: Cluster, verdict: Verdict) -> None:
    create(clean, "atu", 1, 1)
    create(clean, PURCHASES, 3)
    passed, said = verdict("02_atu_purchases", clean, listed=lists("atu", PURCHASES, "__consumer_offsets"))
    assert passed, said
    send(clean, PURCHASES, *[f"purchase{n}" for n in range(1, 6)])
    passed, said = verdict("02_atu_messages", clean)
    assert passed, said


@pytest.mark.parametrize(
    ("values", "helps"),
    [
        ([], "None of purchase1 … purchase5"),
        (["purchase1", "purchase2", "purchase3", "purchase4"], "'purchase5' is not in purchases"),
        ([f"purchase{n}" for n in (1, 2, 3, 4, 5, 5)], "2 times"),
        ([f"purchase{n}" for n in (1, 2, 3, 4, 5, 9)], "also holds 'purchase9'"),
        (["Purchase 1", "Purchase 2"], "None of purchase1 … purchase5"),
    ],
    ids=["nothing", "four", "one_twice", "one_too_many", "other_text"],
)
def test_atu_messages_wrong(clean: Cluster, verdict: Verdict, values: list[str], helps: str) -> None:
    create(clean, PURCHASES, 3)
    send(clean, PURCHASES, *values)
    passed, said = verdict("02_atu_messages", clean)
    assert not passed and helps in said


@pytest.mark.parametrize(
    ("wrong", "helps"),
    [
        (lambda c: None, "There is no topic 'returns'"),
        (lambda c: create(c, RETURNS, 3, 2), "It has 3 partitions"),
        (lambda c: create(c, RETURNS, 5, 3), "Each partition has 3 replicas, not 2"),
        (lambda c: create(c, RETURNS, 5, plan=[[0, 2]] * 5), "Broker 1 keeps none of it"),
    ],
    ids=["nothing", "three_partitions", "three_replicas", "made_while_one_was_down"],
)
def test_atu_counts_wrong(clean: Cluster, verdict: Verdict, wrong: Callable[[Cluster], None], helps: str) -> None:
    wrong(clean)
    passed, said = verdict("02_atu_counts", clean)
    assert not passed and helps in said


TEN = [f"return{n}" for n in range(1, 11)]
RIGHT = {p: TEN[p::5] for p in range(5)}  # as `send` spreads them


def test_atu_counts_and_order_right(clean: Cluster, verdict: Verdict) -> None:
    create(clean, RETURNS, 5, 2)
    passed, said = verdict("02_atu_counts", clean)
    assert passed, said
    send(clean, RETURNS, *TEN)
    passed, said = verdict("02_atu_order", clean, by_partition=RIGHT)
    assert passed, said


@pytest.mark.parametrize(
    ("by_partition", "helps"),
    [
        ({}, "as by_partition="),
        ({0: TEN}, "an entry for each of the five partitions"),
        ({p: TEN for p in range(5)}, "Does your consumer read this partition only"),
        ({p: sorted(values) for p, values in RIGHT.items()}, "sorted by text, return10 comes before return2"),
        ({p: values[:1] for p, values in RIGHT.items()}, "and all of it?"),
    ],
    ids=["nothing", "all_in_one", "whole_topic_each_time", "sorted_by_text", "not_to_the_end"],
)
def test_atu_order_wrong_answers(clean: Cluster, verdict: Verdict, by_partition: dict[int, list[str]], helps: str) -> None:
    create(clean, RETURNS, 5, 2)
    send(clean, RETURNS, *TEN)
    passed, said = verdict("02_atu_order", clean, by_partition=by_partition)
    assert not passed and helps in said, said


def test_atu_order_sent_wrongly(clean: Cluster, verdict: Verdict) -> None:
    create(clean, RETURNS, 5, 2)
    send(clean, RETURNS, *TEN, partition=3)
    assert "All ten stand in one partition" in verdict("02_atu_order", clean, by_partition=RIGHT)[1]


def test_atu_order_sent_backwards(clean: Cluster, verdict: Verdict) -> None:
    create(clean, RETURNS, 5, 2)
    send(clean, RETURNS, *reversed(TEN))
    assert "Were they sent in order" in verdict("02_atu_order", clean, by_partition=RIGHT)[1]

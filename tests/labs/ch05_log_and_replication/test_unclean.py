"""A leader elected out of sync: each wrong answer gets its sentence, and right ones pass."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import ElectionType, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from kafkalab import Cluster, wait_until
from support import BACKEND, PATIENCE, Told, Verdict, create, put, renew, wait_for

pytestmark = pytest.mark.cluster

ELECTION, LOSS = "05_unclean", "05_unclean_lost"
TOPICS = ("careful", "daring", "by-hand")
UNCLEAN = "unclean.leader.election.enable"
Values = dict[str, list[str]]
End = Callable[[Cluster, int], None]


@pytest.fixture(scope="module")
def governed_pair() -> Iterator[Cluster]:
    with Cluster(brokers=2, controllers=1, backend=BACKEND) as cluster:
        yield cluster


@pytest.fixture
def pair(governed_pair: Cluster) -> Iterator[Cluster]:
    """Two brokers and a dedicated controller; a test may end brokers."""
    governed_pair.nodes.faults.clear()
    yield governed_pair
    renew(governed_pair)


def make_topics(cluster: Cluster, daring: str = "true") -> None:
    for topic in TOPICS:
        allowed = daring if topic == "daring" else "false"
        create(cluster, topic, 1, placed=[(0, 1)], min_insync_replicas="1", unclean_leader_election_enable=allowed)


def allow(cluster: Cluster, topic: str, change: AlterConfigOpType) -> None:
    """Let a replica out of sync lead a topic, or take that setting off."""
    entry = ConfigEntry(UNCLEAN, "true", incremental_operation=change)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin = AdminClient(cluster.client_config())
    admin.incremental_alter_configs([resource])[resource].result()


def elect(cluster: Cluster, topic: str) -> None:
    """Let a replica lead that isn't in sync, by hand."""
    admin = AdminClient({**cluster.client_config(), "bootstrap.servers": cluster.clients.bootstrap(1)})
    admin.elect_leaders(ElectionType.UNCLEAN, [TopicPartition(topic, 0)]).result()


def send_fifteen(cluster: Cluster, end: End = Cluster.kill) -> Values:
    """Five records on both replicas, ten on broker 0 alone, which leads."""
    ledger: Values = {topic: [f"on both {n}" for n in range(1, 6)] for topic in TOPICS}
    for topic, values in ledger.items():
        put(cluster, topic, [(None, value, 0) for value in values], acks="all")
    end(cluster, 1)
    wait_for(cluster, lambda view: all(view.topics[topic][0].isr == (0,) for topic in TOPICS), "broker 0 alone")
    for topic, values in ledger.items():
        alone = [f"alone {n}" for n in range(1, 11)]
        put(cluster, topic, [(None, value, 0) for value in alone], acks=1)
        values += alone
    return ledger


def swap(cluster: Cluster, end: End = Cluster.kill) -> None:
    """Let the replica that lacks records be the only one."""
    end(cluster, 0)
    cluster.restart(1)
    wait_for(cluster, lambda view: view.topics["daring"][0].leader == 1, "a leader of daring")


def test_unclean(pair: Cluster, verdict: Verdict) -> None:
    cluster = pair
    verdict.says("There is no topic 'careful' yet", ELECTION, cluster)
    make_topics(cluster)
    verdict.says("No broker has been down since both were last up", ELECTION, cluster)
    verdict.says("Broker 0 went down first", ELECTION, Told(cluster, ("kill", 0)))
    first_try = (("kill", 0), ("kill", 1), ("restart", 0), ("restart", 1))
    told: Cluster = Told(cluster, *first_try)
    verdict.says("No broker has been down since both were last up", ELECTION, told)
    told = Told(cluster, *first_try, ("kill", 1), ("kill", 0), ("restart", 1))
    verdict.says("Broker 0 is up. It should be down", ELECTION, told)
    ledger = send_fifteen(cluster)
    verdict.says("Broker 0 is up. It should be down", ELECTION, cluster)
    swap(cluster)
    verdict.says("by-hand has no leader", ELECTION, cluster)
    elect(cluster, "by-hand")
    verdict.passes(ELECTION, cluster)

    verdict.says("Not every node is up: 0 is dead", LOSS, cluster, ledger=ledger)
    cluster.restart(0)
    wait_for(cluster, lambda view: all(view.in_sync(topic) for topic in TOPICS), "both replicas in sync")
    lost = {"careful": 0, "daring": 10, "by-hand": 10}
    verdict.passes(LOSS, cluster, ledger=ledger, lost=lost)
    verdict.says("`lost['daring']` is 0", LOSS, cluster, ledger=ledger, lost=lost | {"daring": 0})
    verdict.says("`ledger` has 5 records of careful", LOSS, cluster, ledger={t: v[:5] for t, v in ledger.items()}, lost=lost)
    verdict.says("careful lacks 1 acknowledged record", LOSS, cluster, ledger=ledger | {"careful": [*ledger["careful"], "x"]})
    complete = ledger | {"daring": [*ledger["careful"][:5] * 3]}
    verdict.says("daring lost nothing", LOSS, cluster, ledger=complete, lost=lost)


def test_brokers_that_are_stopped_and_a_leader_that_the_tool_elects(pair: Cluster, verdict: Verdict) -> None:
    cluster = pair
    make_topics(cluster)
    ledger = send_fifteen(cluster, Cluster.stop_broker)
    swap(cluster, Cluster.stop_broker)
    tool = ["kafka-leader-election.sh", "--bootstrap-server", cluster.clients.bootstrap(1), "--election-type", "unclean"]
    subprocess.run([*tool, "--topic", "by-hand", "--partition", "0"], check=True)
    verdict.passes(ELECTION, cluster)

    cluster.restart(0)
    wait_for(cluster, lambda view: view.in_sync(TOPICS), "both replicas in sync")
    verdict.passes(LOSS, cluster, ledger=ledger, lost={"careful": 0, "daring": 10, "by-hand": 10})


def test_all_may_be_unclean_and_nothing_was_sent_to_one_replica(pair: Cluster, verdict: Verdict) -> None:
    cluster = pair
    make_topics(cluster, daring="false")
    verdict.says("unclean.leader.election.enable of daring is false", ELECTION, cluster)
    for topic in TOPICS:
        allow(cluster, topic, AlterConfigOpType.SET)
    known = "unclean.leader.election.enable of careful is true"
    wait_until(lambda: known in verdict(ELECTION, cluster)[1], PATIENCE, "the settings to be known")
    for topic in ("careful", "by-hand"):  # another way to have it false: take it off
        allow(cluster, topic, AlterConfigOpType.DELETE)

    for topic in TOPICS:  # all fifteen on both replicas
        put(cluster, topic, [(None, f"on both {n}", 0) for n in range(15)], acks="all")
    cluster.stop_broker(1)
    wait_for(cluster, lambda view: all(view.topics[topic][0].isr == (0,) for topic in TOPICS), "broker 0 alone")
    swap(cluster)
    elect(cluster, "by-hand")
    verdict.says("The log of daring ends at 15, so broker 1 lacks nothing", ELECTION, cluster)
    elect(cluster, "careful")
    verdict.says("Broker 1 leads careful, though it lacks records", ELECTION, cluster)

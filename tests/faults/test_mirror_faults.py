"""What MirrorMaker does when something is wrong with one of its clusters, and what it says."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from kafkalab import Cluster, wait_until
from kafkalab.checks import CheckContext
from kafkalab.cluster import Listener
from kafkalab.errors import MirrorFailed
from kafkalab.lifeline import marked_processes
from kafkalab.paths import runs_dir
from kafkalab.services import MirrorMaker
from support import PATIENCE, create

TOPICS = ("prices", "few", "many", "guarded")
FLOW = {
    "first->second.enabled": True,
    "first->second.topics": "prices|few|many|guarded",
    "refresh.topics.interval.seconds": 1,
    "sync.topic.acls.enabled": False,
}
JAAS = "org.apache.kafka.common.security.plain.PlainLoginModule required"
# One listener for kafkalab, which is anonymous and may do all, and one for users.
GUARDED = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
USERS = Listener(
    "USERS",
    "SASL_PLAINTEXT",
    settings={"sasl.enabled.mechanisms": "PLAIN", "plain.sasl.jaas.config": f'{JAAS} user_mirror="m-1";'},
)


@pytest.fixture(scope="module")
def first() -> Iterator[Cluster]:
    """The source, with three partitions of each topic and 30 records in each of them."""
    with Cluster(1, backend="local", settings={"auto.create.topics.enable": False}) as cluster:
        for topic in TOPICS:
            create(cluster, topic, 3, 1)
        producer = Producer(cluster.client_config())
        for topic in TOPICS:
            for number in range(30):
                producer.produce(topic, f"{topic} {number}", partition=number % 3)
        assert producer.flush(PATIENCE) == 0
        yield cluster


@pytest.fixture(scope="module")
def second() -> Iterator[Cluster]:
    """The target, which knows users."""
    with Cluster(
        1, backend="local", settings={"auto.create.topics.enable": False, **GUARDED}, listeners=(Listener(), USERS)
    ) as cluster:
        yield cluster


def copied(cluster: Cluster, topic: str) -> list[int]:
    """Waits for all 30 records, and says in which partitions they lie."""

    def there() -> list[int] | None:
        records = CheckContext(cluster).records(topic)
        return sorted({m.partition() for m in records}) if len({m.value() for m in records}) == 30 else None

    return wait_until(there, PATIENCE, f"30 records in {topic}", last_seen=lambda: len(CheckContext(cluster).records(topic)))


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"first->second.topics": "prices"}, "no flow is enabled"),
        ({"first->third.enabled": True}, "there's no cluster with the alias 'third'; there are first, second"),
    ],
)
def test_settings_without_sense(first: Cluster, second: Cluster, settings: dict, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        MirrorMaker({"first": first, "second": second}, settings)


@pytest.mark.at_length
def test_missing_acl_on_the_target_and_topics_with_other_partitions(first: Cluster, second: Cluster) -> None:
    admin = AdminClient(second.client_config())
    create(second, "first.few", 1, 1)
    create(second, "first.many", 5, 1)

    def allow(kind: ResourceType, name: str, pattern: ResourcePatternType = ResourcePatternType.LITERAL) -> None:
        rule = AclBinding(kind, name, pattern, "User:mirror", "*", AclOperation.ALL, AclPermissionType.ALLOW)
        admin.create_acls([rule])[rule].result()

    allow(ResourceType.GROUP, "*")
    allow(ResourceType.BROKER, "kafka-cluster")
    for prefix in ("mm2-", "heartbeats", "first.checkpoints"):
        allow(ResourceType.TOPIC, prefix, ResourcePatternType.PREFIXED)
    as_user = {
        "second.bootstrap.servers": second.clients.bootstrap(0, "USERS"),
        "second.security.protocol": "SASL_PLAINTEXT",
        "second.sasl.mechanism": "PLAIN",
        "second.sasl.jaas.config": f'{JAAS} username="mirror" password="m-1";',
    }
    for topic in ("first.prices", "first.few", "first.many"):
        allow(ResourceType.TOPIC, topic)
    with MirrorMaker({"first": first, "second": second}, {**FLOW, **as_user}) as mirror:
        failures = wait_until(mirror.failures, PATIENCE, "the task to fail", last_seen=mirror.states)
        assert list(failures) == ["first->second MirrorSourceConnector task 0"]
        assert "TopicAuthorizationException: Not authorized to access topics: [first.guarded]" in failures.popitem()[1]
        assert "m-1" not in mirror.logs() and "m-1" not in " ".join(psutil.Process(mirror.pid).cmdline())
        with pytest.raises(MirrorFailed, match="first->second MirrorSourceConnector task 0 failed: .*TopicAuthorization"):
            mirror.wait_for(lambda: False, "a copy that never comes")
        allow(ResourceType.TOPIC, "first.", ResourcePatternType.PREFIXED)
        mirror.kill()
        with pytest.raises(MirrorFailed, match="MirrorMaker was ended by SIGKILL"):
            mirror.wait_for(lambda: False, "a copy that never comes")
        mirror.start()
        assert copied(second, "first.guarded") == [0, 1, 2]
        # Records keep their partition: where there are too few MirrorMaker adds some, where there are more they stay empty.
        assert copied(second, "first.few") == copied(second, "first.many") == [0, 1, 2]
        topics = second.describe(groups=False).topics
        assert [len(topics[name]) for name in ("first.few", "first.many", "first.prices")] == [3, 5, 3]
        assert mirror.failures() == {}


@pytest.mark.parametrize("alias", [pytest.param("first", marks=pytest.mark.at_length), "second"])
def test_a_cluster_that_is_not_there(first: Cluster, second: Cluster, alias: str) -> None:
    mirror = MirrorMaker({"first": first, "second": second}, FLOW)
    cluster = mirror.clusters[alias]
    cluster.kill(0)
    with pytest.raises(MirrorFailed, match=f"the cluster '{alias}' doesn't answer at 127.0.0.1:.*needs both sides"):
        mirror.start()
    assert not mirror.running
    cluster.restart(0)


def test_a_wait_ends_when_one_side_is_dead(first: Cluster, second: Cluster) -> None:
    with MirrorMaker({"first": first, "second": second}, FLOW) as mirror:
        first.kill(0)
        with pytest.raises(MirrorFailed, match="no broker of the cluster 'first' runs"):
            mirror.wait_for(lambda: False, "a copy that never comes")
        first.restart(0)


OWNER = """
    import sys, threading
    from kafkalab import Cluster, wait_until
    from kafkalab.services import MirrorMaker
    first, second = (Cluster.attached(servers).start() for servers in sys.argv[1:])
    mirror = MirrorMaker({"first": first, "second": second}, {"first->second.enabled": True})
    threading.Thread(target=mirror.start, daemon=True).start()
    wait_until(lambda: mirror.running, 60, "its process")
    print(mirror._run.id, flush=True)
    sys.stdin.read()
"""


def test_it_dies_with_its_owner_even_while_it_starts(first: Cluster, second: Cluster, tmp_path: Path) -> None:
    errors = tmp_path / "stderr"
    with errors.open("w") as stderr:
        owner = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(OWNER), first.bootstrap_servers, second.bootstrap_servers],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, text=True, env=dict(os.environ),
        )  # fmt: skip
    run = owner.stdout.readline().strip()
    assert run, errors.read_text()
    assert len(marked_processes(run)) == 1
    owner.kill()
    wait_until(
        lambda: not marked_processes(run) and not (runs_dir() / run).exists(), PATIENCE, "MirrorMaker and its folder to be gone"
    )
    owner.wait()

"""What the tests of all labs use."""

from __future__ import annotations

from collections.abc import Iterable

import psutil
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from kafkalab import Cluster, check
from kafkalab.cluster import ClusterView
from kafkalab.lifeline import marked_processes

__all__ = ["Record", "Verdict", "create", "empty", "put"]

Record = tuple[bytes | str | None, bytes | str | None, int]
"""Key, value, partition."""


class Verdict:
    """Runs checks and looks at what they print."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, lab: str, cluster: object, **answers: object) -> tuple[bool, str]:
        """Whether the check passed, and what it printed."""
        self._capsys.readouterr()
        passed = check(lab, cluster, **answers)  # type: ignore[arg-type] - a wrong one, too
        return passed, self._capsys.readouterr().out

    def passes(self, lab: str, cluster: Cluster, **answers: object) -> None:
        """The check passes."""
        passed, printed = self(lab, cluster, **answers)
        assert passed, printed

    def says(self, sentence: str, lab: str, cluster: Cluster, **answers: object) -> None:
        """The check does not pass, and says this."""
        passed, printed = self(lab, cluster, **answers)
        assert not passed
        assert sentence in printed, printed


def empty(cluster: Cluster) -> None:
    """Delete all topics and groups, for the next test. A test that failed may have left members: they are ended."""
    for process in marked_processes(cluster.run.id):
        try:
            if "kafkalab.workers" in " ".join(process.cmdline()):
                process.kill()
        except psutil.NoSuchProcess:
            pass
    view = cluster.wait_for(lambda v: all(not g.members for g in v.groups.values()) and v, "no members", groups=True)
    admin = AdminClient(cluster.client_config())
    if view.groups:
        for deleted in admin.delete_consumer_groups(list(view.groups)).values():
            deleted.result()
    if view.topics:
        for deleted in admin.delete_topics(list(view.topics)).values():
            deleted.result()
    cluster.wait_for(lambda v: not v.topics and not v.groups, "the topics and groups to be gone", groups=True)


def create(cluster: Cluster, topic: str, partitions: int, copies: int = 3, **config: str) -> None:
    """Create a topic and wait until all its replicas are in sync; settings with underscores for dots."""
    admin = AdminClient(cluster.client_config())
    config = {name.replace("_", "."): value for name, value in config.items()}
    admin.create_topics([NewTopic(topic, partitions, copies, config=config)])[topic].result()

    def there(view: ClusterView) -> bool:
        found = view.topics.get(topic, ())
        return len(found) == partitions and all(len(p.isr) == copies for p in found)

    cluster.wait_for(there, f"the topic {topic}")


def put(cluster: Cluster, topic: str, records: Iterable[Record], **settings: object) -> None:
    """Send records; the partition -1 leaves the choice to the producer."""
    producer = Producer(cluster.client_config(**settings))
    for key, value, partition in records:
        producer.produce(topic, value, key=key, partition=partition)
    assert producer.flush(20) == 0

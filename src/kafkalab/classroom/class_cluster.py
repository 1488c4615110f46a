"""The Kafka cluster of a class: a topic for each seat that only this seat may write to, and one that all may read."""

from __future__ import annotations

import secrets
import shutil
import subprocess
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AclOperation, ResourceType

from kafkalab.classroom.administration import Administration, rule
from kafkalab.classroom.released import KEY, Released
from kafkalab.classroom.topics import ANONYMOUS, LARGEST_BATCH, PUBLIC, SEAT_PREFIX, seat_topic
from kafkalab.cluster import Cluster
from kafkalab.cluster.ports import HOST
from kafkalab.cluster.spec import Listener
from kafkalab.distribution import put_tools_on_path
from kafkalab.errors import KafkaLabError
from kafkalab.security.config import Security

__all__ = ["BYTES_PER_SECOND", "INSTRUCTOR", "LISTENER", "ClassTopics", "make_cluster"]

INSTRUCTOR = "instructor"
"""The user as which the board reads the seats' topics."""

LISTENER = "CLASS"

BYTES_PER_SECOND = 20_000
"""What a seat may write on each broker, a hundred times what a busy notebook does. Kafka slows down who writes more."""

_SEAT_TOPIC = {
    "min.insync.replicas": "2",
    "message.timestamp.type": "LogAppendTime",  # since when somebody waits, by the broker's clock
    "max.message.bytes": str(LARGEST_BATCH),
    "retention.bytes": str(4 << 20),  # so a seat that floods fills no disk
    "segment.bytes": str(1 << 20),
    "retention.ms": str(24 * 3600 * 1000),
}
_ANONYMOUS_TOPIC = {"min.insync.replicas": "2"}  # written by the instructor, in batches of any size
_PUBLIC_TOPIC = {"min.insync.replicas": "2", "cleanup.policy": "compact", "message.timestamp.type": "LogAppendTime"}

_EVERYBODY = "User:*"  # that has logged in


def make_cluster(host: str = HOST, port: int = 0) -> Cluster:
    """Return a cluster for a class, not started yet: three brokers with TLS, SCRAM users and ACLs.

    Parameters
    ----------
    host
        The address of this machine where learners reach it. By default only this machine does.
    port
        The port of broker 0 there. Its peers have the next ones. With 0, any free ones.
    """
    return Cluster(
        brokers=3,
        name="class",
        backend="local",
        listeners=[Listener(LISTENER, "SASL_SSL", host=host, port=port)],
        security=Security(
            users={INSTRUCTOR: secrets.token_urlsafe(18)}, mechanisms=("SCRAM-SHA-512",), super_users=(INSTRUCTOR,)
        ),
        settings={"auto.create.topics.enable": "false", "log.retention.check.interval.ms": "60000"},
    )


class ClassTopics:
    """What an instructor does with the class's cluster: makes seats, and publishes what is released.

    Parameters
    ----------
    cluster
        A running cluster: one of `make_cluster`, or one that was attached to, with the rights to create users, topics and
        ACLs.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._config: dict[str, Any] = {**cluster.client_config(), "log_level": 0}
        self._administration = Administration(self._config)
        self._producer = Producer({**self._config, "enable.idempotence": True, "linger.ms": 0})
        self._admitted: set[str] = set()

    def require_none(self) -> None:
        """Raise `KafkaLabError` if the cluster has topics of another class."""
        if self._administration.topics(PUBLIC):
            raise KafkaLabError(
                f"the cluster has the topic {PUBLIC}: another class runs there, or one didn't come to its end. If none runs, "
                f"delete {PUBLIC}, {ANONYMOUS} and the topics that begin with {SEAT_PREFIX!r}"
            )

    def prepare(self, password: str | None) -> None:
        """Make the topics that all seats read, and the instructor's user if there's a password for it.

        Raises
        ------
        KafkaLabError
            If the cluster refuses.
        """
        if password is not None:
            self._administration.let_in(INSTRUCTOR, password)
        self._administration.allow(rule(topic, _EVERYBODY, AclOperation.READ) for topic in (PUBLIC, ANONYMOUS))
        self._administration.create({PUBLIC: _PUBLIC_TOPIC, ANONYMOUS: _ANONYMOUS_TOPIC})

    def admit(self, seat: str) -> str:
        """Make a seat: its user, its topic, and the right to write to it. Return the new user's password.

        Raises
        ------
        KafkaLabError
            If the cluster refuses.
        """
        password = secrets.token_urlsafe(18)
        self._admitted.add(seat)
        self._administration.create({seat_topic(seat): _SEAT_TOPIC})
        whose = f"User:{seat}"
        group = rule(seat, whose, AclOperation.READ, ResourceType.GROUP)  # its client looks for one, and commits nothing
        self._administration.allow([rule(seat_topic(seat), whose, AclOperation.WRITE), group])
        self._administration.let_in(seat, password)  # last: whoever can log in has everything
        return password

    def dismiss(self, seat: str) -> None:
        """Take a seat away: its user, its rights, and its topic with all that it wrote.

        Raises
        ------
        KafkaLabError
            If the cluster refuses.
        """
        self._administration.lock_out(seat)
        self._administration.delete([seat_topic(seat)])
        self._admitted.discard(seat)

    def remove(self) -> None:
        """Take all seats away, and the topics that they read. On return the cluster has nothing of the class.

        Raises
        ------
        KafkaLabError
            If the cluster refuses.
        """
        for seat in sorted(self._admitted):
            self.dismiss(seat)
        self._administration.delete([PUBLIC, ANONYMOUS])
        for topic in (PUBLIC, ANONYMOUS):
            self._administration.revoke(_EVERYBODY, topic)

    def publish(self, released: Released) -> None:
        """Write what is released to the public topic. On return it's acknowledged.

        Raises
        ------
        KafkaLabError
            If the cluster doesn't acknowledge it.
        """
        problems: list[object] = []
        self._producer.produce(PUBLIC, released.as_json(), KEY, on_delivery=lambda error, _: problems.append(error))
        if self._producer.flush(10) or any(problems):
            raise KafkaLabError(f"the class's cluster doesn't take what you release: {problems or 'no answer for 10 s'}")


def limit_seats(cluster: Cluster, properties: Path) -> None:
    """Set the quota of every user that has none of its own.

    Parameters
    ----------
    cluster
        A running cluster.
    properties
        A file for ``--command-config``, of a user who may alter the cluster.

    Raises
    ------
    KafkaLabError
        If the tool fails.
    """
    put_tools_on_path()
    tool = shutil.which("kafka-configs.sh")
    assert tool is not None, "the course's tools are on the path"
    done = subprocess.run(
        [tool, "--bootstrap-server", cluster.bootstrap_servers, "--command-config", str(properties), "--alter",
         "--add-config", f"producer_byte_rate={BYTES_PER_SECOND}", "--entity-type", "users", "--entity-default"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise KafkaLabError(f"the class's quota can't be set: {(done.stderr or done.stdout).strip()[-500:]}")

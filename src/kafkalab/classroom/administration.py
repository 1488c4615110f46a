"""What an administrator asks of a secured cluster: users, topics and rights."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ClusterMetadata,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

from kafkalab.errors import KafkaLabError

__all__ = ["Administration", "rule"]

_ITERATIONS = 4096  # of SCRAM; https://kafka.apache.org/documentation/#security_sasl_scram
_MECHANISM = ScramMechanism.SCRAM_SHA_512
_SECONDS = 10
_ANY: Any = None  # which the declared types leave out


def rule(
    name: str,
    who: str,
    what: AclOperation,
    kind: ResourceType = ResourceType.TOPIC,
    pattern: ResourcePatternType = ResourcePatternType.LITERAL,
) -> AclBinding:
    """Return the permission of a principal to do something with what has a name, or with all whose names begin with it."""
    return AclBinding(kind, name, pattern, who, "*", what, AclPermissionType.ALLOW)


class Administration:
    """An administrator of a cluster with SCRAM users and ACLs. Each method returns when the cluster has done it.

    Parameters
    ----------
    config
        librdkafka settings of a user with the rights to do so.

    Raises
    ------
    KafkaLabError
        Each method does, with the broker's own words, if the cluster refuses.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._admin = AdminClient(dict(config))

    def let_in(self, user: str, password: str) -> None:
        """Give a user a password. Who had another one keeps connections that are open."""
        how = ScramCredentialInfo(_MECHANISM, _ITERATIONS)
        self._done(self._admin.alter_user_scram_credentials([UserScramCredentialUpsertion(user, how, password.encode())]))

    def lock_out(self, user: str) -> None:
        """Take a user's password and permissions away. Does nothing if there are none."""
        gone = self._admin.alter_user_scram_credentials([UserScramCredentialDeletion(user, _MECHANISM)])
        self._done(gone, ignore=KafkaError.RESOURCE_NOT_FOUND)
        self.revoke(f"User:{user}")

    def create(self, topics: Mapping[str, Mapping[str, str]]) -> None:
        """Create topics of one partition, on three brokers if there are so many. Those that exist stay as they are."""
        copies = min(3, len(self._metadata().brokers))
        new = [
            NewTopic(name, num_partitions=1, replication_factor=copies, config=dict(config) if copies > 1 else _alone(config))
            for name, config in topics.items()
        ]
        self._done(self._admin.create_topics(new), ignore=KafkaError.TOPIC_ALREADY_EXISTS)

    def topics(self, prefix: str) -> list[str]:
        """Return the topics whose names begin with a prefix."""
        return sorted(name for name in self._metadata().topics if name.startswith(prefix))

    def delete(self, topics: list[str]) -> None:
        """Delete topics. Those that are gone are no error."""
        if topics:
            self._done(self._admin.delete_topics(topics), ignore=KafkaError.UNKNOWN_TOPIC_OR_PART)

    def allow(self, rules: Iterable[AclBinding]) -> None:
        """Grant permissions. Those that hold already hold on."""
        self._done(self._admin.create_acls(list(rules)))

    def revoke(self, who: str, topic: str | None = None) -> None:
        """Take all permissions from a principal, or only those for a topic."""
        kind = ResourceType.ANY if topic is None else ResourceType.TOPIC
        pattern = ResourcePatternType.ANY if topic is None else ResourcePatternType.LITERAL
        every = AclBindingFilter(kind, topic or _ANY, pattern, who, _ANY, AclOperation.ANY, AclPermissionType.ANY)
        self._done(self._admin.delete_acls([every]))

    def _metadata(self) -> ClusterMetadata:
        try:
            return self._admin.list_topics(timeout=_SECONDS)
        except KafkaException as error:
            raise KafkaLabError(f"the cluster doesn't answer: {error.args[0].str()}") from error

    def _done(self, answers: Mapping[Any, Future[Any]], ignore: int | None = None) -> None:
        for answer in answers.values():
            try:
                answer.result()
            except KafkaException as error:
                if error.args[0].code() == KafkaError.SECURITY_DISABLED:
                    raise KafkaLabError("the cluster has no authorizer, so everybody may do everything there") from error
                if error.args[0].code() != ignore:
                    raise KafkaLabError(f"the cluster refuses: {error.args[0].str()}") from error


def _alone(config: Mapping[str, str]) -> dict[str, str]:
    """Return a topic's settings for a cluster of one broker."""
    return {**config, "min.insync.replicas": "1"}

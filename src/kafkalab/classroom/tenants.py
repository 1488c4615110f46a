"""Learners who share a Kafka cluster: each has a user, a prefix for names, and rights to nothing else."""

from __future__ import annotations

import re
import secrets
from typing import Any

from confluent_kafka.admin import AclOperation, ResourcePatternType, ResourceType

from kafkalab.classroom.administration import Administration, rule
from kafkalab.classroom.borrowed import authority_of
from kafkalab.cluster import Cluster
from kafkalab.errors import KafkaLabError

__all__ = ["Tenants", "prefix_of"]

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
_PREFIXED = (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID)
_PASSED_ON = ("bootstrap.servers", "security.protocol", "ssl.endpoint.identification.algorithm")


def prefix_of(name: str) -> str:
    """Return what the names of a learner's topics, groups and transactional ids begin with.

    No learner's prefix begins with another's: names have no dot.

    Raises
    ------
    KafkaLabError
        If the name has anything but lower-case letters, digits and hyphens.
    """
    if not _NAME.fullmatch(name):
        raise KafkaLabError(f"a name has up to 40 lower-case letters, digits and hyphens, and {name!r} isn't one")
    return f"{name}."


class Tenants:
    """The learners of a cluster that several share.

    A learner may create, write, read and delete topics whose names begin with the prefix, and use groups and transactional ids
    that do. The cluster shows a learner no other topic. Kafka's authorizer has the last word:
    https://kafka.apache.org/documentation/#security_authz

    Parameters
    ----------
    cluster
        A running cluster with SCRAM users and ACLs, as an administrator reaches it: through the listener that learners use.

    Raises
    ------
    KafkaLabError
        If that listener asks for no login by SASL. Learners have a password.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._config = cluster.client_config()
        protocol = str(self._config.get("security.protocol", "PLAINTEXT"))
        if not protocol.startswith("SASL_"):
            raise KafkaLabError(
                f"learners log in with a password, and the listener at {self._config['bootstrap.servers']} has {protocol}. "
                "Name one with SASL_SSL, and an administrator who logs in there"
            )
        self._cluster = Administration({**self._config, "log_level": 0})

    def add(self, name: str) -> dict[str, Any]:
        """Let a learner in. Who was there already keeps topics, and gets a new password.

        Returns
        -------
        dict
            librdkafka's settings of the learner, with the authority's certificate in them, so that they're all a machine needs.

        Raises
        ------
        KafkaLabError
            If the name isn't one, or is the administrator's own, the authority's certificate can't be read, or the cluster
            refuses.
        """
        prefix, whose = self._prefix(name), f"User:{name}"
        self._cluster.allow(rule(prefix, whose, AclOperation.ALL, kind, ResourcePatternType.PREFIXED) for kind in _PREFIXED)
        password = secrets.token_urlsafe(18)
        self._cluster.let_in(name, password)  # last: whoever can log in has everything
        settings = {key: value for key, value in self._config.items() if key in _PASSED_ON}
        if authority := authority_of(self._config):
            settings["ssl.ca.pem"] = authority
        return {**settings, "sasl.mechanism": "SCRAM-SHA-512", "sasl.username": name, "sasl.password": password}

    def remove(self, name: str) -> int:
        """Lock a learner out, and delete all topics with the prefix. Safe to call again.

        A connection that is open stays so until the client closes it, but it may do nothing any more.

        Returns
        -------
        int
            How many topics it deleted.

        Raises
        ------
        KafkaLabError
            If the name isn't one, or is the administrator's own, or the cluster refuses.
        """
        prefix = self._prefix(name)
        self._cluster.lock_out(name)
        topics = self._cluster.topics(prefix)  # last: until then more could come
        self._cluster.delete(topics)
        return len(topics)

    def _prefix(self, name: str) -> str:
        if name == self._config.get("sasl.username"):
            raise KafkaLabError(f"{name} is the administrator, who would be locked out")
        return prefix_of(name)

"""Every error that kafkalab raises on purpose.

Each message says what happened, what was last seen, and what to do about it.
"""

from __future__ import annotations

__all__ = [
    "BackendUnavailable",
    "BrokerFailed",
    "BrokerNotRunning",
    "ClusterNotRunning",
    "ConnectFailed",
    "DatabaseFailed",
    "DowngradeRefused",
    "DownloadError",
    "FaultsUnsupported",
    "HashMismatch",
    "JavaError",
    "KafkaLabError",
    "KdcFailed",
    "MessageFailed",
    "MirrorFailed",
    "MqttFailed",
    "NoReplica",
    "NoSuperUser",
    "NotEnoughResources",
    "PortInUse",
    "RegistryFailed",
    "ShadowedModule",
    "SparkFailed",
    "StreamsFailed",
    "UnknownBroker",
    "UnknownListener",
    "UnknownPartition",
    "UnknownTopic",
    "UnknownUser",
    "UnsuitableMachine",
    "WaitTimeout",
    "WorkerClosed",
    "WorkerFailed",
]


class KafkaLabError(Exception):
    """Base of all errors raised by kafkalab."""


class WaitTimeout(KafkaLabError):
    """A condition didn't become true in time. The message shows the last observed state."""


class ClusterNotRunning(KafkaLabError):
    """You used a verb that needs a running cluster before ``start`` or after ``stop``."""


class UnknownBroker(KafkaLabError):
    """The cluster has no broker with that id."""


class BrokerNotRunning(KafkaLabError):
    """The fault needs a running broker (``resume`` needs a paused one, ``delete_replica`` one that is down)."""


class BrokerFailed(KafkaLabError):
    """A broker ended by itself. The message holds Kafka's own reason and the last lines of its log."""


class DowngradeRefused(KafkaLabError):
    """A node can't start with a Kafka version that is too old for the cluster's finalized feature levels."""


class PortInUse(KafkaLabError):
    """A port that you requested by number is taken. The message names it."""


class BackendUnavailable(KafkaLabError):
    """The requested back end doesn't work on this machine."""


class FaultsUnsupported(KafkaLabError):
    """kafkalab can't break this cluster, because it was attached to, not started."""


class NotEnoughResources(KafkaLabError):
    """There is too little memory or disk for what you want to start."""


class JavaError(KafkaLabError):
    """There is no usable Java, its version doesn't run Kafka or Spark, or source code doesn't compile."""


class DownloadError(KafkaLabError):
    """A required file isn't in the cache and couldn't be downloaded."""


class HashMismatch(DownloadError):
    """A downloaded file doesn't match the locked hash."""


class UnknownListener(KafkaLabError):
    """The cluster has no listener with that name. The message lists its listeners."""


class UnknownUser(KafkaLabError):
    """kafkalab knows no password for a user with that name."""


class NoSuperUser(KafkaLabError):
    """The cluster has an authorizer, but no super user: the brokers couldn't even talk to each other."""


class KdcFailed(KafkaLabError):
    """The Kerberos key distribution centre didn't start. The message holds its own reason."""


class UnknownTopic(KafkaLabError):
    """The cluster has no topic with that name. The message lists its topics."""


class UnknownPartition(KafkaLabError):
    """The topic has no partition with that number."""


class NoReplica(KafkaLabError):
    """The broker has no replica of that partition, or no longer has one. The message says which brokers have one."""


class MessageFailed(KafkaLabError):
    """A message wasn't acknowledged.

    Attributes
    ----------
    value
        The message's value.
    code
        Kafka's name of the error: ``_MSG_TIMED_OUT``, ``NOT_ENOUGH_REPLICAS`` … A leading underscore means that the
        client gave up. Without one, a broker rejected the message.
    """

    def __init__(self, value: str, code: str, reason: str) -> None:
        super().__init__(f"{value!r} was not acknowledged: {code} ({reason})")
        self.value = value
        self.code = code


class MirrorFailed(KafkaLabError):
    """MirrorMaker didn't start, or isn't running. The message holds Kafka's own reason."""


class ConnectFailed(KafkaLabError):
    """A Connect worker or a connector didn't start, or isn't running. The message holds Kafka's own reason."""


class DatabaseFailed(KafkaLabError):
    """PostgreSQL didn't start, or isn't running. The message holds the last lines of its log."""


class MqttFailed(KafkaLabError):
    """The MQTT broker didn't start, or isn't running. The message holds the last lines of its log."""


class WorkerClosed(KafkaLabError):
    """You used a producer or consumer after it was closed or killed."""


class WorkerFailed(KafkaLabError):
    """The process of a producer or consumer didn't start, or ended by itself. The message says why."""


class ShadowedModule(KafkaLabError):
    """A file of the learner's has the name of a package that the course imports. The message names both."""


class UnsuitableMachine(KafkaLabError):
    """The machine lacks something that Kafka or Spark can't do without. The message says what, and how to fix it."""


class SparkFailed(KafkaLabError):
    """Spark's JVM didn't start. The message holds its last lines."""


class StreamsFailed(KafkaLabError):
    """A Streams application didn't start, or isn't running. The message says why."""


class RegistryFailed(KafkaLabError):
    """A schema registry didn't start, or ended by itself. The message holds the last lines of its log."""

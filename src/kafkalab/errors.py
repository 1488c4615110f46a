"""Every error that kafkalab raises on purpose.

Each message says what happened, what was last seen, and what to do about it.
"""

from __future__ import annotations

__all__ = [
    "BackendUnavailable",
    "BrokerFailed",
    "BrokerNotRunning",
    "ClusterNotRunning",
    "DownloadError",
    "FaultsUnsupported",
    "HashMismatch",
    "JavaError",
    "KafkaLabError",
    "KdcFailed",
    "MessageFailed",
    "MirrorFailed",
    "NoReplica",
    "NoSuperUser",
    "NotEnoughResources",
    "PortInUse",
    "RegistryFailed",
    "SparkFailed",
    "StreamsFailed",
    "UnknownBroker",
    "UnknownListener",
    "UnknownPartition",
    "UnknownTopic",
    "UnknownUser",
    "WaitTimeout",
    "WorkerClosed",
    "WorkerFailed",
]


class KafkaLabError(Exception):
    """Base of all errors raised by kafkalab."""


class WaitTimeout(KafkaLabError):
    """A condition did not become true in time; the message says what was last seen."""


class ClusterNotRunning(KafkaLabError):
    """A verb that needs a running cluster was used before ``start`` or after ``stop``."""


class UnknownBroker(KafkaLabError):
    """No broker of the cluster has that id."""


class BrokerNotRunning(KafkaLabError):
    """The fault asked for needs a broker that runs (for ``resume``: is paused; for ``lose_log``: is down)."""


class BrokerFailed(KafkaLabError):
    """A broker ended by itself; the message holds Kafka's own reason and its log's last lines."""


class PortInUse(KafkaLabError):
    """A port that was asked for by number is taken; the message names it."""


class BackendUnavailable(KafkaLabError):
    """The back end asked for cannot be used on this machine."""


class FaultsUnsupported(KafkaLabError):
    """The cluster is not ours to break: it was attached to, not started."""


class NotEnoughResources(KafkaLabError):
    """Too little memory or disk to start what was asked for."""


class JavaError(KafkaLabError):
    """No usable Java, or one of a version that Kafka or Spark does not run on; or source that doesn't compile."""


class DownloadError(KafkaLabError):
    """A file that is needed is neither in the cache nor could be downloaded."""


class HashMismatch(DownloadError):
    """A downloaded file is not the one that was locked."""


class UnknownListener(KafkaLabError):
    """The cluster has no listener of that name; the message lists those that it has."""


class UnknownUser(KafkaLabError):
    """No user of that name has a password that is known here."""


class NoSuperUser(KafkaLabError):
    """An authorizer was asked for, and nobody named whom it lets through: the brokers could not even talk to each other."""


class KdcFailed(KafkaLabError):
    """The Kerberos key distribution centre did not start; the message holds its own reason."""


class UnknownTopic(KafkaLabError):
    """The cluster has no topic of that name; the message lists those that it has."""


class UnknownPartition(KafkaLabError):
    """The topic has no partition of that number."""


class NoReplica(KafkaLabError):
    """The broker has no replica of that partition, or none any more; the message says who has."""


class MessageFailed(KafkaLabError):
    """A message was not acknowledged.

    Attributes
    ----------
    value
        The message's value.
    code
        Kafka's name of the error: ``_MSG_TIMED_OUT``, ``NOT_ENOUGH_REPLICAS`` …; a leading underscore means that
        the client gave up, none that a broker refused.
    """

    def __init__(self, value: str, code: str, reason: str) -> None:
        super().__init__(f"{value!r} was not acknowledged: {code} ({reason})")
        self.value = value
        self.code = code


class MirrorFailed(KafkaLabError):
    """MirrorMaker did not start, or does not run; the message holds Kafka's own reason."""


class ConnectFailed(KafkaLabError):
    """A Connect worker or a connector did not start, or does not run; the message holds Kafka's own reason."""


class DatabaseFailed(KafkaLabError):
    """PostgreSQL did not start, or does not run; the message holds its log's last lines."""


class MqttFailed(KafkaLabError):
    """The MQTT broker did not start, or does not run; the message holds its log's last lines."""


class WorkerClosed(KafkaLabError):
    """A producer or consumer was used after it was closed or killed."""


class WorkerFailed(KafkaLabError):
    """The process of a producer or consumer did not start, or ended by itself; the message says why."""


class SparkFailed(KafkaLabError):
    """Spark's JVM did not start; the message holds its last lines."""


class StreamsFailed(KafkaLabError):
    """A Streams application did not start, or does not run; the message says why."""


class RegistryFailed(KafkaLabError):
    """A schema registry did not start, or ended by itself; the message holds its log's last lines."""

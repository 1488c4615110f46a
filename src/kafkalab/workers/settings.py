"""Client settings of the course: where workers differ from librdkafka's defaults."""

from __future__ import annotations

from collections.abc import Mapping

from kafkalab.settings import dotted

__all__ = ["CLIENT", "CONSUMER", "GROUP_MEMBER", "PRODUCER", "combine", "delivery_timeout", "idempotence"]

CLIENT: Mapping[str, object] = {
    # Find a broker that came back within a second (default 10 s) …
    "reconnect.backoff.max.ms": 1000,
    # … and give up on one that hangs after 5 s (default 60 s).
    "socket.timeout.ms": 5000,
    # librdkafka's own log goes to a file that is shown only if a worker dies, so errors are enough.
    "log_level": 3,
}

PRODUCER: Mapping[str, object] = {
    # Show an outage as an error after 10 s (default 300 s).
    "delivery.timeout.ms": 10_000,
    # Send each record without a key to its own partition, as before Kafka 2.4, not to one per 10 ms.
    "sticky.partitioning.linger.ms": 0,
}

CONSUMER: Mapping[str, object] = {
    # Fetch again soon after a leader change (default 500 ms).
    "fetch.error.backoff.ms": 100,
    # Find a topic that some brokers don't know yet within a second (default 5 min).
    "topic.metadata.refresh.interval.ms": 1000,
    # Commit almost at once (default 5 s), so that little is read again after a member is killed.
    "auto.commit.interval.ms": 100,
}

GROUP_MEMBER: Mapping[str, object] = {
    # Notice a killed member after 3 s (default 45 s).
    "session.timeout.ms": 3000,
    "heartbeat.interval.ms": 500,
}

# librdkafka's aliases of settings that matter here. Both names mean the same setting.
_ALIASES = {
    "message.timeout.ms": "delivery.timeout.ms",
    "request.required.acks": "acks",
    "message.send.max.retries": "retries",
    "max.in.flight": "max.in.flight.requests.per.connection",
}


def combine(*layers: Mapping[str, object]) -> dict[str, object]:
    """Merge layers of settings. A later one wins, also under an alias of the same setting.

    Underscores may stand for dots, so that you can pass settings as keyword arguments.
    """
    combined: dict[str, object] = {}
    for layer in layers:
        combined |= {_ALIASES.get(key, key): value for key, value in dotted(layer).items()}
    return combined


def idempotence(settings: Mapping[str, object]) -> dict[str, object]:
    """Return the idempotence of Kafka's own producer: on, unless one of the given settings contradicts it."""
    weaker = str(settings.get("acks", "all")) not in ("all", "-1")
    contradicted = weaker or "retries" in settings or "max.in.flight.requests.per.connection" in settings
    return {"enable.idempotence": not contradicted}


def delivery_timeout(settings: Mapping[str, object]) -> float:
    """Return the seconds after which a producer with these settings gives up on a message."""
    return float(str(settings["delivery.timeout.ms"])) / 1000 or float("inf")

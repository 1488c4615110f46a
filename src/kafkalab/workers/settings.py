"""Client settings of the lessons: where workers differ from librdkafka's defaults."""

from __future__ import annotations

from collections.abc import Mapping

from kafkalab.settings import dotted

__all__ = ["CLIENT", "CONSUMER", "GROUP_MEMBER", "PRODUCER", "combine", "delivery_timeout", "idempotence"]

CLIENT: Mapping[str, object] = {
    # A broker that came back is found within a second (default 10 s) …
    "reconnect.backoff.max.ms": 1000,
    # … and one that hangs is given up after 5 s (default 60 s).
    "socket.timeout.ms": 5000,
    # librdkafka's own log goes to a file that is shown only when a worker dies: errors are enough.
    "log_level": 3,
}

PRODUCER: Mapping[str, object] = {
    # An outage is seen as an error within a lesson's patience (default 300 s).
    "delivery.timeout.ms": 10_000,
    # Records without a key go to a partition each, as before Kafka 2.4, not to one per 10 ms.
    "sticky.partitioning.linger.ms": 0,
}

CONSUMER: Mapping[str, object] = {
    # After a leader change the next fetch comes soon (default 500 ms).
    "fetch.error.backoff.ms": 100,
    # A topic that some brokers do not know yet is found a second later (default 5 min).
    "topic.metadata.refresh.interval.ms": 1000,
    # What was shown is committed almost at once (default 5 s), so that a killed member's heir repeats little.
    "auto.commit.interval.ms": 100,
}

GROUP_MEMBER: Mapping[str, object] = {
    # A killed member is noticed after 3 s (default 45 s).
    "session.timeout.ms": 3000,
    "heartbeat.interval.ms": 500,
}

# librdkafka's other names of settings that matter here: who gives one of them means the same setting.
_ALIASES = {
    "message.timeout.ms": "delivery.timeout.ms",
    "request.required.acks": "acks",
    "message.send.max.retries": "retries",
    "max.in.flight": "max.in.flight.requests.per.connection",
}


def combine(*layers: Mapping[str, object]) -> dict[str, object]:
    """Merge layers of settings; a later one wins, also under another name of the same setting.

    Underscores may stand for dots, so that settings can be given as keyword arguments.
    """
    combined: dict[str, object] = {}
    for layer in layers:
        combined |= {_ALIASES.get(key, key): value for key, value in dotted(layer).items()}
    return combined


def idempotence(settings: Mapping[str, object]) -> dict[str, object]:
    """Idempotence as Kafka's own producer has it: on, unless a setting that was given contradicts it."""
    weaker = str(settings.get("acks", "all")) not in ("all", "-1")
    contradicted = weaker or "retries" in settings or "max.in.flight.requests.per.connection" in settings
    return {"enable.idempotence": not contradicted}


def delivery_timeout(settings: Mapping[str, object]) -> float:
    """Seconds after which a producer with these settings gives a message up."""
    return float(str(settings["delivery.timeout.ms"])) / 1000 or float("inf")

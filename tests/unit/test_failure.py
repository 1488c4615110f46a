"""What is told of a node that ended by itself."""

from __future__ import annotations

import pytest

from kafkalab.cluster.backends.failure import broker_failed, reason_in
from kafkalab.cluster.spec import Node


@pytest.mark.parametrize(
    ("log", "reason"),
    [
        (
            "Unrecognized option: -Xbad\nError: Could not create the Java Virtual Machine.\nError: A fatal exception.",
            "Unrecognized option: -Xbad",
        ),
        (
            "Invalid maximum heap size: -Xmx9999999g\nError: Could not create the Java Virtual Machine.",
            "Invalid maximum heap size",
        ),
        ("Too small maximum heap\n", "Too small maximum heap"),
        (
            "[…] ERROR Exiting Kafka (kafka.Kafka)\norg.apache.kafka.common.ConfigException: Invalid value\n",
            "ConfigException: Invalid",
        ),
        ("[…] ERROR Exiting Kafka (kafka.Kafka)\n", "Exiting Kafka (kafka.Kafka)"),
        ("", "it gave no reason"),
    ],
)
def test_the_reason_is_what_java_or_kafka_says_first(log: str, reason: str) -> None:
    assert reason_in(log).startswith(reason)
    assert f"broker 1 ended by itself: {reason}" in str(broker_failed(Node(1, broker=True, controller=False), log))

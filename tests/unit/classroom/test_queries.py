"""The class's own events in Spark: how a seat logs in, and what it reads without a class."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkalab.classroom.membership import Membership
from kafkalab.classroom.queries import class_events
from kafkalab.classroom.spark_login import options_of
from kafkalab.errors import KafkaLabError


def test_a_seat_logs_in_over_tls() -> None:
    options = options_of(Membership("id", "amber-fox", "192.0.2.1:29401", "se cret", "-----BEGIN", 1, 2e9).client_config())
    assert options["kafka.bootstrap.servers"] == "192.0.2.1:29401"
    assert options["kafka.security.protocol"] == "SASL_SSL"
    assert 'username="amber-fox" password="se cret"' in options["kafka.sasl.jaas.config"]
    assert options["kafka.ssl.truststore.certificates"] == "-----BEGIN"


def test_a_cluster_without_tls_needs_no_login() -> None:
    options = options_of({"bootstrap.servers": "192.0.2.1:9092", "log_level": 2})
    assert not [name for name in options if name.startswith(("kafka.s", "kafka.log"))]


def test_without_a_class_it_says_how_to_join(progress_folder: Path) -> None:
    with pytest.raises(KafkaLabError, match="no class is joined on this machine: `kafkalab join`"):
        class_events()

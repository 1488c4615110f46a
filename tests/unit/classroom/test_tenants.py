"""Learners who share a cluster: what is refused before anything is changed."""

from __future__ import annotations

import pytest

from kafkalab.classroom.tenants import Tenants, prefix_of
from kafkalab.errors import KafkaLabError


class Attached:
    """A cluster as far as a client's settings go."""

    def __init__(self, **settings: str) -> None:
        self._settings = {"bootstrap.servers": "127.0.0.1:9", **settings}

    def client_config(self) -> dict[str, str]:
        return self._settings


@pytest.mark.parametrize(
    ("settings", "protocol"),
    [({}, "PLAINTEXT"), ({"security.protocol": "SSL"}, "SSL")],
    ids=["no login", "a certificate"],
)
def test_a_listener_without_passwords_is_refused(settings: dict[str, str], protocol: str) -> None:
    with pytest.raises(KafkaLabError, match=f"the listener at 127.0.0.1:9 has {protocol}. Name one with SASL_SSL"):
        Tenants(Attached(**settings))


@pytest.mark.parametrize("name", ["", "Amber", "amber.", "a" * 41, "-amber", "amber brisk"])
def test_no_name(name: str) -> None:
    with pytest.raises(KafkaLabError, match="40 lower-case letters, digits and hyphens"):
        prefix_of(name)

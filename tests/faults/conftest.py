"""Fixtures for tests of faults."""

from __future__ import annotations

import pytest


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")  # nothing listens there
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "")  # kafkalab adds loopback to them: what was set once is put back
        monkeypatch.delenv(name)

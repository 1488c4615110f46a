"""Unit tests start no broker."""

from __future__ import annotations

import pytest

from kafkalab.cluster.backends.docker import DockerBackend
from kafkalab.cluster.backends.local import LocalBackend


@pytest.fixture(autouse=True)
def no_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail a test that starts one."""

    def refuse(self: object) -> None:
        pytest.fail("a unit test starts no broker: its place is another folder of tests/")

    for backend in (LocalBackend, DockerBackend):
        monkeypatch.setattr(backend, "launch", refuse)

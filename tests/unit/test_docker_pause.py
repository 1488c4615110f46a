"""Pausing a container that the engine cannot freeze at once. (The contract's tests pause real ones.)"""

from __future__ import annotations

import pytest
from docker.errors import APIError
from requests import Response

from kafkalab.cluster.backends import docker_containers
from kafkalab.errors import WaitTimeout


class Stubborn:
    """A container that the engine pauses after it has refused so many times."""

    def __init__(
        self, refusals: int, status: int = 500, reason: str = "OCI runtime pause failed: unable to freeze: unknown"
    ) -> None:
        self.refusals, self.asked = refusals, 0
        self._error = APIError("refused", Response(), reason)
        self._error.response.status_code = status

    def pause(self) -> None:
        self.asked += 1
        if self.asked <= self.refusals:
            raise self._error


def test_one_that_cannot_be_frozen_yet_is_asked_again() -> None:
    container = Stubborn(3)
    docker_containers.freeze(container, "broker 1")
    assert container.asked == 4


def test_one_that_cannot_be_frozen_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(docker_containers, "_FREEZE_SECONDS", 0.2)
    with pytest.raises(WaitTimeout, match=r"waited 0.2 s for broker 1 to freeze; last seen: .*unable to freeze"):
        docker_containers.freeze(Stubborn(10_000), "broker 1")


def test_other_refusals_are_not_repeated() -> None:
    container = Stubborn(9, reason="no space left on device")
    with pytest.raises(APIError, match="no space left"):
        docker_containers.freeze(container, "broker 1")
    assert container.asked == 1
    docker_containers.freeze(Stubborn(1, status=409, reason="container is not running"), "broker 1")  # it has ended

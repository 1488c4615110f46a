"""One suite for every back end: each test gets its clusters from `make_cluster`."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kafkalab import Cluster
from kafkalab.cluster.backends import choose
from kafkalab.errors import BackendUnavailable


@functools.cache
def _docker_missing() -> str | None:
    try:
        choose("docker")
    except BackendUnavailable as error:
        return str(error)
    return None


@pytest.fixture(scope="session", params=["local", pytest.param("docker", marks=pytest.mark.docker)])
def backend(request: pytest.FixtureRequest) -> str:
    if request.param == "docker" and (reason := _docker_missing()):
        if os.environ.get("CI"):
            pytest.fail(f"in CI no test may be left out, but: {reason}")
        pytest.skip(reason)
    return request.param


@pytest.fixture
def make_cluster(backend: str) -> Iterator[Callable[..., Cluster]]:
    made: list[Cluster] = []

    def make(brokers: int = 3, **options: Any) -> Cluster:
        made.append(Cluster(brokers, backend=backend, **options))
        return made[-1]

    yield make
    for cluster in made:
        cluster.stop()


@pytest.fixture(scope="module")
def shared(backend: str) -> Iterator[Cluster]:
    """A cluster of three for tests that mend what they break."""
    with Cluster(3, backend=backend) as cluster:
        yield cluster

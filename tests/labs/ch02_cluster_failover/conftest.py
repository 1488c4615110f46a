"""Fixtures for the tests of chapter 02's labs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafkalab import Cluster
from support import BACKEND, renew


@pytest.fixture(scope="module")
def _with_a_controller() -> Iterator[Cluster]:
    with Cluster(brokers=3, controllers=1, backend=BACKEND) as cluster:
        yield cluster


@pytest.fixture
def governed(_with_a_controller: Cluster) -> Iterator[Cluster]:
    """Three brokers and a dedicated controller; a test may end brokers."""
    _with_a_controller.nodes.faults.clear()
    yield _with_a_controller
    renew(_with_a_controller)

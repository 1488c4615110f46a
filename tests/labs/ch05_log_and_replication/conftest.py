"""Fixtures for the tests of chapter 05's labs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafkalab import Cluster
from support import BACKEND, renew

OFTEN = {
    "log.initial.task.delay.ms": 100,
    "log.cleaner.backoff.ms": 200,
    "log.retention.check.interval.ms": 200,
}


@pytest.fixture(scope="module")
def _cleaning() -> Iterator[Cluster]:
    with Cluster(brokers=3, settings=OFTEN, backend=BACKEND) as cluster:
        yield cluster


@pytest.fixture
def cleaning(_cleaning: Cluster) -> Iterator[Cluster]:
    """Three brokers that look for old segments, and for something to compact, several times a second; a test may end them."""
    _cleaning.nodes.faults.clear()
    yield _cleaning
    renew(_cleaning)

"""Fixtures for the tests of chapter 01's labs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafkalab import Cluster
from support import BACKEND, empty


@pytest.fixture(scope="package")
def _one_broker() -> Iterator[Cluster]:
    # Else the files of deleted topics would stay for a minute, and be copied whenever a check looks at files.
    with Cluster(brokers=1, backend=BACKEND, settings={"log.segment.delete.delay.ms": 0}) as cluster:
        yield cluster


@pytest.fixture
def single(_one_broker: Cluster) -> Iterator[Cluster]:
    """A single broker that is up, without topics and groups of earlier tests, and without a past."""
    _one_broker.nodes.faults.clear()
    yield _one_broker
    empty(_one_broker)

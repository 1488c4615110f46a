"""Three brokers with a remote tier, where what usually waits for minutes is done at once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafkalab import Cluster

QUICK = {
    "log.cleaner.backoff.ms": 1000,
    "log.initial.task.delay.ms": 500,
    "log.retention.check.interval.ms": 500,
    "remote.log.manager.task.interval.ms": 500,
}


@pytest.fixture(scope="package")
def shared(backend: str) -> Iterator[Cluster]:
    with Cluster(3, tiered_storage=True, settings=QUICK, backend=backend) as cluster:
        yield cluster

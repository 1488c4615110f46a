"""Fixtures for the tests of chapter 12's labs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AdminClient

from kafkalab import Cluster
from support import BACKEND, empty

IMPATIENT = {
    **{f"group.{kind}.{which}heartbeat.interval.ms": 2000 for kind in ("share", "consumer") for which in ("", "min.")},
    "group.share.min.record.lock.duration.ms": 1000,
}


GROUPS = ("share-workers", "shop", "couriers")


@pytest.fixture(scope="module")
def _impatient() -> Iterator[Cluster]:
    with Cluster(brokers=1, settings=IMPATIENT, backend=BACKEND) as cluster:
        yield cluster


@pytest.fixture
def impatient(_impatient: Cluster) -> Iterator[Cluster]:
    """A broker whose groups are almost as impatient as the labs', without topics and groups of earlier tests."""
    yield _impatient
    left = [group for group in GROUPS if _impatient.share_group(group)]
    admin = AdminClient(_impatient.client_config())
    for deleted in admin.delete_consumer_groups(left).values() if left else ():
        deleted.result()
    empty(_impatient)

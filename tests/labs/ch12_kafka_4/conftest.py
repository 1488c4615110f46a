"""Fixtures for the tests of chapter 12's labs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AdminClient

from kafkalab import Cluster, wait_until
from kafkalab.cluster import ShareGroupView
from support import BACKEND, PATIENCE, empty

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
    found: list[ShareGroupView] = []

    def all_have_left() -> bool:
        found[:] = [view for group in GROUPS if (view := _impatient.nodes.share_group(group))]
        return not any(view.members for view in found)

    # The coordinator hears a little later that a consumer was closed, and doesn't delete a group that has members.
    wait_until(all_have_left, PATIENCE, "the members of share groups to have left", last_seen=lambda: found, ignore=(OSError,))
    admin = AdminClient(_impatient.client_config())
    for deleted in admin.delete_consumer_groups([view.id for view in found]).values() if found else ():
        deleted.result()
    empty(_impatient)

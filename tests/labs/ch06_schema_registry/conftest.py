"""A registry for the labs on schemas, with a cluster of its own.

The members of a registry that was killed stay in their groups for 45 s, so the shared cluster could not be renewed after it.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.schema_registry import SchemaRegistryClient

from kafkalab import Cluster, SchemaRegistry
from schema_support import Registered
from support import BACKEND, delete_topics, every_group


@pytest.fixture(scope="package")
def registry() -> Iterator[tuple[Cluster, SchemaRegistry]]:
    """One broker and its registry, the same for all tests of the chapter."""
    with Cluster(brokers=1, backend=BACKEND) as cluster, SchemaRegistry(cluster) as registry:
        yield cluster, registry


@pytest.fixture
def registered(registry: tuple[Cluster, SchemaRegistry]) -> Iterator[Registered]:
    """A registry without subjects, and a cluster without the topics and groups of earlier tests."""
    cluster, server = registry
    kept = set(cluster.describe(groups=False).topics)  # the registry's own
    yield Registered(cluster, server, SchemaRegistryClient({"url": server.url}))
    admin = AdminClient(cluster.client_config())
    view = every_group(cluster)
    if groups := [name for name, group in view.groups.items() if not group.members]:
        for deleted in admin.delete_consumer_groups(groups).values():
            deleted.result()
    delete_topics(cluster, view.topics.keys() - kept)
    client = SchemaRegistryClient({"url": server.url})  # one that remembers nothing
    client.set_compatibility(level="NONE")
    for subject in sorted(client.get_subjects(), key=lambda name: name.endswith(".proto")):  # what refers to others goes first
        Registered(cluster, server, client).forget(subject)
    client.set_compatibility(level="BACKWARD")

"""What the labs on security share: a cluster that knows ACL rules, and a way to set them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from kafkalab import Cluster
from kafkalab.cluster import Listener
from kafkalab.security import Security
from support import BACKEND, empty

USERS = ("stocks_producer", "stocks_consumer", "analyst", "visitor")
ANY: Any = None


@pytest.fixture(scope="package")
def _ruled() -> Iterator[Cluster]:
    security = Security({name: name for name in USERS})
    with Cluster(1, backend=BACKEND, listeners=[Listener("SASL_SSL", "SASL_SSL")], security=security) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def ruled(_ruled: Cluster) -> Iterator[Cluster]:
    """One broker with an authorizer and users, the same for all modules of the chapter; a module finds it empty."""
    yield _ruled
    set_rules_of(_ruled, {})
    empty(_ruled)


@pytest.fixture
def set_rules(ruled: Cluster) -> Callable[[Mapping[str, AclBinding]], None]:
    """Puts these rules in the place of all that the cluster knows."""
    return lambda rules: set_rules_of(ruled, rules)


def set_rules_of(cluster: Cluster, rules: Mapping[str, AclBinding]) -> None:
    """Delete all rules, create these, and wait until the broker knows them."""
    admin = AdminClient(cluster.client_config())
    every = AclBindingFilter(ResourceType.ANY, ANY, ResourcePatternType.ANY, ANY, ANY, AclOperation.ANY, AclPermissionType.ANY)
    for deleted in admin.delete_acls([every]).values():
        deleted.result()
    cluster.security.wait_for_acls(0)
    if rules:
        for created in admin.create_acls(list(rules.values())).values():
            created.result()
    cluster.security.wait_for_acls(len(rules))

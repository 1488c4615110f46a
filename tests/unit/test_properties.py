"""The settings of a node."""

from __future__ import annotations

import pytest

from kafkalab.cluster import ClusterSpec
from kafkalab.cluster.properties import Placement, node_properties

SESSION = "broker.session.timeout.ms"


@pytest.mark.parametrize(
    ("brokers", "settings", "milliseconds"), [(3, {}, "1700"), (2, {}, "1700"), (1, {}, "3000"), (1, {SESSION: 900}, "900")]
)
def test_an_only_broker_is_fenced_later_unless_the_learner_says_otherwise(
    brokers: int, settings: dict[str, object], milliseconds: str
) -> None:
    spec = ClusterSpec(brokers=brokers, settings=settings)
    placement = Placement([], {0: "127.0.0.1:9093"}, "data", "", [])
    assert node_properties(spec, spec.nodes()[0], placement, None, {})[SESSION] == milliseconds

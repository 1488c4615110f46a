"""Topics and groups that begin again."""

from __future__ import annotations

import pytest
from confluent_kafka.admin import NewTopic

from kafkalab import Cluster, fresh
from kafkalab.errors import WaitTimeout
from support import commit, create, members, put

pytestmark = pytest.mark.cluster


def test_topics_are_empty_and_groups_have_committed_nothing(clean: Cluster) -> None:
    create(clean, "old", 1)
    put(clean, "old", [(None, "record", 0)])
    commit(clean, "reader", "old")
    create(clean, "kept", 1)
    put(clean, "kept", [(None, "record", 0)])
    commit(clean, "other", "kept")

    fresh(clean, NewTopic("old", 3, 3), NewTopic("new", 2, 1), groups=["reader", "unknown"])

    view = clean.describe()
    assert {name: len(partitions) for name, partitions in view.topics.items()} == {"kept": 1, "new": 2, "old": 3}
    assert view.in_sync(view.topics)
    assert "reader" not in view.groups and view.groups["other"].lag == {("kept", 0): 0}
    [(place)] = put(clean, "old", [(None, "another", 0)])
    assert place == (0, 0)


def test_nodes_come_back_first(breakable: Cluster) -> None:
    create(breakable, "old", 1)
    breakable.pause(1)
    breakable.kill(2)
    fresh(breakable, NewTopic("old", 1, 3))
    assert breakable.describe(groups=False).in_sync("old")
    assert set(breakable.nodes.states().values()) == {"up"}
    for node in breakable.nodes.states():
        breakable.kill(node)
    fresh(breakable, NewTopic("old", 1, 3))
    assert set(breakable.nodes.states().values()) == {"up"}


def test_a_member_that_stays_is_named(clean: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafkalab.cluster.fresh._TIMEOUT", 1)
    create(clean, "read", 1)
    with members(clean, "read", "busy", 1), pytest.raises(WaitTimeout, match="the members of busy to leave"):
        fresh(clean, groups=["busy"])

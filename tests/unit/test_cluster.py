"""Which faults a cluster notes, and how it ends."""

from __future__ import annotations

from collections.abc import Callable
from unittest.mock import Mock

import pytest

from kafkalab import Cluster
from kafkalab.cluster.backends.control import Control, ManagedNode
from kafkalab.cluster.observer import Observer
from kafkalab.cluster.spec import Node
from kafkalab.errors import BrokerFailed, WaitTimeout


@pytest.fixture
def cluster() -> Cluster:
    """It seems to run; its back end does nothing."""
    made = Cluster(3, backend="local")
    lifecycle = made._lifecycle
    control = Mock(spec=Control, isolated=set(), managed={0: ManagedNode(Node(0, broker=True, controller=True))})
    control.nodes.return_value = {node.id: node for node in lifecycle.spec.nodes()}
    control.state.return_value = "up"
    lifecycle._access = control
    lifecycle._observer = Mock(spec=Observer)
    return made


@pytest.fixture
def control(cluster: Cluster) -> Mock:
    return cluster._lifecycle._access


def noted(cluster: Cluster) -> list[tuple[str, int]]:
    return [(fault.verb, fault.broker) for fault in cluster.nodes.faults]


@pytest.mark.parametrize(
    ("part", "verb"),
    [
        ("kill", lambda cluster: cluster.kill(0)),
        ("terminate", lambda cluster: cluster.stop_broker(0)),
        ("revive", lambda cluster: cluster.restart(0)),
        ("add", lambda cluster: cluster.add_broker()),
        ("add", lambda cluster: cluster.nodes.add_controller()),
    ],
)
def test_a_verb_that_fails_is_no_fault(cluster: Cluster, control: Mock, part: str, verb: Callable[[Cluster], None]) -> None:
    seen = []

    def fail(*_: object) -> None:
        seen.append(len(cluster.nodes.faults))
        raise BrokerFailed("it cannot be done")

    cluster.kill(1)
    setattr(control, part, fail)
    with pytest.raises(BrokerFailed):
        verb(cluster)
    assert seen == [2]  # while it was under way it was noted
    assert noted(cluster) == [("kill", 1)]


def test_a_controller_that_is_added_gets_the_next_id(cluster: Cluster, control: Mock) -> None:
    added: list[Node] = []
    control.add = added.append
    assert cluster.nodes.add_controller() == 100
    assert added == [Node(100, broker=False, controller=True)]


def test_a_verb_that_ran_out_of_time_is_one(cluster: Cluster, control: Mock) -> None:
    """The broker was told to stop, and may still do so."""

    def wait(*_: object) -> None:
        raise WaitTimeout("waited 60 s")

    control.terminate = wait
    with pytest.raises(WaitTimeout):
        cluster.stop_broker(0)
    assert noted(cluster) == [("stop", 0)]


def test_it_ends_whatever_its_callbacks_raise(cluster: Cluster) -> None:
    called: list[str] = []
    cluster._lifecycle._discard = lambda: called.append("discarded")
    cluster.nodes.on_stop(lambda: called.append("first"))
    cluster.nodes.on_stop(lambda: 1 / 0)
    cluster.nodes.on_stop(lambda: called.append("last"))
    with pytest.raises(ZeroDivisionError):
        cluster.stop()
    assert called == ["first", "last", "discarded"]


def members(group: object) -> list[str]:
    return [name for name in dir(group) if not name.startswith("_")]


def test_few_members_are_public_and_each_is_documented(cluster: Cluster) -> None:
    assert len(members(cluster)) <= 20
    assert Cluster.__doc__ is not None
    _, attributes = Cluster.__doc__.split("Attributes\n")
    for name in members(cluster):
        assert getattr(getattr(Cluster, name, None), "__doc__", None) or f"\n    {name}\n" in attributes, name


def test_each_member_of_a_group_is_documented(cluster: Cluster) -> None:
    for group in (cluster.clients, cluster.disk, cluster.nodes):
        assert type(group).__doc__
        for name in members(type(group)):
            assert getattr(type(group), name).__doc__, name

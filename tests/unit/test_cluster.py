"""Which faults a cluster notes, and how it ends."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pytest

from kafkalab import Cluster
from kafkalab.cluster.spec import Node
from kafkalab.errors import BrokerFailed, WaitTimeout


@pytest.fixture
def cluster() -> Cluster:
    """It seems to run; its back end does nothing."""
    made = Cluster(3, backend="local")
    nodes = {node.id: node for node in made.spec.nodes()}
    made._backend = SimpleNamespace(
        breakable=True, nodes=lambda: nodes, state=lambda _: "up", isolated=set(),
        kill=lambda _: None, terminate=lambda *_: None, revive=lambda *_: None, add=lambda _: None,
    )  # fmt: skip
    made._observer = SimpleNamespace(wait_until_back=lambda *_: None)
    return made


def noted(cluster: Cluster) -> list[tuple[str, int]]:
    return [(fault.verb, fault.broker) for fault in cluster.faults]


@pytest.mark.parametrize(
    ("part", "verb"),
    [
        ("kill", lambda cluster: cluster.kill(0)),
        ("terminate", lambda cluster: cluster.stop_broker(0)),
        ("revive", lambda cluster: cluster.restart(0)),
        ("add", lambda cluster: cluster.add_broker()),
        ("add", lambda cluster: cluster.add_controller()),
    ],
)
def test_a_verb_that_fails_is_no_fault(cluster: Cluster, part: str, verb: Callable[[Cluster], None]) -> None:
    seen = []

    def fail(*_: object) -> None:
        seen.append(len(cluster.faults))
        raise BrokerFailed("it cannot be done")

    cluster.kill(1)
    setattr(cluster._backend, part, fail)
    with pytest.raises(BrokerFailed):
        verb(cluster)
    assert seen == [2]  # while it was under way it was noted
    assert noted(cluster) == [("kill", 1)]


def test_a_controller_that_is_added_gets_the_next_id(cluster: Cluster) -> None:
    added: list[Node] = []
    cluster._backend.add = added.append
    assert cluster.add_controller() == 100
    assert added == [Node(100, broker=False, controller=True)]


def test_a_verb_that_ran_out_of_time_is_one(cluster: Cluster) -> None:
    """The broker was told to stop, and may still do so."""

    def wait(*_: object) -> None:
        raise WaitTimeout("waited 60 s")

    cluster._backend.terminate = wait
    with pytest.raises(WaitTimeout):
        cluster.stop_broker(0)
    assert noted(cluster) == [("stop", 0)]


def test_it_ends_whatever_its_callbacks_raise(cluster: Cluster) -> None:
    called: list[str] = []
    cluster._discard = lambda: called.append("discarded")
    cluster.on_stop(lambda: called.append("first"))
    cluster.on_stop(lambda: 1 / 0)
    cluster.on_stop(lambda: called.append("last"))
    with pytest.raises(ZeroDivisionError):
        cluster.stop()
    assert called == ["first", "last", "discarded"]

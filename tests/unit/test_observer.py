"""What the observer makes of brokers that don't all know the same, and of a node that ends while it is waited for."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from kafkalab.cluster.observer import Observer
from kafkalab.cluster.view import BrokerView, ClusterView, PartitionView
from kafkalab.cluster.wire import NO_QUORUM, Metadata, Quorum
from kafkalab.errors import BrokerFailed, BrokerNotRunning, ClusterNotRunning, WaitTimeout
from support import PATIENCE


def test_who_waits_for_long_is_patient_with_brokers_that_are_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    view, silences = ClusterView("c", 0, 0, {}, {}, {}, frozenset()), [WaitTimeout("nobody answered")] * 2

    def describe(*_: object, **__: object) -> ClusterView:
        if silences:
            raise silences.pop()
        return view

    monkeypatch.setattr(Observer, "describe", describe)
    observer = Observer(EndsWhenLookedAt(by_itself=True))
    assert observer.wait_for(lambda seen: seen is view, "a view", PATIENCE)
    silences += [WaitTimeout("nobody answered")]
    with pytest.raises(WaitTimeout, match="waited 0 s for a view; last seen: nobody answered"):
        observer.wait_for(lambda _: True, "a view", 0)


class EndsWhenLookedAt:
    """A back end whose node ends just before its state is asked for the first time."""

    keyring = None

    def __init__(self, by_itself: bool) -> None:
        self.ended, self.by_itself = False, by_itself

    def nodes(self) -> dict[int, object]:
        return {}

    def state(self, _: int) -> str:
        self.ended = True
        return "dead"

    def check_alive(self, _: int) -> None:
        if self.ended and self.by_itself:
            raise BrokerFailed("for a reason")


def test_the_reason_of_a_node_that_ended_between_two_looks_is_told() -> None:
    with pytest.raises(BrokerFailed, match="for a reason"):
        Observer(EndsWhenLookedAt(by_itself=True)).wait_until_back(0, 5)
    with pytest.raises(BrokerNotRunning, match=r"broker 0 was ended \(dead\) before it was ready"):
        Observer(EndsWhenLookedAt(by_itself=False)).wait_until_back(0, 5)


def test_who_waits_while_the_cluster_is_stopped_is_told() -> None:
    observer = Observer(EndsWhenLookedAt(by_itself=True))
    observer.close()
    for ask in (observer.describe, lambda: observer.wait_until_back(0, 5)):
        with pytest.raises(ClusterNotRunning, match="was stopped meanwhile"):
            ask()


def test_a_broker_that_hears_from_the_controller_too_late_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    led, states, asked = Quorum(1, 5, 9, (0, 1, 2), {}), dict.fromkeys(range(3), "up"), []
    answers: dict[int, Quorum] = dict.fromkeys(range(3), led)
    backend = SimpleNamespace(keyring=None, brokers=lambda: [0, 1, 2], state=states.get)

    def ask(self: Observer, broker: int, _: object) -> tuple[Metadata, Quorum]:
        asked.append(broker)
        return Metadata("c", dict.fromkeys(range(3), "b:1"), {}, frozenset()), answers[broker]

    def look() -> tuple[int | None, list[int]]:
        asked.clear()
        _, quorum = observer._ask_any()
        return quorum.leader, list(asked)

    monkeypatch.setattr(Observer, "_ask", ask)
    observer = Observer(backend)
    assert look() == (1, [0])
    answers[0] = NO_QUORUM
    assert look() == (1, [0, 1])
    answers[1] = answers[2] = NO_QUORUM
    assert look() == (None, [0, 1, 2])
    assert look() == (None, [0])
    answers[0] = led
    assert look() == (1, [0])
    answers[0], states[1] = NO_QUORUM, "paused"  # that's why
    assert look() == (None, [0])


def test_what_is_waited_for_holds_for_each_broker_that_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    topics = {"t": (PartitionView("t", 0, 0, 0, (0,), (0,)),)}
    brokers = {i: BrokerView(i, f"b{i}:9092", None, "up", controller=False, voter=True) for i in range(3)}
    asked: list[int] = []

    def ask(self: Observer, broker: int, _: object) -> Metadata:
        asked.append(broker)
        if broker == 1:
            raise OSError("no answer")
        late = broker == 0 and asked.count(0) < 3  # it hears of the topic last, and nobody else is asked before
        return Metadata("c", {}, {} if late else topics, frozenset())

    monkeypatch.setattr(Observer, "_ask", ask)
    monkeypatch.setattr(Observer, "describe", lambda self, groups: ClusterView("c", 0, 0, brokers, topics, {}, frozenset()))
    observer = Observer(EndsWhenLookedAt(by_itself=True))
    assert observer.wait_for(lambda view: view.leaders("t"), "the topic", PATIENCE) == {0: 0}
    assert asked == [0, 0, 0, 1, 2]

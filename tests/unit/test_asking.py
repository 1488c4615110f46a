"""A question to a cluster whose brokers are fenced for a moment, refuse the login, or are gone."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from kafkalab.cluster.asking import ask

FENCED = (KafkaError._DESTROY_BROKER, KafkaError._TIMED_OUT, KafkaError._TRANSPORT, KafkaError.COORDINATOR_NOT_AVAILABLE)


class Client:
    """Stands in for an `AdminClient`: `poll` hands on the problems that librdkafka had."""

    problems: tuple[int, ...] = ()

    def __init__(self, settings: dict[str, Any]) -> None:
        self.settings = settings

    def poll(self, timeout: float) -> None:
        for problem in self.problems:
            self.settings["error_cb"](KafkaError(problem))


@pytest.fixture(autouse=True)
def client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafkalab.cluster.asking.AdminClient", Client)
    monkeypatch.setattr(Client, "problems", ())


def cluster(state: str = "up") -> Any:
    return SimpleNamespace(
        client_config=lambda: {"bootstrap.servers": "nowhere"}, nodes=SimpleNamespace(states=lambda: {0: state, 1: "down"})
    )


def answers(*outcomes: int | str) -> Callable[[Any], Future[str]]:
    """Return a request that ends with these outcomes, one after the other: an error's code, or an answer."""
    left = list(outcomes)

    def request(client: Any) -> Future[str]:
        future: Future[str] = Future()
        outcome = left.pop(0)
        if isinstance(outcome, str):
            future.set_result(outcome)
        else:
            future.set_exception(KafkaException(KafkaError(outcome)))
        return future

    return request


@pytest.mark.parametrize("code", FENCED)
def test_a_broker_that_is_fenced_is_asked_again(code: int) -> None:
    assert ask(cluster(), answers(code, code, "yes")) == "yes"


def test_an_answer_may_be_empty() -> None:
    assert ask(cluster(), answers("")) == ""


@pytest.mark.parametrize("code", [KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.UNKNOWN_TOPIC_OR_PART])
def test_an_error_of_kafkas_is_an_answer(code: int) -> None:
    with pytest.raises(KafkaException) as caught:
        ask(cluster(), answers(code))
    assert caught.value.args[0].code() == code


def test_without_a_node_that_runs_there_is_no_second_attempt() -> None:
    with pytest.raises(KafkaException) as caught:
        ask(cluster("down"), answers(KafkaError._TIMED_OUT))
    assert caught.value.args[0].code() == KafkaError._TIMED_OUT


def test_a_login_that_fails_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Client, "problems", (KafkaError._ALL_BROKERS_DOWN, KafkaError._AUTHENTICATION))
    with pytest.raises(KafkaException):
        ask(cluster(), answers(KafkaError._TIMED_OUT))


def test_after_a_minute_the_last_error_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafkalab.cluster.asking._PATIENCE", 0)
    with pytest.raises(KafkaException) as caught:
        ask(cluster(), answers(KafkaError._DESTROY_BROKER))
    assert caught.value.args[0].code() == KafkaError._DESTROY_BROKER

"""Which failures of connectors end a wait, and which are those of before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kafkalab.errors import ConnectFailed
from kafkalab.services.connect_failures import Failures

TRACE = "org.apache.kafka.connect.errors.DataException: no field"
Look = Callable[..., None]


def status(connector: str, *tasks: str) -> dict[str, Any]:
    parts = [{"state": state, **({"trace": TRACE} if state == "FAILED" else {})} for state in (connector, *tasks)]
    return {"connector": parts[0], "tasks": [{"id": number, **part} for number, part in enumerate(parts[1:])]}


@pytest.fixture
def clock() -> list[float]:
    """The time for a wait; a test sets it."""
    return [0.0]


@pytest.fixture
def failures(clock: list[float]) -> Failures:
    """A wait for one connector."""
    return Failures(["lines"], lambda: clock[0])


def test_a_failure_of_before_counts_when_it_stays(clock: list[float], failures: Failures) -> None:
    for clock[0] in (0.0, 5.0, 10.0):
        failures.look(["lines"], {"lines": status("RUNNING", "FAILED")})
    clock[0] = 10.5
    with pytest.raises(ConnectFailed, match="lines task 0 failed: DataException: no field"):
        failures.look(["lines"], {"lines": status("RUNNING", "FAILED")})


@pytest.mark.parametrize("between", [status("RUNNING", "UNASSIGNED"), status("RUNNING")])
def test_a_failure_counts_at_once_after_a_look_without_it(failures: Failures, between: dict[str, Any]) -> None:
    failures.look(["lines"], {"lines": status("RUNNING", "FAILED")})
    failures.look(["lines"], {"lines": between})
    with pytest.raises(ConnectFailed, match="lines task 0 failed"):
        failures.look(["lines"], {"lines": status("RUNNING", "FAILED")})


def test_a_new_connector_fails_at_once(failures: Failures) -> None:
    failures.look([], {})
    failures.look(["lines"], {})
    with pytest.raises(ConnectFailed, match="lines failed: DataException"):
        failures.look(["lines"], {"lines": status("FAILED")})


def test_only_the_named_connectors_count_and_they_must_exist(clock: list[float], failures: Failures) -> None:
    other = {"other": status("FAILED")}
    failures.look(["other"], {})
    failures.look(["other"], other)
    clock[0] = 11.0
    with pytest.raises(ConnectFailed, match="there is no connector 'lines'"):
        failures.look(["other"], other)

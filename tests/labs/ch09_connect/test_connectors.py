"""What checks of Connect make of a connector's states: some pass by and are waited for, others are a verdict at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from kafkalab.checks import CheckContext, connectors
from kafkalab.checks.context import Unmet

Look = Callable[..., None]


@pytest.fixture
def look(monkeypatch: pytest.MonkeyPatch) -> Look:
    """Let the check look at a connector that has these states, one after the other: its own, and those of its tasks."""

    def look(*states: str) -> None:
        told: Iterator[str] = iter(states)

        def answer(ctx: object, path: str) -> object:
            if not path.endswith("/status"):
                return ["rows"]
            own, *tasks = next(told).split()
            return {"connector": {"state": own}, "tasks": [{"id": n, "state": state} for n, state in enumerate(tasks)]}

        monkeypatch.setattr(connectors, "answer_of", answer)
        monkeypatch.setattr(connectors, "config_of", lambda *_: {})
        connectors.runs(CheckContext(cluster=None), "rows")
        assert not [*told]

    return look


def test_a_task_that_is_just_starting_again_is_waited_for(look: Look) -> None:
    look("RUNNING UNASSIGNED", "UNASSIGNED RESTARTING", "RUNNING RUNNING")


@pytest.mark.parametrize(
    ("states", "sentence"),
    [
        ("STOPPED UNASSIGNED", "The state of rows is STOPPED"),
        ("PAUSED UNASSIGNED RUNNING", "The state of rows is PAUSED"),
        ("RUNNING UNASSIGNED FAILED", "The state of task 1 of rows is FAILED"),
        ("RUNNING", "rows has no task yet"),
    ],
)
def test_what_does_not_run_whatever_comes_is_said_at_once(look: Look, states: str, sentence: str) -> None:
    with pytest.raises(Unmet, match=sentence):
        look(states)

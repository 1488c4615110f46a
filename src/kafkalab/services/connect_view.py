"""A snapshot of workers, connectors and tasks, as the workers report them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kafkalab.services.traces import reason

__all__ = ["ConnectView", "ConnectorView", "PartView", "WorkerView", "connectors_in"]


@dataclass(frozen=True)
class WorkerView:
    """A worker.

    Attributes
    ----------
    number
        Counted from 0.
    url
        Its REST interface.
    alive
        Whether its process runs.
    """

    number: int
    url: str
    alive: bool


@dataclass(frozen=True)
class PartView:
    """A connector without its tasks, or one of its tasks.

    Attributes
    ----------
    state
        In Connect's words: ``RUNNING``, ``FAILED``, ``UNASSIGNED`` …
    worker
        The number of the worker that has it; None if that isn't one of ours.
    error
        Why it failed; empty if it didn't.
    """

    state: str
    worker: int | None
    error: str = ""


@dataclass(frozen=True)
class ConnectorView:
    """A connector.

    Attributes
    ----------
    kind
        ``source`` or ``sink``.
    itself
        Its state, apart from its tasks.
    tasks
        By number.
    lag
        Of a sink: records that it has yet to commit. None while it has committed nothing, and for a source.
    """

    name: str
    kind: str
    itself: PartView
    tasks: Mapping[int, PartView]
    lag: int | None = None

    @property
    def errors(self) -> list[str]:
        """Why the connector or its tasks failed."""
        return [part.error for part in (self.itself, *self.tasks.values()) if part.error]


@dataclass(frozen=True)
class ConnectView:
    """All workers, and what they run.

    Attributes
    ----------
    connectors
        By name. None while no worker answers.
    """

    workers: tuple[WorkerView, ...]
    connectors: tuple[ConnectorView, ...] | None


def connectors_in(
    answer: Mapping[str, Any], workers: Iterable[WorkerView], lag: Mapping[str, int]
) -> tuple[ConnectorView, ...]:
    """Return the connectors in a worker's answer to ``GET /connectors?expand=status``.

    Parameters
    ----------
    answer
        The answer, parsed.
    workers
        The workers that a state may name.
    lag
        The lag of consumer groups, by id.
    """
    numbers = {worker.url.rpartition("/")[2]: worker.number for worker in workers}

    def part(reported: Mapping[str, Any]) -> PartView:
        error = reason(reported.get("trace", "")) if reported["state"] == "FAILED" else ""
        return PartView(reported["state"], numbers.get(reported["worker_id"]), error)

    return tuple(
        ConnectorView(
            name,
            status["type"],
            part(status["connector"]),
            {task["id"]: part(task) for task in status["tasks"]},
            lag.get(f"connect-{name}"),
        )
        for name, status in ((name, entry["status"]) for name, entry in sorted(answer.items()))
    )

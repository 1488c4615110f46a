"""A snapshot of an instance of a Kafka Streams application."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["StreamsView", "ThreadView", "threads_in"]


@dataclass(frozen=True)
class ThreadView:
    """A thread.

    Attributes
    ----------
    name, state
        In Kafka Streams' words.
    active, standby
        Its tasks by id, with the partitions of each as ``topic-partition``.
    """

    name: str
    state: str
    active: Mapping[str, tuple[str, ...]]
    standby: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class StreamsView:
    """An instance.

    Attributes
    ----------
    name, application
        Its name, and its ``application.id``.
    state
        Its state, or how and why it ended.
    threads
        Empty while it's starting or has ended.
    description
        ``Topology.describe()``.
    restored
        How many changelog records were read to restore each store.
    """

    name: str
    application: str
    state: str
    threads: tuple[ThreadView, ...]
    description: str
    restored: Mapping[str, int]


def threads_in(answer: Iterable[Mapping[str, Any]]) -> tuple[ThreadView, ...]:
    """Return the threads in a process's answer."""

    def tasks(said: Mapping[str, Iterable[str]]) -> dict[str, tuple[str, ...]]:
        return {task: tuple(partitions) for task, partitions in sorted(said.items())}

    return tuple(
        ThreadView(thread["name"], thread["state"], tasks(thread["active"]), tasks(thread["standby"])) for thread in answer
    )

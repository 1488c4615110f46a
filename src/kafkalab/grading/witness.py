"""Evaluate checks within a submission's kernel, and report each result to the worker through a channel of its own.

The grading kernel imports this before any of the learner's code runs. What the learner's code prints, stores or calls `check`
has no influence on the reports. Code that searches its own process for this module can forge them: see ``docs/teach/marks.md``.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable

from kafkalab.checks.context import CheckContext
from kafkalab.checks.lab import find_check
from kafkalab.checks.requirements import Report, Result, results_of
from kafkalab.cluster import Cluster

__all__ = ["KEY_LENGTH", "begin", "check"]

KEY_LENGTH = 32
"""Characters of the key that the worker sends first. Each report must carry it."""

_send: Callable[[dict[str, object]], None] = lambda report: None  # noqa: E731  # outside of the grading kernel


def begin(descriptor: int) -> None:
    """Take over the channel to the worker. No process that the learner's code starts inherits it."""
    os.set_inheritable(descriptor, False)
    channel = socket.socket(fileno=descriptor)
    key = channel.recv(KEY_LENGTH, socket.MSG_WAITALL).decode()

    def send(report: dict[str, object]) -> None:
        channel.sendall(json.dumps({"key": key, **report}).encode() + b"\n")

    global _send
    _send = send


def check(id: str, cluster: Cluster, /, **answers: object) -> Report:
    """Check as the learner's `check` does, and report each result as soon as it's known.

    Raises
    ------
    KafkaLabError, TypeError
        As the learner's `check` does.
    """
    asked = find_check(id)
    if type(cluster) is not Cluster:
        raise TypeError(f"check({id!r}, …) takes your cluster next, such as cluster, not a {type(cluster).__name__}")
    results: list[Result] = []
    _send({"check": asked.id, "of": len(asked.requirements)})
    for result in results_of(asked, CheckContext(cluster, answers)):
        results.append(result)
        _send({"check": asked.id, "state": result.state})
    report = Report(asked.id, asked.title, tuple(results))
    print(report)
    return report

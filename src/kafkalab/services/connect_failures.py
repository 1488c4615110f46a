"""Decide which failures of connectors end a wait."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from typing import Any

from kafkalab.errors import ConnectFailed
from kafkalab.services.traces import reason

__all__ = ["Failures"]

_OLD_SECONDS = 10.0
"""How long a worker may report an old state after a request. It answers first, and restarts tasks a moment later."""


class Failures:
    """Looks at the states of connectors again and again, and ends a wait if one of them has failed for good.

    After a request with corrected settings, a worker reports the old failure for another second or so. So a failure that was
    there at the first look counts only if it stays for ten seconds. Any other counts at once. A connector that doesn't exist
    gets ten seconds, too: another worker may not know it yet.

    Parameters
    ----------
    connectors
        The connectors that count.
    clock
        Tells the time in seconds.
    """

    def __init__(self, connectors: Collection[str], clock: Callable[[], float] = time.monotonic) -> None:
        self._connectors = sorted(connectors)
        self._old: set[str] | None = None
        self._clock = clock
        self._began = clock()
        self._missing_since: float | None = None

    def look(self, existing: Collection[str], statuses: Mapping[str, Any]) -> None:
        """Check a worker's report.

        Parameters
        ----------
        existing
            The names of all connectors.
        statuses
            The status of each, as in ``GET /connectors/NAME/status``. A connector that has just been created has none.

        Raises
        ------
        ConnectFailed
            If a connector or a task has failed, or a connector doesn't exist.
        """
        failed = {key: trace for name in self._connectors if name in statuses for key, trace in _failed(name, statuses[name])}
        self._old = set(failed) if self._old is None else self._old & set(failed)
        in_vain = self._clock() - self._began > _OLD_SECONDS
        for key, trace in failed.items():
            if in_vain or key not in self._old:
                raise ConnectFailed(f"{key} failed: {reason(trace)}")
        missing = [name for name in self._connectors if name not in existing]
        if not missing or self._missing_since is None:
            self._missing_since = self._clock() if missing else None
        elif self._clock() - self._missing_since > _OLD_SECONDS:
            raise ConnectFailed(f"there is no connector {missing[0]!r}. What did the worker answer when you asked for it?")


def _failed(name: str, status: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the failed parts of a connector, each with its trace."""
    parts = [(name, status["connector"]), *((f"{name} task {task['id']}", task) for task in status["tasks"])]
    return [(key, part.get("trace", "")) for key, part in parts if part["state"] == "FAILED"]

"""Notice that a Spark session was stopped."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from IPython.core.getipython import get_ipython
from pyspark import SparkContext

__all__ = ["SessionEnd"]


class SessionEnd:
    """Looks after each cell whether a session was stopped, because Spark tells nobody. Outside notebooks it never looks.

    Parameters
    ----------
    session
        A session that has started.
    """

    def __init__(self, session: Any) -> None:
        self._session = session
        self._callbacks: list[Callable[[], None]] = []
        self._shell: Any = get_ipython()
        if self._shell is not None:
            self._shell.events.register("post_run_cell", self._look)

    def on_stop(self, callback: Callable[[], None]) -> None:
        """Register a function to call once, after the session was stopped."""
        self._callbacks.append(callback)

    def _look(self, *_: object) -> None:
        if not _has_ended(self._session):
            return
        self._shell.events.unregister("post_run_cell", self._look)
        for callback in self._callbacks:
            callback()


def _has_ended(session: Any) -> bool:
    if not hasattr(session, "_jsparkSession"):  # over Spark Connect
        return bool(session.is_stopped)
    return SparkContext._active_spark_context is not session._sc

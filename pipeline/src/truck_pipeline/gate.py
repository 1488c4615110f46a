"""A gate that lets batches in one by one, until it's closed."""

from __future__ import annotations

import threading
from types import TracebackType

__all__ = ["Gate", "GateClosed"]


class GateClosed(Exception):
    """Raised in a batch that comes after the end was asked for. It has stored nothing, and the next start repeats it."""


class Gate:
    """Each batch is processed within the gate's context, in whichever thread Spark calls.

    A process of a Spark Connect server has a gate of its own, which nobody closes.

    Raises
    ------
    GateClosed
        At the entrance, once the gate is closed.
    """

    def __init__(self) -> None:
        self._inside = threading.Lock()
        self._closed = False

    def __reduce__(self) -> tuple[type[Gate], tuple[()]]:
        return Gate, ()

    def close(self) -> None:
        """Wait for the batch that is inside to come out, and let in no other."""
        with self._inside:
            self._closed = True

    def __enter__(self) -> None:
        self._inside.acquire()
        if self._closed:
            self._inside.release()
            raise GateClosed("the end was asked for; the next start repeats the batch")

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._inside.release()

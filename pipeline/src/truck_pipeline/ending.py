"""End at a signal: the stream after its batch, anything else at once."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from threading import Thread
from types import FrameType

from truck_pipeline.logs import log

__all__ = ["end_at_once", "end_by"]


def end_at_once() -> AbstractContextManager[None]:
    """Let SIGTERM and SIGINT raise `SystemExit` within a context. A container's first process ignores SIGTERM otherwise."""

    def end(number: int, _: FrameType | None) -> None:
        log(f"ending at once: {signal.Signals(number).name}")
        raise SystemExit(_status(number))

    return _handled_by(end)


@contextlib.contextmanager
def end_by(stop: Callable[[], object], how: str) -> Iterator[None]:
    """Within this context, let the first SIGTERM or SIGINT stop the stream, and a second one end the process.

    The context ends when the stream has stopped.

    Parameters
    ----------
    stop
        Stops the stream.
    how
        What the log says then, such as ``ending after the batch``.
    """
    asked: list[Thread] = []

    def end(number: int, _: FrameType | None) -> None:
        name = signal.Signals(number).name
        if asked:
            log(f"ending at once: a second signal, {name}; the next start goes on from the checkpoint")
            os._exit(_status(number))
        else:
            log(f"{how}: {name}")
            asked.append(Thread(target=stop, name="stop the stream", daemon=True))
            asked[0].start()

    with _handled_by(end):
        yield
        for stopping in asked:
            stopping.join()


@contextlib.contextmanager
def _handled_by(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    before = {number: signal.signal(number, handler) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


def _status(number: int) -> int:
    """Return the exit status that shells use for an end by a signal."""
    return 128 + number

"""End at a signal: the stream after its batch, anything else at once."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from threading import Event, Thread
from types import FrameType

from truck_pipeline.logs import log

__all__ = ["end_after_batch", "end_at_once"]


def end_at_once() -> AbstractContextManager[None]:
    """Let SIGTERM and SIGINT raise `SystemExit` within a context. A container's first process ignores SIGTERM otherwise."""

    def end(number: int, _: FrameType | None) -> None:
        log(f"ending at once: {signal.Signals(number).name}")
        raise SystemExit(_status(number))

    return _handled_by(end)


@contextlib.contextmanager
def end_after_batch(stop: Callable[[], object], batch_runs: Callable[[], bool], batch_done: Event) -> Iterator[None]:
    """Within this context, let the first SIGTERM or SIGINT stop the stream after the batch, and a second one end the process.

    Spark may begin the next batch before it's stopped. Then the next start repeats that one.

    Parameters
    ----------
    stop
        Stops the stream.
    batch_runs
        Returns whether a batch is being processed.
    batch_done
        Gets set when a batch is committed.
    """
    asked = Event()

    def end(number: int, _: FrameType | None) -> None:
        name = signal.Signals(number).name
        if asked.is_set():
            log(f"ending at once: a second signal, {name}; the next start repeats the batch")
            os._exit(_status(number))
        asked.set()
        Thread(target=stop_after_batch, args=(name,), name="stop after the batch", daemon=True).start()

    def stop_after_batch(name: str) -> None:
        log(f"ending after the batch: {name}")
        batch_done.clear()
        if batch_runs():
            batch_done.wait()
        stop()

    with _handled_by(end):
        yield


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

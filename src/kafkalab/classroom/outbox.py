"""Events that the class hasn't acknowledged yet. They outlive the kernel, so that a class that was away gets them later."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import threading
import uuid
from collections import OrderedDict
from dataclasses import asdict
from pathlib import Path
from typing import IO

from kafkalab.classroom.events import Event, NotAnEvent

__all__ = ["Outbox"]

_MOST = 2000  # a learner who works for a week without the class has fewer


class Outbox:
    """The unacknowledged events of this process, in a file of its own. Several threads may use it.

    Nothing here raises: what can't be written stays in memory, and is lost with the process.

    Parameters
    ----------
    folder
        The folder of all outboxes of the seat.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path = folder / f"outbox-{os.getpid()}-{uuid.uuid4().hex[:6]}.jsonl"
        self._lock = threading.Lock()
        self._waiting: OrderedDict[int, Event] = OrderedDict()
        self._next = 0
        self._file: IO[str] | None = None
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            self._file = open(self._path, "a+", encoding="utf-8")  # noqa: SIM115 - open as long as the process lives
            os.chmod(self._path, 0o600)
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # shows others that it isn't left over

    def add(self, event: Event) -> int:
        """Keep an event, and return the number that `delivered` takes. The oldest goes if there are too many."""
        with self._lock:
            number, self._next = self._next, self._next + 1
            self._waiting[number] = event
            if len(self._waiting) > _MOST:
                self._waiting.popitem(last=False)
            if self._file is not None:
                with contextlib.suppress(OSError):
                    self._file.write(json.dumps(asdict(event)) + "\n")
                    self._file.flush()
            return number

    def delivered(self, number: int) -> None:
        """Forget an event, because the class has it."""
        with self._lock:
            self._waiting.pop(number, None)
            if not self._waiting and self._file is not None:
                with contextlib.suppress(OSError):
                    self._file.truncate(0)

    def waiting(self) -> int:
        """Return how many events aren't acknowledged."""
        with self._lock:
            return len(self._waiting)

    def left_over(self) -> list[Event]:
        """Take the events of processes that have ended, in order. Whoever takes them keeps them."""
        events = []
        for path in self._folder.glob("outbox-*.jsonl"):
            if path == self._path:
                continue
            with contextlib.suppress(OSError), open(path, "r+", encoding="utf-8") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                events += [event for line in file if (event := _event(line))]
                path.unlink()
        return sorted(events, key=lambda event: event.at)

    def close(self) -> None:
        """Close the file. It stays if something waits in it."""
        with self._lock:
            if self._file is not None:
                self._file.close()
                if not self._waiting:
                    with contextlib.suppress(OSError):
                        self._path.unlink()


def _event(line: str) -> Event | None:
    try:
        return Event(**json.loads(line))
    except (ValueError, TypeError, NotAnEvent):  # half a line, of a disk that was full
        return None

"""What this process is busy with, for displays that show it. Whatever makes a reader wait for seconds notes itself here."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass

__all__ = ["Task", "Underway", "amount", "now", "task"]


def amount(done: int, total: int) -> str:
    """Return a progress in words: sizes in MB, small numbers as they are, a single step as nothing."""
    if total == 1:
        return ""
    return f"{done / 1e6:.0f} of {total / 1e6:.0f} MB" if total > 1000 else f"{done} of {total}"


@dataclass(frozen=True)
class Task:
    """Something that goes on.

    Attributes
    ----------
    says
        What happens, as the start of a sentence: ``Starting Spark``.
    done, total
        How many units are done, and how many there are: bytes, or steps. A single step has no progress.
    """

    says: str
    done: int = 0
    total: int = 1

    def __str__(self) -> str:
        return ": ".join(filter(None, (self.says, amount(self.done, self.total))))


class Underway:
    """The tasks of one process, in the order in which they began."""

    def __init__(self) -> None:
        self._tasks: dict[object, Task] = {}
        self._follower: Callable[[], object] | None = None
        self._lock = threading.RLock()

    @property
    def tasks(self) -> tuple[Task, ...]:
        """What goes on now."""
        with self._lock:
            return tuple(self._tasks.values())

    def follow(self, changed: Callable[[], object] | None) -> None:
        """Call a function at each change from now on, in place of the previous one. With None, nobody follows."""
        self._follower = changed

    @contextlib.contextmanager
    def task(self, says: str) -> Iterator[Callable[[int, int], None]]:
        """Note a task until the end of the block.

        Yields
        ------
        callable
            Takes how many units are done, and how many there are.
        """
        key = object()
        self._set(key, Task(says))
        try:
            yield lambda done, total: self._set(key, Task(says, done, total))
        finally:
            with self._lock:
                del self._tasks[key]
            self._tell()

    def report(self, says: str, done: int = 0, total: int = 1) -> bool:
        """Say how far the task is that began last.

        Returns
        -------
        bool
            Whether somebody sees it. False if nothing goes on or nobody follows.
        """
        with self._lock:
            last = next(reversed(self._tasks), None)
            if last is None or self._follower is None:
                return False
            self._tasks[last] = Task(says, done, total)
        self._tell()
        return True

    def _set(self, key: object, task: Task) -> None:
        with self._lock:
            self._tasks[key] = task
        self._tell()

    def _tell(self) -> None:  # without the lock: the follower has one of its own
        if self._follower is not None:
            self._follower()


now = Underway()
task = now.task

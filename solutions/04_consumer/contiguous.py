# Written in the lab 04_threads.
"""Track which offset of a partition you may commit while its records finish in any order."""

from __future__ import annotations

from collections import deque

__all__ = ["Contiguous"]


class Contiguous:
    """Track the records of one partition in progress, so that no commit passes an unfinished record.

    Offsets can have gaps: compaction removes records, and a transaction leaves a marker. So this class goes by the
    order in which records were taken, not by their numbers.
    """

    def __init__(self) -> None:
        self._taken: deque[int] = deque()  # from the first unfinished record on, including finished ones after it
        self._unfinished: set[int] = set()
        self._next: int | None = None

    def __len__(self) -> int:
        """Return how many records were taken and can't be committed yet: at most this many repeat after a crash."""
        return len(self._taken)

    def taken(self, offset: int) -> None:
        """Note that processing of a record begins. Call this in the order in which the partition is read.

        Parameters
        ----------
        offset
            The record's offset.
        """
        self._taken.append(offset)
        self._unfinished.add(offset)

    def finished(self, offset: int) -> None:
        """Note that a record was processed. Call this in any order.

        Parameters
        ----------
        offset
            The record's offset.

        Raises
        ------
        KeyError
            If the record wasn't taken, or has finished before.
        """
        self._unfinished.remove(offset)
        while self._taken and self._taken[0] not in self._unfinished:
            self._next = self._taken.popleft() + 1

    def committable(self) -> int | None:
        """Return the offset to commit: the one after the last record of the finished ones at the front, or None."""
        return self._next

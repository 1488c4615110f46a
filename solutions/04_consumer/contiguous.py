# Written in the lab 04_threads.
"""What may be committed while the records of a partition are finished in any order."""

from __future__ import annotations

from collections import deque

__all__ = ["Contiguous"]


class Contiguous:
    """The records of one partition that are under way: nothing is committed that comes after an unfinished one.

    Offsets need not follow each other without a gap (compaction takes records away, a transaction leaves its marker). So it is
    the order in which they were taken that counts, not the numbers.
    """

    def __init__(self) -> None:
        self._taken: deque[int] = deque()  # from the first unfinished one on, those that are finished included
        self._unfinished: set[int] = set()
        self._next: int | None = None

    def __len__(self) -> int:
        """How many records were taken and may not be committed yet. After a crash so many are processed again at most."""
        return len(self._taken)

    def taken(self, offset: int) -> None:
        """A record is about to be processed. Called in the order in which the partition is read.

        Parameters
        ----------
        offset
            The record's.
        """
        self._taken.append(offset)
        self._unfinished.add(offset)

    def finished(self, offset: int) -> None:
        """A record was processed. Called in any order.

        Parameters
        ----------
        offset
            The record's.

        Raises
        ------
        KeyError
            When it was not taken, or was finished before.
        """
        self._unfinished.remove(offset)
        while self._taken and self._taken[0] not in self._unfinished:
            self._next = self._taken.popleft() + 1

    def committable(self) -> int | None:
        """The offset to commit: after the last record before which all are finished. None as long as there is none."""
        return self._next

"""Keep a list of processed records in an append-only file."""

from __future__ import annotations

import os
from pathlib import Path

from confluent_kafka import Message

__all__ = ["Journal"]


class Journal:
    """Write a line for each processed record: its partition and offset. Many threads may use it at once.

    Each line takes one system call. After that the operating system has the line, even if this process dies.

    Parameters
    ----------
    path
        The file, created if it's missing.
    """

    def __init__(self, path: Path | str) -> None:
        self._path = Path(path)
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def add(self, record: Message) -> None:
        """Append a record.

        Parameters
        ----------
        record
            The record that was processed.
        """
        os.write(self._file, f"{record.partition()} {record.offset()}\n".encode())

    def places(self) -> list[tuple[int, int]]:
        """Return partition and offset of each record, in the order of the file."""
        return [(int(partition), int(offset)) for partition, offset in map(str.split, self._path.read_text().splitlines())]

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

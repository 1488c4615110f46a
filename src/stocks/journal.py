"""What was processed, in a file that is only ever added to."""

from __future__ import annotations

import os
from pathlib import Path

from confluent_kafka import Message

__all__ = ["Journal"]


class Journal:
    """A line for each record that was processed: its partition and offset. Many threads may add to it.

    Each line is written by one call of the operating system, which has it from then on, whatever becomes of this process.

    Parameters
    ----------
    path
        The file; made if it is not there.
    """

    def __init__(self, path: Path | str) -> None:
        self._path = Path(path)
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def add(self, record: Message) -> None:
        """Note a record.

        Parameters
        ----------
        record
            What was processed.
        """
        os.write(self._file, f"{record.partition()} {record.offset()}\n".encode())

    def places(self) -> list[tuple[int, int]]:
        """Partition and offset of each record, in the order noted."""
        return [(int(partition), int(offset)) for partition, offset in map(str.split, self._path.read_text().splitlines())]

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

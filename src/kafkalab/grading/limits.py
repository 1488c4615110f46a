"""What one submission may use."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Limits"]


@dataclass(frozen=True)
class Limits:
    """Upper bounds for one submission.

    Attributes
    ----------
    seconds
        Wall clock, with the start of its kernel.
    memory_bytes
        Of all its processes together, but not what they share, such as libraries.
    tasks
        Processes and threads.
    disk_bytes, file_bytes
        Of all its files, and of the largest.
    """

    seconds: float
    memory_bytes: int = 3 << 30
    tasks: int = 4096
    disk_bytes: int = 2 << 30
    file_bytes: int = 1 << 30

"""The process that started something, and alone may end it."""

from __future__ import annotations

import os

__all__ = ["Owner"]


class Owner:
    """The process that created this object.

    A forked process has a copy of every object, so it could end what its parent started. It asks here first.
    """

    def __init__(self) -> None:
        self._pid = os.getpid()

    @property
    def is_me(self) -> bool:
        """Whether this process is the owner, and not one that was forked from it."""
        return os.getpid() == self._pid

"""Which process may end what was started."""

from __future__ import annotations

import os

__all__ = ["Owner"]


class Owner:
    """The process that makes this object.

    A process that is forked off has a copy of every object, so it could end what its parent started. It asks here first.
    """

    def __init__(self) -> None:
        self._pid = os.getpid()

    @property
    def is_me(self) -> bool:
        """Whether this is that process, and not one that was forked off since."""
        return os.getpid() == self._pid

"""Whether somebody looks: a drawing that nobody sees must not keep a forgotten server alive for ever.

Whatever a kernel sends counts as its activity, and a hub ends servers without any. So live drawings pause when no browser has
said for a while that somebody sits before it.
"""

from __future__ import annotations

import time
from collections.abc import Callable

__all__ = ["ATTENTION", "PATIENCE", "Attention"]

PATIENCE = 600.0
"""Seconds without a word from a browser, after which drawings pause. Who only looks at something else misses nothing."""


class Attention:
    """Notes when browsers say that somebody looks.

    Parameters
    ----------
    now
        The time in seconds since some moment.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._said: float | None = None

    def note(self) -> None:
        """Note that somebody looks now."""
        self._said = self._now()

    @property
    def paid(self) -> bool:
        """Whether drawings go on. Where no browser ever says anything, as in a run without one, they always do."""
        return self._said is None or self._now() - self._said < PATIENCE


ATTENTION = Attention()
"""That of this kernel's reader."""

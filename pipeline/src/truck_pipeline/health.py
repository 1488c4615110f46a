"""Whether the stream lives, and whether it has caught on, for Kubernetes' probes."""

from __future__ import annotations

import time
from collections.abc import Callable

__all__ = ["Health"]


class Health:
    """The stream lives while it shows signs: batches, or that nothing is there to read.

    Parameters
    ----------
    silence
        Seconds without a sign after which the stream counts as dead. The start has as long.
    clock
        Returns seconds from any beginning.
    """

    def __init__(self, silence: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._silence, self._clock = silence, clock
        self._last = clock()
        self._ready = False

    def sign(self, ready: bool = True) -> None:
        """Note a sign of life: a batch is done, or there was nothing to read. After a start, the stream isn't ready yet."""
        self._last = self._clock()
        self._ready |= ready

    @property
    def live(self) -> bool:
        """Whether there was a sign within the allowed silence."""
        return self._clock() - self._last < self._silence

    @property
    def ready(self) -> bool:
        """Whether the stream lives, and its first batch is done or there was nothing to read."""
        return self._ready and self.live

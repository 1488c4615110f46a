"""Check whether a server on this machine answers."""

from __future__ import annotations

import urllib.request

__all__ = ["answers_well", "direct"]

_SECONDS = 10

# Opens addresses without the learner's proxy, which does not know of servers on this machine.
direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def answers_well(url: str) -> bool:
    """Return whether the server answers a GET with status 200.

    Raises
    ------
    OSError
        If there's no answer, or an error status. The message says which.
    """
    with direct.open(url, timeout=_SECONDS) as answer:
        return bool(answer.status == 200)

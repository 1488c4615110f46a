"""Whether this machine's learner sits in a class now, and the process's one link to it."""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kafkalab.classroom.membership import membership

if TYPE_CHECKING:
    from kafkalab.classroom.link import Link

__all__ = ["current", "tell_checked"]

_lock = threading.Lock()
_link: Link | None = None


def current() -> Link | None:
    """Return the link to the class that was joined on this machine, or None. Takes microseconds where none was."""
    global _link
    with _lock:
        seat = membership()
        if _link is not None and (seat != _link.membership or _link.pid != os.getpid()):
            _link.close()
            _link = None
        if _link is None and seat is not None:
            from kafkalab.classroom.link import Link  # with Avro and Kafka's client: not for who is in no class

            _link = Link(seat)
            atexit.register(_link.close)
        return _link


def tell_checked(check: str, states: Sequence[str], attempt: int, hints: int) -> None:
    """Tell the class, if there is one, what a check has found: for each requirement ``met``, ``unmet`` or ``waiting``."""
    if (link := current()) is not None:
        from kafkalab.classroom.events import Event

        met, unmet, waiting = (
            [place for place, state in enumerate(states, 1) if state == name] for name in ("met", "unmet", "waiting")
        )
        link.send(Event("checked", check, met=met, unmet=unmet, waiting=waiting, attempt=attempt, hints=hints))

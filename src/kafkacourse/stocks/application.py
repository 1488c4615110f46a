"""What the applications have in common: the settings of their clients, and a signal that ends them cleanly."""

from __future__ import annotations

import signal
import sys
import threading
from types import FrameType

__all__ = ["EndSignal", "client_settings", "member_settings"]


class EndSignal:
    """Notes SIGINT and SIGTERM, which would otherwise end the process at once. The application looks at it as it works."""

    def __init__(self) -> None:
        self._ended_by: int | None = None
        self._arrived = threading.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._note)

    def _note(self, number: int, _: FrameType | None) -> None:
        if self._ended_by is None:
            self._ended_by = number
        self._arrived.set()

    def arrived(self) -> bool:
        """Return whether the application was told to end."""
        return self._arrived.is_set()

    def wait(self, seconds: float) -> None:
        """Wait for a signal, but not longer than this."""
        self._arrived.wait(seconds)

    @property
    def exit_status(self) -> int:
        """The exit status by the first signal: 130 after SIGINT, 143 after SIGTERM, and 0 without a signal."""
        return 0 if self._ended_by is None else 128 + self._ended_by


def client_settings(bootstrap_servers: str, client_id: str) -> dict[str, object]:
    """Return the settings of every client of an application. It prints its errors to standard error."""
    return {
        "bootstrap.servers": bootstrap_servers,
        "client.id": client_id,
        "error_cb": lambda error: print(error.str(), file=sys.stderr, flush=True),
        "log_level": 2,
    }


def member_settings(group: str, instance: str | None) -> dict[str, object]:
    """Return the settings of a group's member that commits by itself, and that may have a name of its own."""
    # With a name of its own, it gets its partitions back at once after it was killed.
    static = {"group.instance.id": instance} if instance else {}
    return {**static, "group.id": group, "enable.auto.commit": False, "auto.offset.reset": "earliest"}

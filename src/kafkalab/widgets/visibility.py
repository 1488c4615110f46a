"""Which pages of the panel somebody sees, and whether anybody is there: browsers say so over a comm, because only they know."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import comm

from kafkalab.widgets.attention import ATTENTION

__all__ = ["TARGET", "Visibility"]

TARGET = "kafkalab-panel"
"""Name of the comm target. The course's JupyterLab extension opens a comm to it."""


class Visibility:
    """Follows all browsers that show the panel.

    Parameters
    ----------
    seen
        Called with the titles of the pages that are in front in any of them, each time one says something.
    """

    def __init__(self, seen: Callable[[Collection[str]], object]) -> None:
        self._seen = seen
        self._pages: dict[str, str] = {}  # by the comm of the browser; empty for none
        comm.get_comm_manager().register_target(TARGET, self._opened)

    def _opened(self, browser: Any, message: dict[str, Any]) -> None:
        def note(said: dict[str, Any]) -> None:
            data = said["content"]["data"]
            if data.get("looks"):
                ATTENTION.note()
            self._pages[browser.comm_id] = data.get("page", "")
            self._seen(set(self._pages.values()))

        browser.on_msg(note)
        browser.on_close(note)  # with no page
        note(message)

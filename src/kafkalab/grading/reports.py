"""What a worker reported of its submission so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Reports"]


@dataclass
class Reports:
    """The reports of a worker. They survive it: what was reached before it was ended counts.

    Attributes
    ----------
    best
        By check, the states of its requirements in the evaluation that met most.
    doing
        What runs now, in words.
    error
        The first error of a cell.
    reason
        Why the worker couldn't go on.
    ended
        Whether it came to the end of the notebook.
    """

    best: dict[str, list[str]] = field(default_factory=dict)
    doing: str = "the start of its kernel"
    error: str = ""
    reason: str = ""
    ended: bool = False
    _current: dict[str, list[str]] = field(default_factory=dict)

    def take(self, event: Mapping[str, Any]) -> None:
        """Take an event. Anything else is ignored."""
        match event:
            case {"check": str(check), "of": int()}:
                self._current[check] = []
            case {"check": str(check), "state": "met" | "unmet" | "waiting" as state} if check in self._current:
                states = self._current[check]
                states.append(state)
                if states.count("met") >= self.best.get(check, []).count("met"):
                    self.best[check] = list(states)
            case {"cell": int(number), "error": str(error)}:
                self.error = self.error or f"{_cell(number)}: {error}"
            case {"cell": int(number), "checks": list(checks)}:
                self.doing = f"{_cell(number)}, the check {' and '.join(map(str, checks))}" if checks else _cell(number)
            case {"reason": str(reason)}:
                self.reason = reason
            case {"ended": True}:
                self.ended = True


def _cell(number: int) -> str:
    return f"cell {number}" if number else "the marker's cell"

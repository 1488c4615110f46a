"""End what a notebook's cell started before, when the cell is run again.

``cluster = Cluster().start()`` run twice would leave two clusters, and no name for the first one. So what starts here is
noted, and whatever is about to be made asks first: which running things lose their last name in the statement that runs
now, or have lost it already? Those are ended, and so is what the same line started before and nothing ever named.
Anything that still has a name goes on: several clusters are no mistake.
"""

from __future__ import annotations

import ast
import contextlib
import linecache
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from kafkalab.errors import KafkaLabError

__all__ = ["end_nameless", "note_started"]

_DEPTH = 3  # a dictionary of lists of clusters
_KEPT = ("In", "Out")  # by IPython, beside names with an underscore


@dataclass(eq=False)
class _Started:
    thing: Any
    what: str
    is_alive: Callable[[], bool]
    end: Callable[[], object]
    execution: int  # of the cell that started it
    place: tuple[str, int]  # that cell's text, and the line
    names: set[str] = field(default_factory=set)  # that it had when somebody looked last


_started: list[_Started] = []
_lock = threading.Lock()
_watched: Any = None


def note_started(thing: Any, what: str, is_alive: Callable[[], bool], end: Callable[[], object]) -> None:
    """Note something that this process has started. Outside notebooks nothing is noted.

    Parameters
    ----------
    thing
        What names refer to.
    what
        For messages: ``cluster``.
    is_alive, end
        Whether there is still something to end, and how to end it. What was killed, and may start again, counts.
    """
    shell = _shell()
    if shell is None:
        return
    with _lock:
        _watch(shell)
        _started[:] = [one for one in _started if one.thing is not thing and one.is_alive()]
        _started.append(_Started(thing, what, is_alive, end, shell.execution_count, _place(shell.user_ns)))


def end_nameless() -> None:
    """End what loses its last name by the statement that runs now, or lost it before; and say so."""
    shell = _shell()
    if shell is None or not _started or threading.current_thread() is not threading.main_thread():
        return
    place = _place(shell.user_ns)
    for one in _lost(_started, shell.user_ns, place, shell.execution_count):
        with _lock:
            _started.remove(one)
        names = " and ".join(f"`{name}`" for name in sorted(one.names))
        why = f"{names} doesn't name it any more" if names else "this cell started it before"
        print(f"An earlier {one.what} still ran, and {why}. It's stopped now.")
        with contextlib.suppress(KafkaLabError):  # it's lost in any case
            one.end()


def _lost(started: Iterable[_Started], names: Mapping[str, Any], place: tuple[str, int], execution: int) -> list[_Started]:
    """Return what runs and has no name left, as soon as the statement at this place has bound its names anew."""
    rebound = rebound_in(*place)
    lost = []
    for one in started:
        now = set(_names_of(one.thing, names))
        one.names = now or one.names
        had_a_place = bool(one.names) or (one.place == place and bool(place[0]))
        # What this very cell started before, such as in a loop, is meant to be there.
        if had_a_place and not now - rebound and one.execution != execution and one.is_alive():
            lost.append(one)
    return lost


def _names_of(thing: Any, names: Mapping[str, Any]) -> Iterator[str]:
    for name, value in list(names.items()):
        if not name.startswith("_") and name not in _KEPT and _holds(value, thing, _DEPTH):
            yield name


def _holds(value: Any, thing: Any, depth: int) -> bool:
    if value is thing:
        return True
    if depth == 0 or not isinstance(value, dict | list | tuple | set):
        return False
    return any(_holds(part, thing, depth - 1) for part in list(value.values() if isinstance(value, dict) else value))


def _place(names: Mapping[str, Any]) -> tuple[str, int]:
    """Return the text of the cell that runs now, and the line of its statement."""
    frame = sys._getframe()
    while frame is not None and (frame.f_globals is not names or frame.f_code.co_name != "<module>"):
        frame = frame.f_back  # type: ignore[assignment]
    return ("", 0) if frame is None else ("".join(linecache.getlines(frame.f_code.co_filename)), frame.f_lineno)


def rebound_in(source: str, line: int) -> set[str]:
    """Return the names that the statement at this line binds without reading them."""
    try:
        statements = [one for one in ast.walk(ast.parse(source)) if isinstance(one, ast.stmt)]
    except SyntaxError:
        return set()
    here = [one for one in statements if one.lineno <= line <= (one.end_lineno or one.lineno)]
    first = max((one.lineno for one in here), default=0)
    parts = [part for one in here if one.lineno == first for part in _binding(one)]
    found = [name for part in parts for name in ast.walk(part) if isinstance(name, ast.Name)]
    read = {name.id for name in found if isinstance(name.ctx, ast.Load)}
    return {name.id for name in found if isinstance(name.ctx, ast.Store)} - read


def _binding(statement: ast.stmt) -> list[Any]:
    """Return the parts of a statement that bind names, without what is in its block."""
    match statement:
        case ast.Assign() | ast.AnnAssign() | ast.Expr():
            return [statement]
        case ast.With():
            return list(statement.items)
    return []


def _shell() -> Any:
    """Return the notebook's IPython, if this is one."""
    if "IPython" not in sys.modules:
        return None
    return sys.modules["IPython"].get_ipython()


def _watch(shell: Any) -> None:
    """Look after each cell which names things have: a later cell may drop them before it makes new ones."""
    global _watched
    if _watched is not shell:
        _watched = shell
        shell.events.register("post_run_cell", lambda *_: _look(shell))


def _look(shell: Any) -> None:
    for one in list(_started):
        one.names = set(_names_of(one.thing, shell.user_ns)) or one.names

"""End what a notebook's cell started before, when the cell is run again.

``cluster = Cluster().start()`` run twice would leave two clusters, and no name for the first one. So kafkalab notes what
it starts. Before it starts something else, it ends what loses its last name in the current statement, or lost it
before, and what the same line started before without a name. Anything that still has a name goes on: several clusters
are no mistake.
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
from kafkalab.shell import notebook_shell

__all__ = ["end_nameless", "note_started"]

_DEPTH = 3  # a dictionary of lists of clusters
_KEPT = ("In", "Out")  # by IPython, beside names with an underscore


@dataclass(eq=False)
class _Started:
    thing: Any
    kind: str
    is_alive: Callable[[], bool]
    end: Callable[[], object]
    execution: int  # of the cell that started it
    place: tuple[str, int]  # that cell's text, and the line
    names: set[str] = field(default_factory=set)  # the names it had at the last look


_started: list[_Started] = []
_lock = threading.Lock()
_watched: Any = None


def note_started(thing: Any, kind: str, is_alive: Callable[[], bool], end: Callable[[], object]) -> None:
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
    shell = notebook_shell()
    if shell is None:
        return
    with _lock:
        _watch(shell)
        _started[:] = [entry for entry in _started if entry.thing is not thing and entry.is_alive()]
        _started.append(_Started(thing, kind, is_alive, end, shell.execution_count, _place(shell.user_ns)))


def end_nameless() -> None:
    """End what loses its last name in the current statement, or lost it before, and print that."""
    shell = notebook_shell()
    if shell is None or not _started or threading.current_thread() is not threading.main_thread():
        return
    place = _place(shell.user_ns)
    for entry in _lost(_started, shell.user_ns, place, shell.execution_count):
        with _lock:
            _started.remove(entry)
        names = " and ".join(f"`{name}`" for name in sorted(entry.names))
        why = f"{names} doesn't name it any more" if names else "this cell started it before"
        print(f"An earlier {entry.kind} still ran, and {why}. It's stopped now.")
        with contextlib.suppress(KafkaLabError):  # it's lost in any case
            entry.end()


def _lost(started: Iterable[_Started], names: Mapping[str, Any], place: tuple[str, int], execution: int) -> list[_Started]:
    """Return what runs, but has no name once the statement at this place has bound its names."""
    rebound = rebound_in(*place)
    lost = []
    for candidate in started:
        current = set(_names_of(candidate.thing, names))
        candidate.names = current or candidate.names
        was_named_or_repeated = bool(candidate.names) or (candidate.place == place and bool(place[0]))
        # Spare what this run of the cell started, as in a loop.
        if was_named_or_repeated and not current - rebound and candidate.execution != execution and candidate.is_alive():
            lost.append(candidate)
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
        statements = [statement for statement in ast.walk(ast.parse(source)) if isinstance(statement, ast.stmt)]
    except SyntaxError:
        return set()
    enclosing = [
        statement for statement in statements if statement.lineno <= line <= (statement.end_lineno or statement.lineno)
    ]
    first = max((statement.lineno for statement in enclosing), default=0)
    parts = [part for statement in enclosing if statement.lineno == first for part in _binding(statement)]
    nodes = [name for part in parts for name in ast.walk(part) if isinstance(name, ast.Name)]
    read = {name.id for name in nodes if isinstance(name.ctx, ast.Load)}
    return {name.id for name in nodes if isinstance(name.ctx, ast.Store)} - read


def _binding(statement: ast.stmt) -> list[Any]:
    """Return the parts of a statement that bind names, without what is in its block."""
    match statement:
        case ast.Assign() | ast.AnnAssign() | ast.Expr():
            return [statement]
        case ast.With():
            return list(statement.items)
    return []


def _watch(shell: Any) -> None:
    """Look after each cell which names things have: a later cell may drop them before it makes new ones."""
    global _watched
    if _watched is not shell:
        _watched = shell
        shell.events.register("post_run_cell", lambda *_: _look(shell))


def _look(shell: Any) -> None:
    for entry in list(_started):
        entry.names = set(_names_of(entry.thing, shell.user_ns)) or entry.names

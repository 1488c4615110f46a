"""Load a topology from a file and build it, or refuse it in one sentence."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["TopologyRefused", "load", "run"]

_NAME = "topology"


class TopologyRefused(Exception):
    """Raised if a file can't be used. The message says why, and in which line."""


def load(file: Path) -> Callable[[Any], object]:
    """Return the function ``topology`` of a file, which may import modules from its own folder and the working folder.

    Raises
    ------
    TopologyRefused
        If the file isn't Python, raises an exception, or defines no such function.
    """
    defined: dict[str, Any] = {"__name__": file.stem, "__file__": str(file)}
    sys.path += [str(file.parent), os.getcwd()]  # last, so that no file there hides a package
    try:
        code = compile(file.read_text(encoding="utf-8"), str(file), "exec")
    except OSError as error:
        raise TopologyRefused(f"{file.name} can't be read: {error.strerror}") from error
    except (SyntaxError, ValueError) as error:
        line = f", line {error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        raise TopologyRefused(f"{file.name}{line} isn't Python: {getattr(error, 'msg', error)}") from error
    run(file, lambda: exec(code, defined))
    function = defined.get(_NAME)
    if not callable(function):
        names = ", ".join(name for name, value in defined.items() if callable(value) and not name.startswith("_"))
        raise TopologyRefused(f"{file.name} defines no function {_NAME}(builder); it defines {names or 'no function at all'}")
    return function  # type: ignore[no-any-return]


def run(file: Path, call: Callable[[], object]) -> None:
    """Call a function that a file defines.

    Raises
    ------
    TopologyRefused
        If the function raises an exception, of Python or of Java.
    """
    try:
        call()
    except BaseException as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(file)]
        where = f", line {lines[-1]}" if lines else ""
        raise TopologyRefused(f"{file.name}{where}: {type(error).__name__.rpartition('.')[2]}: {_explained(error)}") from error


def _explained(error: BaseException) -> str:
    """Return what an exception says. Explain JPype's ambiguous overload in plain words."""
    first, _, methods = str(error).partition(" found for ")
    if first != "Ambiguous overloads":
        return str(error)
    method = methods.partition("(")[0].rpartition(".")[2]
    return (
        f"Java has more than one method {method}, and can't tell from a built-in how many arguments it takes. "
        f"Pass a lambda, such as {method}(lambda value: str(value))"
    )

"""Convert what a learner passes to `check` into the type that a probe needs.

A right answer is right in any form with the same meaning: a NumPy integer for an ``int``, a tuple for a list, or text
for a ``Path``. A number is also right as text, in the form that a tool shows: ``"0"``, ``"1,024"``. So are whole numbers
in a row, ``"0,1"``, a truth value in JSON, and the one line that a ``!`` command printed. Any other text doesn't count as
a list, and no text counts as bytes.
"""

from __future__ import annotations

import math
import numbers
import operator
import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from decimal import Decimal
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, TypeVar, cast, get_args, get_origin

__all__ = ["WrongType", "convert", "describe"]

T = TypeVar("T")

_THOUSANDS = re.compile(r"[+-]?\d{1,3}(?:[,_ \u00a0\u202f]\d{3})+(?:\.\d+)?")
_SEPARATOR = re.compile(r"[,_ \u00a0\u202f]")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_ROW = re.compile(r"[\[({]?\s*([+-]?\d+(?:(?:\s*,\s*|\s+)[+-]?\d+)*)\s*[\])}]?")

_TRUTHS = {"true": True, "false": False}
_SINGLE = (int, float, bool, str)

_NAMES = {
    int: "a whole number",
    float: "a number",
    str: "text",
    bytes: "bytes",
    bool: "True or False",
    dict: "a dictionary",
    list: "a list",
    set: "a set",
    tuple: "a tuple",
    Path: "a path",
    Callable: "a function",
    NoneType: "None",
}


class WrongType(Exception):
    """Raised if a value, or a part of it, doesn't have the requested meaning. The message completes "it should be …".

    Attributes
    ----------
    part
        The wrong part as a subscript of the value (``['by-java']``), or empty for the value itself.
    each
        "key" or "item" if a key or an item of that part is wrong, or empty.
    """

    def __init__(self, message: str, part: str = "", each: str = "") -> None:
        super().__init__(message)
        self.part = part
        self.each = each

    def about(self, name: str) -> str:
        """Return a sentence about the answer of that name: "Each key of `causes` should be a whole number, not …"."""
        subject = f"`{name}{self.part}`"
        return f"{f'Each {self.each} of {subject}' if self.each else subject} should be {self}."


def describe(kind: Any) -> str:
    """Return a type's name in a sentence: "a dictionary", "a whole number", "text or None"."""
    if isinstance(kind, UnionType):
        return " or ".join(describe(member) for member in get_args(kind))
    origin = get_origin(kind) or kind
    return _NAMES.get(origin, f"a {getattr(origin, '__name__', origin)}")


def convert(value: object, kind: type[T]) -> T:
    """Convert a value to a type.

    Parameters
    ----------
    value
        What the learner passed.
    kind
        A class, or a built-in generic with its arguments: ``dict[int, list[str]]``, ``tuple[str, int | None]``.

    Raises
    ------
    WrongType
        If the value means something else.
    """
    origin, arguments = get_origin(kind) or kind, get_args(kind)
    if origin in _SINGLE and isinstance(value, list) and len(value) == 1 and isinstance(value[0], str):
        value = value[0]  # what a command printed is a list of lines
    if origin in _CONVERTERS:
        return cast(T, _CONVERTERS[origin](value, kind, arguments))
    if origin is not object and not isinstance(value, origin):
        raise _wrong(value, kind)
    return cast(T, value)


def _wrong(value: object, kind: Any) -> WrongType:
    return WrongType(f"{describe(kind)}, not {describe(type(value))}")


def _integer(value: object, kind: Any, _: Any) -> int:
    if isinstance(value, bool):
        raise _wrong(value, kind)
    if hasattr(value, "__index__"):
        return operator.index(cast(Any, value))
    number = _real(value, kind)
    if not math.isfinite(number) or number != int(number):
        raise _wrong(value, kind)
    return int(number)


def _number(value: object, kind: Any, _: Any) -> float:
    return float(_real(value, kind))


def _real(value: object, kind: Any) -> Any:
    """Return a number as exact as it was given."""
    number = _as_shown(value) if isinstance(value, str) else value
    if isinstance(number, bool) or not isinstance(number, numbers.Real | Decimal):
        raise _wrong(value, kind)
    return number


def _as_shown(text: str) -> Decimal | None:
    """Return the number that a text shows, or None."""
    text = text.strip()
    if _THOUSANDS.fullmatch(text):
        text = _SEPARATOR.sub("", text)
    return Decimal(text) if _NUMBER.fullmatch(text) else None


def _path(value: object, kind: Any, _: Any) -> Path:
    if not isinstance(value, str | os.PathLike):
        raise _wrong(value, kind)
    return Path(value)


def _truth(value: object, kind: Any, _: Any) -> bool:
    if isinstance(value, str) and (shown := value.strip().lower()) in _TRUTHS:
        return _TRUTHS[shown]
    # NumPy's truth values aren't bool, but they equal one.
    if not any(value is truth or (type(value).__name__ in ("bool", "bool_") and value == truth) for truth in (True, False)):
        raise _wrong(value, kind)
    return bool(value)


def _bytes(value: object, kind: Any, _: Any) -> bytes:
    if not isinstance(value, bytes | bytearray | memoryview):
        raise _wrong(value, kind)
    return bytes(value)


def _mapping(value: object, kind: Any, arguments: tuple[Any, ...]) -> dict[Any, Any]:
    if not isinstance(value, Mapping):
        raise _wrong(value, kind)
    if not arguments:
        return dict(value)
    key_type, value_type = arguments
    return {_one("key", k, key_type): _part(f"[{k!r}]", v, value_type) for k, v in value.items()}


def _either(value: object, kind: Any, arguments: tuple[Any, ...]) -> Any:
    for member in arguments:
        try:
            return convert(value, member)
        except WrongType:
            continue
    raise _wrong(value, kind)


def _collection(make: Callable[[Iterable[Any]], Collection[Any]]) -> Callable[[object, Any, tuple[Any, ...]], Collection[Any]]:
    def converter(value: object, kind: Any, arguments: tuple[Any, ...]) -> Collection[Any]:
        if isinstance(value, str) and arguments[:1] == (int,) and (row := _ROW.fullmatch(value.strip())):
            value = re.findall(r"[+-]?\d+", row[1])
        if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
            raise _wrong(value, kind)
        items = list(value)
        if not arguments:
            return make(items)
        if make is tuple and arguments[-1] is not Ellipsis:
            if len(items) != len(arguments):
                raise WrongType(f"a tuple of {len(arguments)}, not of {len(items)}")
            return tuple(_part(f"[{n}]", item, part) for n, (item, part) in enumerate(zip(items, arguments, strict=True)))
        return make(_one("item", item, arguments[0], f"[{n}]") for n, item in enumerate(items))

    return converter


def _part(subscript: str, value: object, kind: Any) -> Any:
    """Convert the part of a value with this subscript."""
    try:
        return convert(value, kind)
    except WrongType as error:
        raise WrongType(str(error), subscript + error.part, error.each) from None


def _one(what: str, value: object, kind: Any, subscript: str = "") -> Any:
    """Convert a key or an item. The subscript names it if only a part of it is wrong."""
    try:
        return convert(value, kind)
    except WrongType as error:
        if error.part or error.each:
            raise WrongType(str(error), subscript + error.part, error.each) from None
        shown = "" if value is None else f" (one is {value!r})"
        raise WrongType(f"{error}{shown}", each=what) from None


_CONVERTERS: Mapping[Any, Callable[[object, Any, tuple[Any, ...]], Any]] = {
    int: _integer,
    float: _number,
    bool: _truth,
    bytes: _bytes,
    Path: _path,
    UnionType: _either,
    dict: _mapping,
    list: _collection(list),
    tuple: _collection(tuple),
    set: _collection(set),
    frozenset: _collection(frozenset),
}

"""Convert what a learner passes to `check` into the type that a probe needs.

A right answer is right in any form with the same meaning: a NumPy integer for an ``int``, a tuple for a list, or text
for a ``Path``. A string doesn't count as bytes or as a list.
"""

from __future__ import annotations

import numbers
import operator
import os
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, TypeVar, cast, get_args, get_origin

__all__ = ["WrongType", "convert", "describe"]

T = TypeVar("T")

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
    """Raised if a value doesn't have the requested meaning. The message completes "it should be …"."""


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
    if origin in _CONVERTERS:
        return cast(T, _CONVERTERS[origin](value, kind, arguments))
    if origin is not object and not isinstance(value, origin):
        raise _wrong(value, kind)
    return cast(T, value)


def _wrong(value: object, kind: Any) -> WrongType:
    return WrongType(f"{describe(kind)}, not {describe(type(value))}")


def _integer(value: object, kind: Any, _: Any) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise _wrong(value, kind)
    return operator.index(cast(Any, value))


def _number(value: object, kind: Any, _: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise _wrong(value, kind)
    return float(value)


def _path(value: object, kind: Any, _: Any) -> Path:
    if not isinstance(value, str | os.PathLike):
        raise _wrong(value, kind)
    return Path(value)


def _truth(value: object, kind: Any, _: Any) -> bool:
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
    return {_part("a key", k, key_type): _part(f"the value of {k!r}", v, value_type) for k, v in value.items()}


def _either(value: object, kind: Any, arguments: tuple[Any, ...]) -> Any:
    for member in arguments:
        try:
            return convert(value, member)
        except WrongType:
            continue
    raise _wrong(value, kind)


def _collection(make: Callable[[Iterable[Any]], Collection[Any]]) -> Callable[[object, Any, tuple[Any, ...]], Collection[Any]]:
    def converter(value: object, kind: Any, arguments: tuple[Any, ...]) -> Collection[Any]:
        if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
            raise _wrong(value, kind)
        items = list(value)
        if not arguments:
            return make(items)
        if make is tuple and arguments[-1] is not Ellipsis:
            if len(items) != len(arguments):
                raise WrongType(f"a tuple of {len(arguments)}, not of {len(items)}")
            return tuple(_part(f"item {n}", item, part) for n, (item, part) in enumerate(zip(items, arguments, strict=True)))
        return make(_part(f"item {n}", item, arguments[0]) for n, item in enumerate(items))

    return converter


def _part(where: str, value: object, kind: Any) -> Any:
    try:
        return convert(value, kind)
    except WrongType as error:
        raise WrongType(f"{error} ({where} is {value!r})" if "(" not in str(error) else str(error)) from None


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

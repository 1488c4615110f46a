"""Dead letters: what a record was that couldn't be an event, and why, as another record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from truck_pipeline.outlet import Record

__all__ = ["PREFIX", "REPLAYS", "letter"]

REPLAYS = "dead.replays"
"""The header that counts how often a letter was sent back to its topic."""

PREFIX = "dead."
"""What the names of a letter's own headers begin with."""

# Bytes that fit into a record with its headers, by the default limits of brokers and producers.
_LARGEST = {"key": 100_000, "value": 900_000}


def letter(dead: Mapping[str, Any]) -> Record:
    """Turn a row of the column `dead` into a record: key, value, headers and timestamp as they were.

    More headers say why (``dead.reason``), and where and when it was: ``dead.topic``, ``dead.partition``, ``dead.offset`` and
    ``dead.timestamp`` (milliseconds since 1970). Keys and values larger than those in `_LARGEST` are cut; then ``dead.cut`` has
    the bytes that they had. `REPLAYS` stays.
    """
    sizes = {part: len(dead[part] or b"") for part in _LARGEST}
    cut = any(sizes[part] > largest for part, largest in _LARGEST.items())
    timestamp = int(dead["timestamp"].timestamp() * 1000)
    about = {
        **{name: dead[name] for name in ("reason", "topic", "partition", "offset")},
        "timestamp": timestamp,
        **({"cut": sum(sizes.values())} if cut else {}),
    }
    headers: list[tuple[str, str | bytes | None]]
    headers = [(header["key"], header["value"]) for header in dead["headers"] or () if _is_own(header["key"])]
    headers += [(f"{PREFIX}{name}", str(value).encode()) for name, value in about.items()]
    key, value = (dead[part] and dead[part][:largest] for part, largest in _LARGEST.items())
    return Record(key, value, headers, timestamp)


def _is_own(name: str) -> bool:
    return not name.startswith(PREFIX) or name == REPLAYS

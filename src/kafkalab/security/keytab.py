"""Key tables: files with the keys of Kerberos principals."""

from __future__ import annotations

import struct
from pathlib import Path

from kafkalab.security.files import write_private

__all__ = ["split_keytab"]

_VERSION = b"\x05\x02"


def split_keytab(table: Path, folder: Path) -> dict[str, Path]:
    """Write a separate key table for each principal of a key table into a folder. Only their owner can read them.

    Returns
    -------
    dict
        The new table of each principal, without its realm: ``alice``, ``kafka/localhost``.

    Raises
    ------
    ValueError
        If the file isn't a key table in version 2 of the format, which all current tools write.
    """
    content = table.read_bytes()
    if content[:2] != _VERSION:
        raise ValueError(f"{table} is no key table of version 2")
    entries: dict[str, bytes] = {}
    position = 2
    while position < len(content):
        (size,) = struct.unpack_from(">i", content, position)
        end = position + 4 + abs(size)
        if size > 0:  # a negative size is a hole that a removed entry left
            name = _principal(content, position + 4)
            entries[name] = entries.get(name, b"") + content[position:end]
        position = end
    return {name: write_private(folder / f"{name.replace('/', '_')}.keytab", _VERSION + keys) for name, keys in entries.items()}


def _principal(content: bytes, position: int) -> str:
    (count,) = struct.unpack_from(">h", content, position)
    position += 2
    texts = []
    for _ in range(count + 1):  # the realm comes first
        (length,) = struct.unpack_from(">h", content, position)
        texts.append(content[position + 2 : position + 2 + length].decode())
        position += 2 + length
    return "/".join(texts[1:])
